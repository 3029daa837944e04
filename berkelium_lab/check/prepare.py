"""Objects as they are really created: what the lab does not have, or would only wait for, is left out.

Everything that decides over devices, CPU, memory and nodes stays. `tried` says how many pods are asked for.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from berkelium_lab.check import references
from berkelium_lab.check.findings import Finding, Item, Object, note
from berkelium_lab.check.shapes import RESOURCE_API, WORKLOADS, dig, entries, mapping, pod_template
from berkelium_lab.check.throwaway import Lane, label_pods

MOST_PODS = 200
"""How many pods of one workload are tried; a fleet has fewer devices."""

TRIED = (*WORKLOADS, references.CLAIM, references.TEMPLATE)
RULES = ("LimitRange", "ResourceQuota")

_PROBE_RESOURCES = {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"cpu": "1m", "memory": "1Mi"}}


@dataclass
class Prepared:
    """An object to create for an item. `pods` is how many it makes; None where the cluster decides (a DaemonSet)."""

    item: Item
    number: int
    obj: Object
    pods: int | None = 0


def prepare(item: Item, number: int, lane: Lane) -> Prepared:
    """The object to create for an item of one of the kinds `TRIED` or `RULES`."""
    obj = lane.place(item)
    template = pod_template(obj)
    if template is None:
        return Prepared(item, number, obj)
    _without_what_waits(template[0])
    if item.kind == "CronJob":
        obj = _job_of(obj)
    label_pods(obj, number)
    pods, notes = _limited(obj)
    item.add(*notes)
    return Prepared(item, number, obj, pods)


def probe(item: Item, number: int, lane: Lane) -> Prepared:
    """A pod that uses the item, a claim or a claim template that no object of the input uses."""
    key = "resourceClaimName" if item.kind == references.CLAIM else "resourceClaimTemplateName"
    resources = {**_PROBE_RESOURCES, "claims": [{"name": "devices"}]}
    container = {"name": "probe", "image": "example.com/probe:1", "command": ["probe"], "resources": resources}
    obj: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"check-probe-{number}", "namespace": lane.namespace(item.namespace)},
        "spec": {
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "devices", key: item.name}],
            "containers": [container],
        },
    }
    label_pods(obj, number)
    return Prepared(item, number, obj, 1)


def _without_what_waits(pod: Object) -> None:
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    for _, volume in entries(spec.get("volumes")):
        # The lab has no storage; a volume says nothing about devices.
        if {"persistentVolumeClaim", "ephemeral"} & set(volume):
            name = volume.get("name")
            volume.clear()
            volume.update({"name": name, "emptyDir": {}})
    for key in ("schedulingGates", "schedulerName", "activeDeadlineSeconds"):
        spec.pop(key, None)


def _job_of(cron: Object) -> Object:
    """The Job that the CronJob would make when its time comes."""
    template = mapping(dig(cron, "spec.jobTemplate"))
    name = str(dig(cron, "metadata.name") or "")[:50]
    metadata = {**copy.deepcopy(mapping(template.get("metadata"))), "name": name}
    metadata["namespace"] = dig(cron, "metadata.namespace")
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template.get("spec") or {}}


def _limited(obj: Object) -> tuple[int | None, list[Finding]]:
    """Set how many pods are made at once, and return it."""
    kind, spec = obj["kind"], mapping(obj.get("spec"))
    if kind == "Pod":
        return 1, []
    if kind == "DaemonSet":
        return None, []
    if kind == "Job":
        return _limited_job(spec)
    if kind == "StatefulSet":
        # One after the other, a first pod without a place would hide whether the others have one.
        spec["podManagementPolicy"] = "Parallel"
        claims = [mapping(c.get("metadata")).get("name") for _, c in entries(spec.pop("volumeClaimTemplates", None))]
        pod = mapping(dig(spec, "template.spec"))
        if claims:
            pod["volumes"] = [*(pod.get("volumes") or []), *({"name": name, "emptyDir": {}} for name in claims)]
    wanted = _number(spec.get("replicas"), 1)
    if wanted == 0:
        return 0, [note("no-pods", "replicas is 0: there is nothing to try")]
    spec["replicas"] = min(wanted, MOST_PODS)
    return spec["replicas"], _of_many(wanted)


def _limited_job(spec: Object) -> tuple[int, list[Finding]]:
    spec.pop("ttlSecondsAfterFinished", None)
    spec.pop("activeDeadlineSeconds", None)
    spec["suspend"] = False
    parallel = _number(spec.get("parallelism"), 1)
    completions = _number(spec.get("completions"), parallel)
    wanted = min(parallel, completions) if spec.get("completions") is not None else parallel
    if wanted > MOST_PODS:
        spec["parallelism"] = MOST_PODS
    return min(wanted, MOST_PODS), _of_many(wanted)


def _of_many(wanted: int) -> list[Finding]:
    if wanted <= MOST_PODS:
        return []
    return [note("many-pods", f"{MOST_PODS} of {wanted} pods were tried")]


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and value >= 0 else default


def unused(group: list[Item], index: references.Index) -> Iterator[Item]:
    """The claims and claim templates of the group that no pod of it uses."""
    used = set()
    for item in group:
        for reference in references.of(item):
            target = index.find(reference, item)
            if target is not None and pod_template(item.obj):
                used.add(id(target))
    for item in group:
        if item.kind in (references.CLAIM, references.TEMPLATE) and id(item) not in used:
            yield item


def is_tried(item: Item) -> bool:
    """Whether the object is one that the scheduler has to answer for."""
    if item.kind in (references.CLAIM, references.TEMPLATE):
        return item.api_version == RESOURCE_API
    return item.kind in WORKLOADS and item.api_version == WORKLOADS[item.kind]
