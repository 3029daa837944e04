"""What the Pulumi program brings to a lab, put there in a second: classes, policies, node labels, drivers' pods.

The program itself takes longer to apply than a check may. Everything here is made from the same settings, catalog and
policy files; in place of the releases stand bare pods of the drivers, from which the lab's hardware publishes the same
devices. A test compares the two.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from berkelium_infra import catalog, node_labels, policies
from berkelium_infra.settings import PROJECT, Settings, Toleration
from berkelium_infra.settings.warnings import splits_kubelet_plugin
from berkelium_lab import fleet as fleets
from berkelium_lab import stack_files, wait
from berkelium_lab.api import Api
from berkelium_lab.check.findings import Object
from berkelium_lab.hardware import amd, nvidia
from berkelium_lab.hardware.devices import NothingPublished
from berkelium_lab.hardware.inventory import NodeHardware, inventory
from berkelium_lab.hardware.nvidia_dialects import DYNAMIC_MIG, dialect, feature_gates

STACK = "lab"
DEVICES_SECONDS = 60

SERVER = (1, 37)
"""Version of the laboratory's API server, which decides how the drivers cut their slices."""

CHART_CLASSES = {
    "vfio.gpu.nvidia.com": "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'vfio'"
}
"""Device classes that the NVIDIA chart installs and that the stack leaves to it."""

_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NVIDIA_IMAGE = "nvcr.io/nvidia/k8s-dra-driver-gpu:v{version}"


def settings(project: Path = PROJECT) -> Settings:
    """The settings of the stack `lab`. Raises `SettingsError`."""
    return stack_files.read(project, STACK).settings(project)


def set_up(api: Api, fleet: fleets.Fleet, chosen: Settings) -> None:
    """Put everything into a fresh lab and wait until the devices of every node are published."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(api.create, [*_classes(chosen), *_policies(chosen), *_namespaces(chosen)]))
        list(pool.map(lambda labels: _label(api, *labels), _labels(fleet, chosen)))
        list(pool.map(api.create, _driver_pods(fleet, chosen)))
    expected = _expected_slices(fleet, chosen)
    wait.until(lambda: _published(api, expected), "the devices of every node are published", DEVICES_SECONDS)


def _classes(chosen: Settings) -> Iterable[Object]:
    for declared in (*catalog.DEVICE_CLASSES, *chosen.extra_device_classes):
        yield _class(declared.name, declared.selector, declared.extended_resource)
    for name, selector in CHART_CLASSES.items() if chosen.nvidia.enabled else ():
        yield _class(name, selector, None)


def _class(name: str, selector: str, extended_resource: str | None) -> Object:
    spec: Object = {"selectors": [{"cel": {"expression": selector}}]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def _policies(chosen: Settings) -> Iterable[Object]:
    for name in policies.policy_names():
        policy, binding = policies.load(name, chosen.policy_mode(name).value, chosen.policy_exemptions)
        yield policy
        if binding is not None:
            yield binding


def _namespaces(chosen: Settings) -> Iterable[Object]:
    for name in {*chosen.stack_namespaces, *chosen.project_labels}:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _labels(fleet: fleets.Fleet, chosen: Settings) -> Iterable[tuple[str, dict[str, str]]]:
    for group in fleet.node_groups:
        if group.gpu_model is None:
            continue
        labels = node_labels.labels(group.gpu_model, chosen.nvidia.dynamic_mig_models)
        for name in group.node_names:
            yield name, labels


def _label(api: Api, node: str, labels: dict[str, str]) -> None:
    api.patch("v1", "Node", node, {"metadata": {"labels": labels}})


def _driver_pods(fleet: fleets.Fleet, chosen: Settings) -> Iterable[Object]:
    """One pod per GPU node, placed by the scheduler as the DaemonSets' pods are."""
    for node in inventory(fleet).values():
        if node.model is None:
            continue
        if node.model.vendor is catalog.NVIDIA and chosen.nvidia.enabled:
            container = {
                "name": "gpus",
                "image": _nvidia_image(chosen),
                "env": [{"name": "FEATURE_GATES", "value": _gates(node, chosen)}],
                "resources": chosen.nvidia.resources.gpus.manifest(),
            }
            place = (chosen.nvidia_driver.chart.namespace, chosen.nvidia.node_selector, chosen.nvidia.tolerations)
            labels = {"nvidia-dra-driver-gpu-component": "kubelet-plugin"}
            yield _pod(node.node, container, labels, *place)
        if node.model.vendor is catalog.AMD and chosen.amd.enabled and chosen.amd.dra_driver:
            container = {"name": "plugin", "image": chosen.amd_dra_image, "command": ["gpu-kubeletplugin"]}
            place = (chosen.amd_operator.chart.namespace, chosen.amd.node_selector, chosen.amd.tolerations)
            yield _pod(node.node, container, {}, *place)


def _pod(
    node: str,
    container: Object,
    labels: dict[str, str],
    namespace: str,
    selector: dict[str, str],
    tolerations: tuple[Toleration, ...],
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"driver-{node}", "namespace": namespace, "labels": labels},
        "spec": {
            "nodeSelector": {**selector, "kubernetes.io/hostname": node},
            "tolerations": [toleration.manifest() for toleration in tolerations],
            "containers": [container],
        },
    }


def _nvidia_image(chosen: Settings) -> str:
    return chosen.nvidia.image or _NVIDIA_IMAGE.format(version=chosen.charts.nvidia.version)


def _gates(node: NodeHardware, chosen: Settings) -> str:
    models = chosen.nvidia.dynamic_mig_models
    assert node.model is not None
    dynamic = node.model.key in models if splits_kubelet_plugin(chosen) else bool(models)
    gates = {DYNAMIC_MIG: dynamic, **chosen.nvidia.feature_gates}
    return ",".join(f"{name}={str(value).lower()}" for name, value in gates.items())


def _expected_slices(fleet: fleets.Fleet, chosen: Settings) -> int:
    """How many ResourceSlices the drivers' pods will publish."""
    count = 0
    for node in inventory(fleet).values():
        try:
            if node.model and node.model.vendor is catalog.NVIDIA and chosen.nvidia.enabled:
                spoken = dialect(_nvidia_image(chosen).rpartition(":")[2])
                gates = feature_gates(_gates(node, chosen), spoken)
                count += len(nvidia.gpu_slices(node, spoken, gates, SERVER, fleet.nvlink_domain_attribute))
            if node.model and node.model.vendor is catalog.AMD and chosen.amd.enabled and chosen.amd.dra_driver:
                count += len(amd.gpu_slices(node, amd.dialect(chosen.amd_dra_image.rpartition(":")[2])))
        except NothingPublished:
            continue
    return count


def _published(api: Api, expected: int) -> bool:
    # Names alone: the devices are megabytes, and this is asked several times a second.
    answer = api.raw("GET", "/apis/resource.k8s.io/v1/resourceslices", headers={"Accept": _METADATA_ONLY})
    names = answer["items"] or []
    if len(names) < expected:
        raise wait.NotYet(f"{len(names)} of {expected} ResourceSlices")
    return True


def complete_pools(slices: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Driver and pool of which all slices of the newest generation are there."""
    counts: dict[tuple[str, str, int], tuple[int, int]] = {}
    for spec in (piece["spec"] for piece in slices):
        pool = spec["pool"]
        key = (spec["driver"], pool["name"], pool["generation"])
        counts[key] = (counts.get(key, (0, 0))[0] + 1, pool["resourceSliceCount"])
    newest: dict[tuple[str, str], int] = {}
    for driver, name, generation in counts:
        newest[driver, name] = max(generation, newest.get((driver, name), 0))
    return {key for key, generation in newest.items() if len(set(counts[*key, generation])) == 1}
