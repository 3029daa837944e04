"""Examinations of the drivers: a release that is deployed works only when every GPU node publishes its devices."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from berkelium_infra import catalog
from berkelium_infra.catalog import MODELS, Vendor
from berkelium_infra.node_labels import MODEL_LABEL, RULES_NAME, VENDOR_LABELS
from berkelium_lab.api import Object
from berkelium_lab.doctor.cluster import Cluster, condition, name_of
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Finding, counted, error, info, some, warning
from berkelium_lab.doctor.inventory import published
from berkelium_lab.doctor.plugins import (
    NO_MODEL,
    Plugins,
    complaint,
    feature_gates,
    gpu_nodes,
    is_ready,
    labels_of,
    model_of,
    plugins,
)
from berkelium_lab.doctor.registry import examination


@examination
def node_labels(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """The labels by which node-feature-discovery tells GPU nodes."""
    if cluster.named("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", RULES_NAME) is None:
        yield error(
            "label-rules-missing",
            f"nodefeaturerule/{RULES_NAME}",
            "The rules that label GPU nodes are missing; the drivers' pods are placed by these labels.",
            "Apply the stack: `pulumi up --refresh`.",
        )
    for vendor in expectation.vendors:
        nodes = gpu_nodes(cluster, vendor)
        if not nodes:
            yield warning(
                "no-gpu-nodes",
                f"vendor/{vendor.name}",
                f"No node carries the label {VENDOR_LABELS[vendor]}=true: the cluster knows no {vendor.name} GPU.",
                f"With {vendor.name} nodes, see whether the pods of node-feature-discovery run, on those nodes too; "
                f"without, set {vendor.name.lower()}.enabled to false.",
            )
        known = [model.key for model in MODELS if model.vendor is vendor]
        for node in nodes:
            if model_of(node) not in known:
                yield warning(
                    "node-model-unknown",
                    f"node/{name_of(node)}",
                    f"The node has {vendor.name} hardware that the catalog does not know.",
                    "Add the model with its PCI id to berkelium_infra/catalog.py and apply the stack.",
                    f"{MODEL_LABEL} is {labels_of(node).get(MODEL_LABEL, 'not set')}",
                )


@examination
def kubelet_plugins(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """The drivers' kubelet plugins: wanted and ready, by GPU model."""
    for vendor in expectation.vendors:
        running = plugins(cluster, vendor)
        if not running.daemon_sets:
            yield error(
                "plugin-missing",
                f"vendor/{vendor.name}",
                f"No DaemonSet runs the {vendor.name} kubelet plugin.",
                "See the findings on the releases; with AMD also the DeviceConfig's conditions: "
                "`kubectl get deviceconfigs.amd.com -A -o yaml`.",
            )
        for daemon_set in running.daemon_sets:
            yield _counted(cluster, running, daemon_set)


def _counted(cluster: Cluster, running: Plugins, daemon_set: Object) -> Finding:
    namespace, name, status = daemon_set["metadata"]["namespace"], name_of(daemon_set), daemon_set.get("status") or {}
    wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
    own = {node: pod for node, pod in running.pods.items() if _owned(pod, daemon_set)}
    models = {name_of(node): model_of(node) for node in cluster.nodes}
    total = Counter(models.get(node, NO_MODEL) for node in own)
    good = Counter(models.get(node, NO_MODEL) for node, pod in own.items() if is_ready(pod))
    groups = [f"{model}: {good[model]} of {total[model]} ready" for model in sorted(total)]
    subject = f"daemonset/{namespace}/{name}"
    if ready >= wanted:
        return info("plugin-ready", subject, f"{ready} of {wanted} kubelet plugins are ready.", "", *groups)
    sick = [f"{name_of(pod)} on {node}: {complaint(pod)}" for node, pod in sorted(own.items()) if not is_ready(pod)]
    return error(
        "plugin-not-ready",
        subject,
        f"{ready} of {wanted} kubelet plugins are ready; the other nodes hand out no devices.",
        f"Read the plugin's log: `kubectl -n {namespace} logs daemonset/{name} --all-containers`.",
        *groups,
        *sick,
    )


def _owned(pod: Object, daemon_set: Object) -> bool:
    uid = daemon_set["metadata"]["uid"]
    return any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or [])


@examination
def device_configs(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """What the AMD operator says of its DeviceConfigs."""
    if not expectation.settings.amd.enabled:
        return
    for config in cluster.list("amd.com/v1alpha1", "DeviceConfig"):
        fault = condition(config, "Error")
        if fault.get("status") == "True":
            yield error(
                "deviceconfig-error",
                f"deviceconfig/{config['metadata']['namespace']}/{name_of(config)}",
                "The AMD operator does not act on the DeviceConfig.",
                "Mend what it says. After NoMatchingNodes the operator does not look again: restart it once the nodes "
                "have their labels.",
                f"{fault.get('reason', 'Error')}: {fault.get('message', '')}",
            )


@examination
def published_devices(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """Whether every GPU node publishes devices, and whether who published them still runs."""
    for vendor in expectation.vendors:
        running = plugins(cluster, vendor)
        pieces = [piece["spec"] for piece in cluster.slices if piece["spec"]["driver"] == vendor.driver]
        publishing = {spec["nodeName"] for spec in pieces if spec.get("nodeName")}
        yield from _silent_nodes(running, [n for n in gpu_nodes(cluster, vendor) if name_of(n) not in publishing])
        yield from _partitioned_nodes(cluster, vendor)
        orphaned = sorted(publishing - set(running.pods))
        if orphaned:
            existing = {name_of(node) for node in cluster.nodes}
            yield error(
                "slices-without-plugin",
                f"driver/{vendor.driver}",
                f"{counted(orphaned, 'node')} with ResourceSlices of {vendor.driver} and without a kubelet plugin: "
                "pods are placed there and hang.",
                "Bring the plugin back; for a node that is gone for good, delete its slices: "
                f"`kubectl delete resourceslices --field-selector spec.driver={vendor.driver},spec.nodeName=NODE`.",
                *some([node if node in existing else f"{node} (the node does not exist)" for node in orphaned]),
            )


def _silent_nodes(running: Plugins, nodes: list[Object]) -> Iterator[Finding]:
    vendor = running.vendor
    for model in sorted({model_of(node) for node in nodes}):
        silent = [node for node in nodes if model_of(node) == model]
        yield error(
            "node-without-slices",
            f"gpu-model/{model}",
            f"{counted(silent, 'node')} with {vendor.name} GPUs (model {model}) without a ResourceSlice of "
            f"{vendor.driver}: their GPUs cannot be used. That a release is deployed does not mean that it works.",
            _remedy(vendor),
            *some([f"{name_of(node)}: {_why_nothing(running, node)}" for node in silent]),
        )


def _partitioned_nodes(cluster: Cluster, vendor: Vendor) -> Iterator[Finding]:
    """Nodes whose GPUs can only be had in parts, though there is a class for whole ones."""
    types: dict[str, set[str]] = defaultdict(set)
    for device in published(cluster):
        if device.driver == vendor.driver:
            types[device.node].add(device.type)
    partitioned = sorted(node for node, found in types.items() if vendor.gpu_type not in found)
    if partitioned:
        yield warning(
            "node-without-whole-gpus",
            f"driver/{vendor.driver}",
            f"{counted(partitioned, 'node')} with parts of GPUs only: claims for a whole GPU cannot land there.",
            "Their MIG mode was on when the driver started; to hand out whole GPUs, switch it off while no plugin runs "
            "there (nvidia-smi -mig 0).",
            *some(partitioned),
        )


def _why_nothing(running: Plugins, node: Object) -> str:
    pod = running.pods.get(name_of(node))
    if condition(node, "Ready").get("status") != "True":
        return f"the node is not ready: {condition(node, 'Ready').get('message', 'no word from its kubelet')}"
    if pod is None:
        return running.missing_on(node)
    if not is_ready(pod):
        return f"its kubelet plugin {name_of(pod)} is not ready: {complaint(pod)}"
    gates = feature_gates(pod)
    models = {model.key: model for model in MODELS}
    model = models.get(model_of(node))
    if "DynamicMIG=true" in gates and model and not model.mig_capable:
        return (
            f"its kubelet plugin {name_of(pod)} runs with DynamicMIG, which {model.title} cannot do: driver 25.12.0 "
            "then publishes nothing (kubernetes-sigs/dra-driver-nvidia-gpu#1092)"
        )
    return f"its kubelet plugin {name_of(pod)} is ready and publishes nothing" + (f" ({gates})" if gates else "")


def _remedy(vendor: Vendor) -> str:
    if vendor is catalog.NVIDIA:
        return (
            "See what stands in the way: taints (nvidia.tolerations), labels (nvidia.nodeSelector), the plugin's log, "
            "or DynamicMIG on hardware without MIG (nvidia.splitKubeletPlugin: auto)."
        )
    return "See what stands in the way: taints (amd.tolerations), the amdgpu kernel module, the plugin's log."
