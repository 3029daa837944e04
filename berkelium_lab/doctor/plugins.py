"""The drivers' kubelet plugins, recognised by the program that they run, whatever chart or operator brought them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from berkelium_infra.catalog import AMD, NVIDIA, Vendor
from berkelium_infra.node_labels import MODEL_LABEL, VENDOR_LABELS
from berkelium_lab.api import Object
from berkelium_lab.doctor.cluster import Cluster, condition, name_of

_PROGRAMS = {
    NVIDIA: re.compile(r"(?<![-\w])gpu-kubelet-plugin\b"),
    AMD: re.compile(r"(?<![-\w])gpu-kubeletplugin\b"),
}

NO_MODEL = "unknown model"

# The DaemonSet controller adds these to every pod it makes (pkg/controller/daemon/util/daemonset_util.go).
_ALWAYS_TOLERATED = frozenset(
    f"node.kubernetes.io/{name}"
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)


@dataclass(frozen=True)
class Plugins:
    """One vendor's kubelet plugins: the DaemonSets that make them, and the pods by node."""

    vendor: Vendor
    daemon_sets: tuple[Object, ...]
    pods: dict[str, Object]

    def missing_on(self, node: Object) -> str:
        """Why no DaemonSet puts a pod on the node, as far as taints and node selectors tell."""
        if not self.daemon_sets:
            return "there is no kubelet plugin in the cluster"
        reasons = [f"{name_of(one)}: {', '.join(_obstacles(node, one)) or 'its affinity'}" for one in self.daemon_sets]
        return f"no kubelet plugin runs on it ({'; '.join(reasons)})"


def plugins(cluster: Cluster, vendor: Vendor) -> Plugins:
    """The vendor's kubelet plugins; a pod that is being deleted does not count."""
    daemon_sets = tuple(
        one for one in cluster.list("apps/v1", "DaemonSet") if _runs(vendor, one["spec"]["template"]["spec"])
    )
    pods = {
        pod["spec"]["nodeName"]: pod
        for pod in cluster.pods
        if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"] and _runs(vendor, pod["spec"])
    }
    return Plugins(vendor, daemon_sets, pods)


def gpu_nodes(cluster: Cluster, vendor: Vendor) -> list[Object]:
    """The nodes that node-feature-discovery labelled as having GPUs of the vendor."""
    return [node for node in cluster.nodes if labels_of(node).get(VENDOR_LABELS[vendor]) == "true"]


def model_of(node: Object) -> str:
    """The node's GPU model by its label."""
    return labels_of(node).get(MODEL_LABEL, NO_MODEL)


def labels_of(obj: Object) -> dict[str, str]:
    """The object's labels."""
    return obj["metadata"].get("labels") or {}


def is_ready(pod: Object) -> bool:
    """Whether all of the pod's containers are ready."""
    return condition(pod, "Ready").get("status") == "True"


def complaint(pod: Object) -> str:
    """Why a pod is not ready: the reason of a waiting container, or the pod's own words."""
    status = pod.get("status") or {}
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        waiting = (container.get("state") or {}).get("waiting")
        if waiting:
            said = f": {waiting['message']}" if waiting.get("message") else ""
            return f"container {container['name']} {waiting.get('reason', 'waits')}{said}"
    said = condition(pod, "Ready") or condition(pod, "PodScheduled")
    return said.get("message") or said.get("reason") or f"phase {status.get('phase', 'unknown')}"


def feature_gates(pod: Object) -> str:
    """The `FEATURE_GATES` of an NVIDIA plugin, such as `DynamicMIG=true`; empty where there are none."""
    for container in pod["spec"]["containers"]:
        for variable in container.get("env") or []:
            if variable["name"] == "FEATURE_GATES":
                return str(variable.get("value", "")).strip(",")
    return ""


def _runs(vendor: Vendor, spec: Object) -> bool:
    return any(_PROGRAMS[vendor].search(text) for text in _commands(spec))


def _commands(spec: Object) -> Iterator[str]:
    for container in spec.get("containers") or []:
        yield " ".join([*(container.get("command") or []), *(container.get("args") or [])])


def _obstacles(node: Object, daemon_set: Object) -> Iterator[str]:
    pod = daemon_set["spec"]["template"]["spec"]
    for taint in node["spec"].get("taints") or []:
        if taint["effect"] != "PreferNoSchedule" and not _tolerated(taint, pod.get("tolerations") or []):
            yield f"does not tolerate the taint {taint['key']}"
    for key, value in (pod.get("nodeSelector") or {}).items():
        if labels_of(node).get(key) != value:
            yield f"wants the label {key}={value}"


def _tolerated(taint: Object, tolerations: list[Object]) -> bool:
    if taint["key"] in _ALWAYS_TOLERATED:
        return True
    return any(
        toleration.get("effect", taint["effect"]) == taint["effect"]
        and toleration.get("key", taint["key"]) == taint["key"]
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
        for toleration in tolerations
    )
