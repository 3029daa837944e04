"""A manifest as Helm hands it to the post-renderer, in both styles in which charts write lists."""

import json

DROP = "berkelium.io/postrender-drop-device-classes"
SPLIT = "berkelium.io/postrender-split-by"
INIT = "berkelium.io/postrender-init-resources"
LABEL = "berkelium.io/dynamic-mig"
AMOUNTS = {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}

ACCOUNT = """\
---
# Source: nvidia-dra-driver-gpu/templates/rbac.yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: driver   # two spaces and a comment
  annotations: {}

"""

CLASS = """\
---
# Source: nvidia-dra-driver-gpu/templates/deviceclass.yaml
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: {name}
spec:
  selectors:
  - cel:
      expression: "device.driver == 'gpu.nvidia.com'"
"""

DAEMON_SET = """\
---
# Source: nvidia-dra-driver-gpu/templates/kubeletplugin.yaml
# Copyright of the chart's authors
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: nvidia-dra-driver-gpu-kubelet-plugin
  namespace: gpus
spec:
  selector:
    matchLabels:
      nvidia-dra-driver-gpu-component: kubelet-plugin
  template:
    metadata:
      annotations:
        berkelium.io/postrender-drop-device-classes: gpu.nvidia.com,mig.nvidia.com
        berkelium.io/postrender-split-by: berkelium.io/dynamic-mig
        berkelium.io/postrender-init-resources: 'AMOUNTS'
      labels:
        app.kubernetes.io/name: nvidia-dra-driver-gpu
        nvidia-dra-driver-gpu-component: kubelet-plugin
    spec:
      priorityClassName: system-node-critical
      initContainers:
      - name: init-container
        image: nvcr.io/nvidia/k8s-dra-driver-gpu:v25.12.0
        command: [bash, /usr/bin/kubelet-plugin-prestart.sh]
        volumeMounts:
        - name: driver-root-parent
          mountPath: /driver-root-parent
          # A comment at the end of the container.
      containers:
      - name: compute-domains
        args:
        - |-
          # A script, whose lines look like YAML:
          FEATURE_GATES: DynamicMIG=true
          compute-domain-kubelet-plugin -v $(LOG_VERBOSITY)
        env:
        - name: FEATURE_GATES
          value: "DynamicMIG=true,TimeSlicingSettings=true,"
      - name: gpus
        resources:
          {}
        env:
        # LOG_VERBOSITY is the source of truth.
        - name: LOG_VERBOSITY
          value: "4"
        - name: NODE_NAME
          valueFrom:
            fieldRef:
              fieldPath: spec.nodeName
        - name: FEATURE_GATES
          value: "DynamicMIG=true,TimeSlicingSettings=true,"
      affinity:
        nodeAffinity: {}
""".replace("AMOUNTS", json.dumps(AMOUNTS, separators=(",", ":")))

CLASSES = tuple(CLASS.format(name=name) for name in ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"))
MANIFEST = "".join((ACCOUNT, *CLASSES, DAEMON_SET))


def indented(manifest: str) -> str:
    """The same manifest with every list two columns deeper than its key, as other charts write it."""
    result: list[str] = []
    deeper: list[int] = []
    for line in manifest.splitlines(keepends=True):
        column = len(line) - len(line.lstrip())
        if line.strip() and line[0] not in "-#":
            is_item = line.lstrip().startswith("- ")
            while deeper and (
                column < deeper[-1] or (column == deeper[-1] and not is_item and "#" not in line[: column + 1])
            ):
                deeper.pop()
            if is_item and column not in deeper:
                deeper.append(column)
        result.append("  " * len(deeper) + line if line.strip() and line[0] not in "-#" else line)
    return "".join(result)
