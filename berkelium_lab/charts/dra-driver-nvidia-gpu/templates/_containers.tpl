{{- /*
One container of the kubelet plugin.
Arguments: root (the chart's context), name, command, values (its key of kubeletPlugin.containers), livenessPeriod.
The environment is in block style, one variable after the other, since the stack's post-renderer reads it.
*/}}
{{- define "driver.pluginContainer" -}}
{{- $root := .root -}}
{{- $plugin := $root.Values.kubeletPlugin -}}
{{- $port := int .values.healthcheckPort -}}
{{- $env := dict
      "CDI_ROOT" "/var/run/cdi"
      "KUBELET_PLUGINS_DIRECTORY_PATH" $plugin.kubeletPluginsDirectoryPath
      "KUBELET_REGISTRAR_DIRECTORY_PATH" $plugin.kubeletRegistrarDirectoryPath
      "LOG_VERBOSITY" $root.Values.logVerbosity
      "MASK_NVIDIA_DRIVER_PARAMS" ""
      "NVIDIA_DRIVER_ROOT" $root.Values.nvidiaDriverRoot
      "NVIDIA_MIG_CONFIG_DEVICES" "all"
      "NVIDIA_VISIBLE_DEVICES" "void" -}}
{{- if eq .name "gpus" }}{{ $_ := set $env "IMAGE_NAME" (include "driver.image" $root) }}{{ end -}}
{{- with $root.Values.nvidiaCDIHookPath }}{{ $_ := set $env "NVIDIA_CDI_HOOK_PATH" . }}{{ end -}}
{{- if $root.Values.featureGates }}{{ $_ := set $env "FEATURE_GATES" (include "driver.featureGates" $root) }}{{ end -}}
{{- if $port }}{{ $_ := set $env "HEALTHCHECK_PORT" $port }}{{ end -}}
{{- if $plugin.metrics.enabled }}
{{- $_ := set $env "HTTP_ENDPOINT" (ternary $plugin.metrics.gpuHttpEndpoint $plugin.metrics.computeDomainHttpEndpoint (eq .name "gpus")) -}}
{{- $_ := set $env "METRICS_PATH" $plugin.metrics.metricsPath -}}
{{- end -}}
- name: {{ .name }}
  image: {{ include "driver.image" $root }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  command: ["bash", "-c"]
  args: ["{{ .command }} -v $(LOG_VERBOSITY)"]
  securityContext: {{- toYaml .values.securityContext | nindent 4 }}
  resources: {{- toYaml .values.resources | nindent 4 }}
  {{- if gt $port 0 }}
  startupProbe:
    grpc: {port: {{ $port }}, service: liveness}
    failureThreshold: 600
    periodSeconds: 1
    timeoutSeconds: 10
  livenessProbe:
    grpc: {port: {{ $port }}, service: liveness}
    failureThreshold: 3
    periodSeconds: {{ .livenessPeriod }}
    timeoutSeconds: 10
  {{- end }}
  env:
  {{- range $variable, $value := $env }}
  - name: {{ $variable }}
    value: {{ $value | quote }}
  {{- end }}
  - name: NODE_NAME
    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
  - name: NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  {{- if eq .name "gpus" }}
  - name: SERVICE_ACCOUNT_NAME
    valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}
  {{- end }}
  {{- with .values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  volumeMounts:
  - {name: plugins-registry, mountPath: {{ $plugin.kubeletRegistrarDirectoryPath | quote }}}
  - {name: plugins, mountPath: {{ $plugin.kubeletPluginsDirectoryPath | quote }}, mountPropagation: Bidirectional}
  - {name: cdi, mountPath: /var/run/cdi}
  - name: driver-root
    mountPath: /driver-root
    mountPropagation: HostToContainer
    {{- if eq .name "compute-domains" }}
    readOnly: true
    {{- end }}
{{- end }}
