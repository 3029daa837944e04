{{- /*
Head of a part's pod template, up to its containers.
Arguments: root (the chart's context), part, values (its key of the values), config (text for the checksum, may be empty).
*/}}
{{- define "nfd.podHead" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "nfd.selector" $root | nindent 4 }}
    role: {{ .part }}
  {{- if or .config .values.annotations }}
  annotations:
    {{- with .config }}
    checksum/config: {{ sha256sum . }}
    {{- end }}
    {{- with .values.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
spec:
  serviceAccountName: {{ include "nfd.account" . }}
  dnsPolicy: {{ .values.dnsPolicy }}
  hostNetwork: {{ .values.hostNetwork }}
  securityContext: {{- toYaml .values.podSecurityContext | nindent 4 }}
  {{- with .values.priorityClassName | default $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- include "nfd.placement" .values | nindent 2 }}
{{- end }}

{{- define "nfd.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "nfd.probe" -}}
httpGet: {path: /healthz, port: http}
{{- with . }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Head of a part's container, up to its arguments. Arguments: root, part, values. */}}
{{- define "nfd.container" -}}
- name: {{ .part }}
  image: {{ include "nfd.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [nfd-{{ .part }}]
  ports:
  - {name: http, containerPort: {{ .values.port }}}
  {{- with .values.startupProbe }}
  startupProbe: {{- include "nfd.probe" . | nindent 4 }}
  {{- end }}
  livenessProbe: {{- include "nfd.probe" .values.livenessProbe | nindent 4 }}
  readinessProbe: {{- include "nfd.probe" .values.readinessProbe | nindent 4 }}
  resources: {{- toYaml .values.resources | nindent 4 }}
  securityContext: {{- toYaml (.values.securityContext | default .root.Values.master.securityContext) | nindent 4 }}
  env:
  - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
  {{- if eq .part "worker" }}
  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
  {{- end }}
  {{- with .values.extraEnvs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "nfd.featureGates" -}}
{{- range $gate, $on := .Values.featureGates }}
- -feature-gates={{ $gate }}={{ $on }}
{{- end }}
{{- end }}

{{- define "nfd.hook" -}}
helm.sh/hook: post-delete
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
