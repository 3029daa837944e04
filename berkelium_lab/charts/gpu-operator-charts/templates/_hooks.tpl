{{- /* Annotations of a hook's object. Arguments: events, weight (lower ones come first). */}}
{{- define "amd.hook" -}}
helm.sh/hook: {{ .events }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- /*
A hook's ServiceAccount, ClusterRole and binding.
Arguments: root (the chart's context), events, weight, account, role, binding (names), rule, labels.
*/}}
{{- define "amd.hookAccess" -}}
{{- $first := include "amd.hook" (dict "events" .events "weight" .weight) -}}
{{- $second := include "amd.hook" (dict "events" .events "weight" (add1 .weight)) -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- .labels | nindent 4 }}
  annotations: {{- $first | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .role }}
  labels: {{- .labels | nindent 4 }}
  annotations: {{- $first | nindent 4 }}
rules:
- {{ .rule }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .binding }}
  labels: {{- .labels | nindent 4 }}
  annotations: {{- $second | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .role }}}
subjects:
- {kind: ServiceAccount, name: {{ .account }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}

{{- /* A hook's Job, which runs in the operator's image. Arguments: root, events, weight, account, name, restart, script. */}}
{{- define "amd.hookJob" -}}
{{- $controller := .root.Values.controllerManager -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "amd.hookLabels" .root | nindent 4 }}
  annotations: {{- include "amd.hook" . | nindent 4 }}
spec:
  {{- if eq .restart "Never" }}
  backoffLimit: 0
  ttlSecondsAfterFinished: 60
  {{- end }}
  template:
    spec:
      serviceAccountName: {{ .account }}
      restartPolicy: {{ .restart }}
      {{- include "amd.pullSecrets" .root | nindent 6 }}
      {{- with $controller.manager.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $controller.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
      - name: {{ .name }}
        image: {{ include "amd.image" .root }}
        {{- if eq .restart "OnFailure" }}
        imagePullPolicy: {{ $controller.manager.imagePullPolicy }}
        {{- end }}
        command: [/bin/sh, -c, {{ .script | quote }}]
{{- end }}
