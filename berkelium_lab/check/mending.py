"""Changes that bring a manifest to the form of today without deciding anything for its author.

They work in place on plain mappings and on ruamel's, which keep comments and order, so that the same code writes the
new form into a message and into a file. Every function returns whether it changed something.
"""

from collections.abc import Iterator, MutableMapping
from typing import Any

from berkelium_lab.check.shapes import RESOURCE_API, RESOURCE_GROUP, entries, mapping

REQUEST_FIELDS = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")
"""Fields of a device request that v1 has under `exactly`."""

OLD_KINDS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice")
COMPUTE = ("cpu", "memory")

Mapping = MutableMapping[str, Any]


def is_old_version(obj: Any) -> bool:
    """Whether this is an object of the resource API in a version before v1."""
    version = str(mapping(obj).get("apiVersion", ""))
    return version.startswith(f"{RESOURCE_GROUP}/") and version != RESOURCE_API


def renew_version(obj: Mapping) -> bool:
    """`resource.k8s.io/v1beta1` and its like become v1."""
    if not is_old_version(obj) or obj.get("kind") not in OLD_KINDS:
        return False
    obj["apiVersion"] = RESOURCE_API
    return True


def lacks_exactly(request: Any) -> bool:
    """Whether a device request states its class and the like beside its name."""
    entry = mapping(request)
    return not {"exactly", "firstAvailable"} & set(entry) and any(key in entry for key in REQUEST_FIELDS)


def wrap_in_exactly(request: Mapping) -> bool:
    """Move the fields of a request that v1 has under `exactly` there."""
    if not lacks_exactly(request):
        return False
    moved = [key for key in request if key in REQUEST_FIELDS]
    inner = type(request)()
    for key in moved:
        inner[key] = request[key]
        _move_comment(request, inner, key)
    for key in moved:
        del request[key]
    request["exactly"] = inner
    return True


def flatten_source(claim: Mapping) -> bool:
    """`source: {resourceClaimTemplateName: x}` in a pod's claim becomes the name itself."""
    source = claim.get("source")
    if not isinstance(source, MutableMapping):
        return False
    position = list(claim).index("source")
    del claim["source"]
    for offset, key in enumerate(list(source)):
        if hasattr(claim, "insert"):
            claim.insert(position + offset, key, source[key])  # type: ignore[attr-defined]
        else:
            claim[key] = source[key]
        _move_comment(source, claim, key)
    return True


def renew_class_name(spec: Mapping) -> bool:
    """`resourceClassName` of v1alpha2 becomes one request for one device of that class."""
    name = spec.get("resourceClassName")
    if not isinstance(name, str):
        return False
    for key in ("resourceClassName", "allocationMode", "parametersRef"):
        spec.pop(key, None)
    spec["devices"] = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": name}}]}
    return True


def copy_limits(container: Mapping) -> list[str]:
    """State as requests the cpu and memory for which only a limit stands; the names of what was added."""
    resources = container.get("resources")
    if not isinstance(resources, MutableMapping):
        return []
    limits, requests = mapping_of(resources, "limits"), resources.get("requests")
    present = requests if isinstance(requests, MutableMapping) else {}
    added = [name for name in COMPUTE if name in limits and name not in present]
    if not added:
        return []
    if not isinstance(requests, MutableMapping):
        requests = type(resources)()
        if hasattr(resources, "insert"):
            resources.insert(list(resources).index("limits"), "requests", requests)  # type: ignore[attr-defined]
        else:
            resources["requests"] = requests
    for name in added:
        requests[name] = limits[name]
    return added


def missing_amounts(container: Any) -> list[str]:
    """The amounts that a container must state and does not, such as `limits.memory`."""
    resources = mapping(mapping(container).get("resources"))
    wanted = [(side, name) for side in ("requests", "limits") for name in COMPUTE]
    return [f"{side}.{name}" for side, name in wanted if name not in mapping(resources.get(side))]


def mapping_of(parent: Mapping, key: str) -> Mapping:
    """The mapping at `key`, or an empty one that is not part of `parent`."""
    value = parent.get(key)
    return value if isinstance(value, MutableMapping) else {}


def device_requests(spec: Any) -> Iterator[tuple[int, Any]]:
    """The requests of a claim spec with their indices."""
    yield from entries(mapping(mapping(spec).get("devices")).get("requests"))


def _move_comment(source: Any, target: Any, key: str) -> None:
    """A comment behind a key belongs to the mapping that holds the key, in ruamel's model."""
    if hasattr(source, "ca") and hasattr(target, "ca") and key in source.ca.items:
        target.ca.items[key] = source.ca.items.pop(key)
