{{- /* As Helm's own scaffold does it: the release's name alone where it already contains the chart's. */}}
{{- define "amd.fullname" -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{ $full | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "amd.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "amd.hookLabels" -}}
{{ include "amd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "amd.labels" -}}
app.kubernetes.io/component: amd-gpu
app.kubernetes.io/part-of: amd-gpu
{{ include "amd.hookLabels" . }}
{{- end }}

{{- define "amd.image" -}}
{{ .Values.controllerManager.manager.image.repository }}:{{ .Values.controllerManager.manager.image.tag }}
{{- end }}

{{- define "amd.pullSecrets" -}}
{{- $secrets := .Values.global.imagePullSecrets -}}
{{- with .Values.controllerManager.manager.imagePullSecrets }}{{ $secrets = append $secrets (dict "name" .) }}{{ end -}}
{{- with $secrets -}}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end }}

{{- define "amd.resourceApi" -}}
{{- $served := list -}}
{{- range list "resource.k8s.io/v1" "resource.k8s.io/v1beta2" "resource.k8s.io/v1beta1" -}}
{{- if $.Capabilities.APIVersions.Has . }}{{ $served = append $served . }}{{ end -}}
{{- end -}}
{{ first $served | default "" }}
{{- end }}
