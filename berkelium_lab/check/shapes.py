"""Where things are in manifests: pod templates, containers, claim requests. Nothing here trusts a manifest's shape."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from berkelium_lab.check.findings import Object

RESOURCE_GROUP = "resource.k8s.io"
RESOURCE_API = f"{RESOURCE_GROUP}/v1"

TEMPLATE_PATHS = {
    "Pod": "",
    "PodTemplate": "template",
    "ReplicationController": "spec.template",
    "Deployment": "spec.template",
    "ReplicaSet": "spec.template",
    "StatefulSet": "spec.template",
    "DaemonSet": "spec.template",
    "Job": "spec.template",
    "CronJob": "spec.jobTemplate.spec.template",
}
"""Where each kind has its pod template; a Pod is one itself."""

WORKLOADS = {
    "Pod": "v1",
    "ReplicationController": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
"""The kinds of which a cluster makes pods, with the API version that the lab tries them in."""

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Every device class is also an extended resource of this name."""


@dataclass(frozen=True)
class Request:
    """One request of a claim, or one alternative of a `firstAvailable`.

    `name` is as the scheduler names it (`gpu`, `gpu/domain0`); `path` is where its device class stands.
    """

    name: str
    device_class: str
    selectors: tuple[str, ...]
    count: int
    all_devices: bool
    path: str
    optional: bool


def dig(value: Any, path: str) -> Any:
    """The value at a dotted path of mappings, or None."""
    for key in path.split(".") if path else ():
        value = value.get(key) if isinstance(value, dict) else None
    return value


def mapping(value: Any) -> Object:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: Any) -> list[tuple[int, Object]]:
    """The mappings of a list with their indices; nothing for what is no list."""
    return [(i, entry) for i, entry in enumerate(value) if isinstance(entry, dict)] if isinstance(value, list) else []


def joined(*parts: str) -> str:
    """A path made of parts, some of which may be empty."""
    return ".".join(part for part in parts if part)


def pod_template(obj: Object) -> tuple[Object, str] | None:
    """The pod template of an object and its path; None for a kind without one."""
    path = TEMPLATE_PATHS.get(str(obj.get("kind")))
    if path is None:
        return None
    template = dig(obj, path)
    return (template, path) if isinstance(template, dict) else None


def containers(pod: Object) -> Iterator[tuple[Object, str]]:
    """Init containers and containers with their paths below the pod template."""
    for key in ("initContainers", "containers"):
        for index, container in entries(dig(pod, f"spec.{key}")):
            yield container, f"spec.{key}[{index}]"


def extended_resources(pod: Object) -> dict[str, int]:
    """How many of each extended resource the pod asks for: the larger of its init containers' and its containers'."""
    totals: dict[str, dict[str, int]] = {}
    for container, path in containers(pod):
        for name, amount in mapping(dig(container, "resources.limits")).items():
            if "/" not in name or name.startswith(("requests.", "kubernetes.io/")):
                continue
            count = int(str(amount)) if str(amount).isdigit() else 1
            long_lived = "initContainers" not in path or container.get("restartPolicy") == "Always"
            kept = totals.setdefault(name, {"sum": 0, "init": 0})
            if long_lived:
                kept["sum"] += count
            else:
                kept["init"] = max(kept["init"], count)
    return {name: max(kept.values()) for name, kept in totals.items() if max(kept.values()) > 0}


def claim_spec(obj: Object) -> tuple[Object, str] | None:
    """The claim spec of a ResourceClaim or ResourceClaimTemplate and its path."""
    path = {"ResourceClaim": "spec", "ResourceClaimTemplate": "spec.spec"}.get(str(obj.get("kind")))
    spec = dig(obj, path) if path else None
    return (spec, path) if path and isinstance(spec, dict) else None


def requests(spec: Object, at: str = "spec") -> list[Request]:
    """The requests of a claim spec that stands at path `at`."""
    found = []
    for index, entry in entries(dig(spec, "devices.requests")):
        path = f"{at}.devices.requests[{index}]"
        name = str(entry.get("name", index))
        if isinstance(entry.get("exactly"), dict):
            found.append(_request(name, entry["exactly"], f"{path}.exactly", optional=False))
        for number, choice in entries(entry.get("firstAvailable")):
            below = f"{path}.firstAvailable[{number}]"
            found.append(_request(f"{name}/{choice.get('name', number)}", choice, below, optional=True))
    return found


def _request(name: str, body: Object, path: str, optional: bool) -> Request:
    count = body.get("count", 1)
    return Request(
        name=name,
        device_class=str(body.get("deviceClassName", "")),
        selectors=selectors(body),
        count=count if isinstance(count, int) else 1,
        all_devices=body.get("allocationMode") == "All",
        path=path,
        optional=optional,
    )


def selectors(body: Object) -> tuple[str, ...]:
    """The CEL expressions of a request or of a device class's spec."""
    found = [dig(entry, "cel.expression") for _, entry in entries(body.get("selectors"))]
    return tuple(expression for expression in found if isinstance(expression, str))
