{{- define "nfd.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* As Helm's own scaffold does it: the release's name alone where it already contains the chart's. */}}
{{- define "nfd.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{ .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "nfd.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "nfd.selector" -}}
app.kubernetes.io/name: {{ include "nfd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nfd.labels" -}}
{{ include "nfd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "nfd.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* Name of a part's ServiceAccount. Arguments: root (the chart's context), part. The master's has no suffix. */}}
{{- define "nfd.account" -}}
{{- $full := include "nfd.fullname" .root -}}
{{- $own := ternary $full (printf "%s-%s" $full .part) (eq .part "master") -}}
{{ (index .root.Values .part).serviceAccount.name | default $own }}
{{- end }}
