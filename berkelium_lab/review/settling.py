"""Waiting until the effects of an operation have come to rest: rollouts, labels, devices, deletions."""

import time
from collections.abc import Callable
from typing import Any

from berkelium_lab.api import Api, Object
from berkelium_lab.wait import NotYet, until

QUIET_SECONDS = 3.0
"""How long nothing may have moved once every rollout is complete: labels, pods and devices follow each other faster."""

STUCK_SECONDS = 12.0
"""How long nothing may have moved when a rollout is not complete, which may be what the change leads to."""

DEADLINE_SECONDS = 120.0
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def settle(api: Api, clock: Callable[[], float] = time.monotonic) -> None:
    """Return when the cluster has come to rest. Raises `TimeoutError` after `DEADLINE_SECONDS`."""
    last: Any = None
    since = clock()

    def probe() -> bool:
        nonlocal last, since
        workloads = [*api.list("apps/v1", "DaemonSet"), *api.list("apps/v1", "Deployment")]
        seen = _moving_parts(api, workloads)
        if seen != last:
            last, since = seen, clock()
        unfinished = [obj["metadata"]["name"] for obj in workloads if not rolled_out(obj)]
        quiet = clock() - since
        if quiet < (STUCK_SECONDS if unfinished else QUIET_SECONDS):
            waiting = f"; not rolled out: {', '.join(unfinished)}" if unfinished else ""
            raise NotYet(f"something moved {quiet:.1f} s ago{waiting}")
        return True

    until(probe, "the cluster comes to rest", DEADLINE_SECONDS, interval=0.25)


def rolled_out(workload: Object) -> bool:
    """Whether a DaemonSet or Deployment has every pod that it wants, of the newest template and ready."""
    status = workload.get("status", {})
    if status.get("observedGeneration") != workload["metadata"]["generation"]:
        return False
    if workload["kind"] == "DaemonSet":
        wanted, updated, ready = "desiredNumberScheduled", "updatedNumberScheduled", "numberReady"
        return status.get(wanted, 0) == status.get(updated, 0) == status.get(ready, 0)
    wanted = workload["spec"].get("replicas", 1)
    return wanted == status.get("updatedReplicas", 0) == status.get("readyReplicas", 0) == status.get("replicas", 0)


def _moving_parts(api: Api, workloads: list[Object]) -> Any:
    pods = [(pod["metadata"]["uid"], pod.get("status", {}).get("phase")) for pod in api.list("v1", "Pod")]
    slices = api.raw("GET", "/apis/resource.k8s.io/v1/resourceslices", headers={"Accept": _METADATA_ONLY})["items"]
    nodes = [(node["metadata"]["labels"], node["spec"].get("taints")) for node in api.list("v1", "Node")]
    namespaces = [(each["metadata"]["name"], each["status"].get("phase")) for each in api.list("v1", "Namespace")]
    states = [(obj["metadata"]["uid"], obj["metadata"]["generation"], _counts(obj)) for obj in workloads]
    versions = [(each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in slices]
    return pods, versions, nodes, namespaces, states


def _counts(workload: Object) -> dict[str, int]:
    return {key: value for key, value in workload.get("status", {}).items() if isinstance(value, int)}
