"""Examinations of Kubernetes itself: its version, the feature gates that matter, known faults of the scheduler."""

from collections.abc import Iterator

from berkelium_infra.versions import RECOMMENDED_KUBERNETES
from berkelium_lab.api import Object
from berkelium_lab.doctor.cluster import RESOURCE_API, CannotLook, Cluster, condition, name_of
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Finding, error, info, warning
from berkelium_lab.doctor.registry import examination
from berkelium_lab.doctor.scheduler_faults import SCHEDULER_FAULTS
from berkelium_lab.recovery import definitions

PROBE = "berkelium-doctor-probe"

_SEPARATE_COUNTERS = (1, 35)
"""From this version on the API refuses counters and devices in one slice; before it, it asks for both together."""


@examination
def kubernetes_version(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """The version of Kubernetes, and whether the charts can run on it."""
    subject = f"kubernetes/{cluster.version_text}"
    yield info("kubernetes-version", subject, f"The API server is Kubernetes {cluster.version_text}.")
    if not cluster.serves(RESOURCE_API, "DeviceClass"):
        yield error(
            "kubernetes-too-old",
            subject,
            f"The API server does not serve {RESOURCE_API}, by which devices are handed out.",
            f"Upgrade to Kubernetes {RECOMMENDED_KUBERNETES} or later.",
        )
        return
    for release in expectation.releases:
        minimum = tuple(int(part) for part in release.chart.minimum_kubernetes.split("."))
        if cluster.version[:2] < minimum:
            yield error(
                "kubernetes-too-old",
                subject,
                f"Chart {release.chart.name} {release.version} needs Kubernetes {release.chart.minimum_kubernetes}.",
                f"Upgrade to Kubernetes {RECOMMENDED_KUBERNETES} or later.",
            )


@examination
def served_definitions(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:  # noqa: ARG001
    """Whether every CustomResourceDefinition that was accepted is served."""
    for crd in cluster.list(*definitions.CRD):
        if definitions.cut_off(crd):
            name, established = name_of(crd), condition(crd, "Established")
            yield error(
                "definition-not-served",
                f"customresourcedefinition/{name}",
                f"The API server accepted {name} and does not serve it: it was killed in between, and does not take "
                "that up again by itself.",
                f"Any change of it will do: `kubectl annotate crd {name} berkelium.io/served-again=true`.",
                f"Established is {established['status']} since {established.get('lastTransitionTime')}",
            )


@examination
def extended_resource_gate(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:  # noqa: ARG001
    """Whether the API server keeps the extended resource of a device class (gate DRAExtendedResource)."""
    if not cluster.serves(RESOURCE_API, "DeviceClass"):
        return
    try:
        kept = "extendedResourceName" in cluster.probe(_class_probe())["spec"]
    except CannotLook:
        # What is stored tells as well, as long as something is stored.
        if not any("extendedResourceName" in one["spec"] for one in cluster.classes):
            raise
        kept = True
    if not kept:
        yield error(
            "gate-extended-resource",
            "gate/DRAExtendedResource",
            "The API server drops a DeviceClass's extendedResourceName: a limit such as nvidia.com/gpu finds no GPU.",
            "Switch the gate on in the API server, controller manager, scheduler and every kubelet, or upgrade to "
            f"Kubernetes {RECOMMENDED_KUBERNETES}; then apply the stack again, since the fields are gone.",
            "a DeviceClass with extendedResourceName came back without it (dry run)",
        )


@examination
def partitionable_devices_gate(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """Whether the API server keeps shared counters (gate DRAPartitionableDevices)."""
    nvidia = expectation.settings.nvidia
    if not (nvidia.enabled and nvidia.dynamic_mig_models and cluster.serves(RESOURCE_API, "ResourceSlice")):
        return
    try:
        kept = "sharedCounters" in cluster.probe(_slice_probe(cluster.version))["spec"]
    except CannotLook:
        if not any("sharedCounters" in one["spec"] for one in cluster.slices):
            raise
        kept = True
    if not kept:
        yield error(
            "gate-partitionable-devices",
            "gate/DRAPartitionableDevices",
            "The API server drops shared counters: a GPU and all of its MIG devices can be handed out at once.",
            "Switch the gate on in the API server and the scheduler, or upgrade to Kubernetes "
            f"{RECOMMENDED_KUBERNETES}; until then set nvidia.dynamicMigModels to [].",
            "a ResourceSlice with sharedCounters came back without them (dry run)",
        )


def _class_probe() -> Object:
    return {
        "apiVersion": RESOURCE_API,
        "kind": "DeviceClass",
        "metadata": {"name": PROBE},
        "spec": {"extendedResourceName": "doctor.berkelium.io/probe"},
    }


def _slice_probe(version: tuple[int, int, int]) -> Object:
    spec: Object = {
        "driver": "doctor.berkelium.io",
        "allNodes": True,
        "pool": {"name": PROBE, "generation": 1, "resourceSliceCount": 1},
        "sharedCounters": [{"name": "probe", "counters": {"probe": {"value": "1"}}}],
    }
    if version[:2] < _SEPARATE_COUNTERS:
        consumed = {"counterSet": "probe", "counters": {"probe": {"value": "1"}}}
        spec["devices"] = [{"name": "probe", "consumesCounters": [consumed]}]
    return {"apiVersion": RESOURCE_API, "kind": "ResourceSlice", "metadata": {"name": PROBE}, "spec": spec}


@examination
def scheduler_faults(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """Known faults of this version of Kubernetes in handing out devices."""
    mig = bool(expectation.settings.nvidia.enabled and expectation.settings.nvidia.dynamic_mig_models)
    for fault in SCHEDULER_FAULTS:
        if fault.affects(cluster.version) and (mig or not fault.needs_mig):
            unfixed = fault.minors[cluster.version[1]] is None
            make = info if unfixed else warning
            yield make(
                "scheduler-fault",
                f"kubernetes/{cluster.version_text}",
                f"{fault.summary} (kubernetes {fault.issue})",
                fault.remedy,
            )
