{{- define "driver.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* As Helm's own scaffold does it: the release's name alone where it already contains the chart's. */}}
{{- define "driver.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{ .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "driver.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "driver.account" -}}
{{ .Values.serviceAccount.name | default (printf "%s-service-account" (include "driver.fullname" .)) }}
{{- end }}

{{- define "driver.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}

{{- define "driver.podLabels" -}}
app.kubernetes.io/name: {{ include "driver.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "driver.labels" -}}
{{ include "driver.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (.Values.nameOverride | default .Chart.Name) .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "driver.resourceApi" -}}
{{- $served := list -}}
{{- range list "resource.k8s.io/v1" "resource.k8s.io/v1beta2" "resource.k8s.io/v1beta1" -}}
{{- if $.Capabilities.APIVersions.Has . }}{{ $served = append $served . }}{{ end -}}
{{- end -}}
{{ .Values.resourceApiVersion | default (first $served) | default "" }}
{{- end }}

{{- define "driver.featureGates" -}}
{{ range $gate, $on := .Values.featureGates }}{{ $gate }}={{ $on }},{{ end }}
{{- end }}
