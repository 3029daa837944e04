"""Examination of quotas: keys that look as if they limited GPUs, and do not."""

from collections.abc import Iterator

from berkelium_lab.api import Object
from berkelium_lab.doctor.cluster import Cluster, name_of
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Finding, warning
from berkelium_lab.doctor.registry import examination

# The names by which the quota of a class is written (pkg/quota/v1/evaluator/core/resource_claims.go).
_BY_CLASS_SUFFIX = ".deviceclass.resource.k8s.io/devices"
_BY_CLASS_PREFIX = "requests.deviceclass.resource.kubernetes.io/"
_REQUESTS = "requests."
_OWN_DOMAINS = ("nvidia.com/", "amd.com/")


@examination
def quota_keys(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:  # noqa: ARG001
    """Whether the keys of quotas on GPUs have an effect."""
    classes = {name_of(one) for one in cluster.classes}
    resources = {one["spec"].get("extendedResourceName") for one in cluster.classes} - {None}
    advertised = {key for node in cluster.nodes for key in (node.get("status") or {}).get("allocatable") or {}}
    for quota in cluster.list("v1", "ResourceQuota"):
        for key in quota["spec"].get("hard") or {}:
            reason = _without_effect(key, quota, classes, {str(r) for r in resources} | advertised)
            if reason:
                namespace = quota["metadata"]["namespace"]
                yield warning(
                    "quota-without-effect",
                    f"resourcequota/{namespace}/{name_of(quota)}",
                    f"The quota key {key} limits nothing: {reason[0]}.",
                    reason[1],
                    f"{key}: {quota['spec']['hard'][key]}",
                )


def _without_effect(key: str, quota: Object, classes: set[str], resources: set[str]) -> tuple[str, str] | None:
    """Why the key has no effect and what to write; None when it has one, or is not about devices."""
    if device_class := _device_class(key):
        if device_class in classes:
            return None
        return f"there is no device class {device_class}", f"Write one of {', '.join(sorted(classes)) or 'none'}."
    if key.startswith(_REQUESTS):
        name = key.removeprefix(_REQUESTS)
        if not name.startswith(_OWN_DOMAINS) or name in resources:
            return None
        known = sorted(resource for resource in resources if resource.startswith(_OWN_DOMAINS))
        return f"nothing in the cluster has the resource {name}", f"Write requests. and one of {', '.join(known)}."
    name = key.removeprefix("limits.")
    ours = name in resources or name.startswith(_OWN_DOMAINS)
    if not ours or "/" not in name or key in ((quota.get("status") or {}).get("used") or {}):
        return None
    return "extended resources are counted by their requests only", f"Write {_REQUESTS}{name} instead."


def _device_class(key: str) -> str | None:
    if key.endswith(_BY_CLASS_SUFFIX):
        return key.removesuffix(_BY_CLASS_SUFFIX)
    return key.removeprefix(_BY_CLASS_PREFIX) if key.startswith(_BY_CLASS_PREFIX) else None
