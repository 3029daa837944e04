"""What the AMD GPU operator v1.5.1 makes of a DeviceConfig (`amd.com/v1alpha1`).

Sources: internal/plugin/plugin.go, internal/nodelabeller/nodelabeller.go, internal/validator/specValidators.go and
internal/controllers/device_config_reconciler.go of ROCm/gpu-operator.
"""

from dataclasses import dataclass
from typing import Any

FINALIZER = "amd.node.kubernetes.io/deviceconfig-finalizer"

VALIDATION_ERROR = "ValidationError"
NO_MATCHING_NODES = "NoMatchingNodes"
READY = "OperatorReady"

_DRA_IMAGE = "rocm/k8s-gpu-dra-driver:latest"
_LABELLER_IMAGE = "rocm/k8s-device-plugin:labeller-latest"
_EXPORTER_IMAGE = "docker.io/rocm/device-metrics-exporter:v1.5.1"
_INIT_IMAGE = "busybox:1.36"
_WAIT_FOR_DRIVER = (
    "while [ ! -d {sys}/class/kfd ] || [ ! -d {sys}/module/amdgpu/drivers/ ]; "
    'do echo "amdgpu driver is not loaded "; sleep 2 ;done'
)
_PLUGIN_PATHS = {
    "plugins-registry": ("/var/lib/kubelet/plugins_registry", "/var/lib/kubelet/plugins_registry"),
    "plugins": ("/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins"),
    "cdi": ("/var/run/cdi", "/var/run/cdi"),
    "dev": ("/dev", "/dev"),
    "sys": ("/sys", "/sys"),
}

Object = dict[str, Any]


@dataclass(frozen=True)
class Condition:
    """A condition of the DeviceConfig's status."""

    type: str
    status: str
    reason: str
    message: str


def conditions(faults: list[str], matching_nodes: int, selector: dict[str, str]) -> list[Condition]:
    """The status conditions: `Ready`, and `Error` when something is wrong."""
    if faults:
        error = Condition("Error", "True", VALIDATION_ERROR, f"Validation failed: [{' '.join(faults)}]")
        return [error, Condition("Ready", "False", READY, "")]
    if not matching_nodes:
        wanted = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        error = Condition("Error", "True", NO_MATCHING_NODES, f"no node matches the selector {wanted}")
        return [error, Condition("Ready", "False", READY, "")]
    return [Condition("Ready", "True", READY, "")]


def faults(config: Object) -> list[str]:
    """What the operator's validation says against the DeviceConfig."""
    if dra_enabled(config) and device_plugin_enabled(config):
        return ["DRADriver and DevicePlugin cannot be enabled at the same time"]
    return []


def dra_enabled(config: Object) -> bool:
    """`spec.draDriver.enable`, by default false."""
    return bool(_block(config, "draDriver").get("enable", False))


def device_plugin_enabled(config: Object) -> bool:
    """`spec.devicePlugin.enableDevicePlugin`, by default true."""
    return bool(_block(config, "devicePlugin").get("enableDevicePlugin", True))


def node_selector(config: Object) -> dict[str, str]:
    """`spec.selector`: the nodes that the DeviceConfig is about."""
    return dict(config["spec"].get("selector") or {})


def operand_names(config: Object) -> set[str]:
    """The names of all DaemonSets that the operator may make for the DeviceConfig."""
    name = config["metadata"]["name"]
    return {f"{name}-{suffix}" for suffix in ("dra-driver", "node-labeller", "metrics-exporter")}


def daemon_sets(config: Object) -> list[Object]:
    """The DaemonSets of the DeviceConfig. The device plugin's is left out: the laboratory has no device plugin."""
    made = []
    if dra_enabled(config):
        made.append(_dra_driver(config))
    if _block(config, "devicePlugin").get("enableNodeLabeller", True):
        made.append(_node_labeller(config))
    if _block(config, "metricsExporter").get("enable", False):
        made.append(_metrics_exporter(config))
    return made


def _dra_driver(config: Object) -> Object:
    block = _block(config, "draDriver")
    environment = [
        {"name": "CDI_ROOT", "value": "/var/run/cdi"},
        {"name": "KUBELET_REGISTRAR_DIRECTORY_PATH", "value": "/var/lib/kubelet/plugins_registry"},
        {"name": "KUBELET_PLUGINS_DIRECTORY_PATH", "value": "/var/lib/kubelet/plugins"},
        _field("NODE_NAME", "spec.nodeName"),
        _field("NAMESPACE", "metadata.namespace"),
    ]
    plugin = {
        "name": "plugin",
        "image": block.get("image") or _DRA_IMAGE,
        "command": ["gpu-kubeletplugin"],
        "args": sorted(f"-{key}={value}" for key, value in (block.get("cmdLineArguments") or {}).items()),
        "env": environment,
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": name, "mountPath": inside} for name, (_, inside) in _PLUGIN_PATHS.items()],
    }
    if policy := block.get("imagePullPolicy"):
        plugin["imagePullPolicy"] = policy
    selector = dict(block.get("selector") or node_selector(config))
    if _kernel_module_management(config):
        metadata = config["metadata"]
        selector[f"kmm.node.kubernetes.io/{metadata['namespace']}.{metadata['name']}.ready"] = ""
    pod = {
        "initContainers": [_driver_init(config, "/sys", [{"name": "sys", "mountPath": "/sys"}])],
        "containers": [plugin],
        "nodeSelector": selector,
        "serviceAccountName": "amd-gpu-operator-dra-driver",
        "volumes": _host_paths({name: host for name, (host, _) in _PLUGIN_PATHS.items()}),
        **_pull_secrets(block.get("imageRegistrySecret")),
        **_tolerations(block.get("tolerations")),
    }
    name = f"{config['metadata']['name']}-dra-driver"
    return _daemon_set(config, name, {"daemonset-name": name}, pod, block.get("upgradePolicy"))


def _node_labeller(config: Object) -> Object:
    block = _block(config, "devicePlugin")
    flags = "-vram -cu-count -simd-count -device-id -family -product-name -driver-version"
    labeller = {
        "name": "node-labeller-container",
        "image": block.get("nodeLabellerImage") or _LABELLER_IMAGE,
        "command": ["sh"],
        "args": ["-c", f"./k8s-node-labeller {flags}"],
        "workingDir": "/root",
        "env": [_field("DS_NODE_NAME", "spec.nodeName")],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "dev-volume", "mountPath": "/dev"}, {"name": "sys-volume", "mountPath": "/sys"}],
    }
    if policy := block.get("nodeLabellerImagePullPolicy"):
        labeller["imagePullPolicy"] = policy
    mounts = [{"name": "sys-volume", "mountPath": "/host-sys"}, {"name": "etc-volume", "mountPath": "/host-etc"}]
    pod = {
        "initContainers": [_driver_init(config, "/host-sys", mounts)],
        "containers": [labeller],
        "nodeSelector": node_selector(config),
        "serviceAccountName": "amd-gpu-operator-node-labeller",
        "volumes": _host_paths({"dev-volume": "/dev", "sys-volume": "/sys", "etc-volume": "/etc"}),
        **_pull_secrets(block.get("imageRegistrySecret")),
        **_tolerations(block.get("nodeLabellerTolerations")),
    }
    name = config["metadata"]["name"]
    labels = {"daemonset-name": name}
    return _daemon_set(config, f"{name}-node-labeller", labels, pod, block.get("upgradePolicy"))


def _metrics_exporter(config: Object) -> Object:
    block = _block(config, "metricsExporter")
    exporter = {
        "name": "metrics-exporter-container",
        "image": block.get("image") or _EXPORTER_IMAGE,
        "env": [_field("DS_NODE_NAME", "spec.nodeName")],
        "ports": [{"name": "exporter-port", "containerPort": block.get("port", 5000), "protocol": "TCP"}],
        "securityContext": {"privileged": True},
    }
    if resources := block.get("resource"):
        exporter["resources"] = resources
    pod = {
        "initContainers": [_driver_init(config, "/sys", [{"name": "sys-volume", "mountPath": "/sys"}])],
        "containers": [exporter],
        "nodeSelector": dict(block.get("selector") or node_selector(config)),
        "serviceAccountName": "amd-gpu-operator-metrics-exporter",
        "volumes": _host_paths({"sys-volume": "/sys"}),
        **_pull_secrets(block.get("imageRegistrySecret")),
        **_tolerations(block.get("tolerations")),
    }
    name = f"{config['metadata']['name']}-metrics-exporter"
    return _daemon_set(config, name, {"daemonset-name": name}, pod, block.get("upgradePolicy"))


def _daemon_set(config: Object, name: str, labels: dict[str, str], pod: Object, upgrade: Object | None) -> Object:
    metadata = config["metadata"]
    owner = {
        "apiVersion": config["apiVersion"],
        "kind": config["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    spec: Object = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"priorityClassName": "system-node-critical", **pod},
        },
    }
    if upgrade:
        spec["updateStrategy"] = _update_strategy(upgrade)
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": metadata["namespace"], "ownerReferences": [owner]},
        "spec": spec,
    }


def _update_strategy(upgrade: Object) -> Object:
    if upgrade.get("upgradeStrategy") == "OnDelete":
        return {"type": "OnDelete"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": upgrade.get("maxUnavailable", 1)}}


def _driver_init(config: Object, sys: str, mounts: list[Object]) -> Object:
    return {
        "name": "driver-init",
        "image": _block(config, "commonConfig").get("initContainerImage") or _INIT_IMAGE,
        "command": ["sh", "-c", _WAIT_FOR_DRIVER.format(sys=sys)],
        "securityContext": {"privileged": True},
        "volumeMounts": mounts,
    }


def _kernel_module_management(config: Object) -> bool:
    """Whether KMM installs the driver: its pods then wait for the label that KMM puts on a finished node."""
    driver = _block(config, "driver")
    return bool(driver.get("enable", False)) and driver.get("driverType") != "pf-passthrough"


def _block(config: Object, name: str) -> Object:
    return config["spec"].get(name) or {}


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _host_paths(paths: dict[str, str]) -> list[Object]:
    return [{"name": name, "hostPath": {"path": path}} for name, path in paths.items()]


def _pull_secrets(secret: Object | None) -> Object:
    return {"imagePullSecrets": [secret]} if secret else {}


def _tolerations(tolerations: list[Object] | None) -> Object:
    return {"tolerations": tolerations} if tolerations else {}
