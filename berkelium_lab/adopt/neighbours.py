"""Objects that the stack does not declare, and that would get in the way of what it does."""

from collections.abc import Iterable, Iterator, Mapping

from berkelium_infra import versions
from berkelium_lab.adopt.declared import Declared
from berkelium_lab.adopt.helm_records import Release
from berkelium_lab.api import Api

_KNOWN = (*versions.NVIDIA_DRIVERS, *versions.AMD_OPERATORS, *versions.NODE_FEATURE_DISCOVERIES)


def notes(api: Api, declared: Iterable[Declared], installed: Mapping[tuple[str, str], Release]) -> list[str]:
    """One or two sentences per object that an adoption leaves where it is and that its admin should know of."""
    everything = list(declared)
    return [*_other_releases(everything, installed), *_other_classes(api, everything), *_other_quotas(api, everything)]


def _other_releases(declared: list[Declared], installed: Mapping[tuple[str, str], Release]) -> Iterator[str]:
    ours = {(each.identity.namespace, each.identity.name) for each in declared if each.is_release}
    charts = {known.chart.name for known in _KNOWN}
    for key, found in installed.items():
        if found.chart in charts and key not in ours:
            yield (
                f"Helm release {found.namespace}/{found.name} is the chart {found.chart} under a name that this stack "
                "does not use: both would run. Switch the part off in the stack's file, or uninstall that one first."
            )


def _other_classes(api: Api, declared: list[Declared]) -> Iterator[str]:
    classes = {each.identity.name: each.inputs["spec"] for each in declared if each.kind == "DeviceClass"}
    names = {spec["extendedResourceName"]: name for name, spec in classes.items() if spec.get("extendedResourceName")}
    for live in api.list("resource.k8s.io/v1", "DeviceClass"):
        name, resource = live["metadata"]["name"], live["spec"].get("extendedResourceName")
        if name not in classes and resource in names:
            yield (
                f"DeviceClass {name} stands for {resource} too, as {names[resource]} of this stack does: the class "
                "that was created later wins. Remove spec.extendedResourceName from the one, or delete it."
            )


def _other_quotas(api: Api, declared: list[Declared]) -> Iterator[str]:
    namespaces = {each.identity.name for each in declared if each.kind == "Namespace"}
    ours = {each.identity.id for each in declared if each.kind in ("ResourceQuota", "LimitRange")}
    for kind in ("ResourceQuota", "LimitRange"):
        for live in api.list("v1", kind):
            namespace, name = live["metadata"]["namespace"], live["metadata"]["name"]
            if namespace in namespaces and f"{namespace}/{name}" not in ours:
                yield f"{kind} {namespace}/{name} goes on limiting the namespace beside what this stack declares."
