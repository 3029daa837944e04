"""Examinations of the nodes' own resources: device plugins beside dynamic resource allocation, and what they left."""

from collections import defaultdict
from collections.abc import Iterator

from berkelium_infra.catalog import AMD, NVIDIA
from berkelium_lab.api import Object
from berkelium_lab.doctor.cluster import Cluster, name_of
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Finding, counted, error, some, warning
from berkelium_lab.doctor.registry import examination
from berkelium_lab.doctor.selectors import expressions, parse

_ZERO_IGNORED = (1, 35)
"""From this version on the scheduler takes an allocatable zero for absent (kubernetes #133488)."""


_DOMAINS = {"nvidia.com/": NVIDIA.driver, "amd.com/": AMD.driver}
"""Domains in which the vendors' device plugins name their resources, with the driver that hands out the same GPUs."""


@examination
def advertised_resources(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:  # noqa: ARG001
    """Whether device plugins advertise GPUs that DRA drivers hand out too, or left something behind."""
    publishing: dict[str, set[str]] = defaultdict(set)
    for piece in cluster.slices:
        publishing[piece["spec"].get("nodeName", "")].add(piece["spec"]["driver"])
    by_class = _drivers_by_class_resource(cluster)
    for resource in sorted({*by_class, *_of_vendors(cluster)}):
        drivers = by_class.get(resource, set()) | {d for domain, d in _DOMAINS.items() if resource.startswith(domain)}
        amounts = {name_of(node): amount for node in cluster.nodes if (amount := _allocatable(node, resource))}
        served = {node: amount for node, amount in amounts.items() if amount != "0"}
        both = [f"{node}: {amount}" for node, amount in served.items() if publishing[node] & drivers]
        alone = [f"{node}: {amount}" for node, amount in served.items() if not publishing[node] & drivers]
        stale = [node for node, amount in amounts.items() if amount == "0"]
        if both:
            yield error(
                "device-plugin-conflict",
                f"extended-resource/{resource}",
                f"A device plugin advertises {resource} on {counted(both, 'node')} whose GPUs a DRA driver publishes "
                "too: the same GPU can be handed out twice.",
                "Remove the device plugin from these nodes, then drain and reboot them (kubernetes PR #141426).",
                *some(both),
            )
        if resource in by_class and alone:
            yield warning(
                "device-plugin-node",
                f"extended-resource/{resource}",
                f"A device plugin advertises {resource} on {counted(alone, 'node')} without a DRA driver: pods that "
                "ask by limit may land there, claims cannot.",
                "Move the nodes to the DRA driver, or give the device plugin a resource name of its own.",
                *some(alone),
            )
        if resource in by_class and stale:
            yield _stale(cluster, resource, stale)


def _drivers_by_class_resource(cluster: Cluster) -> dict[str, set[str]]:
    """The extended resources of the device classes, with the drivers that these are about."""
    drivers: dict[str, set[str]] = defaultdict(set)
    for one in cluster.classes:
        if resource := one["spec"].get("extendedResourceName"):
            drivers[resource] |= parse(expressions(one)).drivers or set()
    return dict(drivers)


def _of_vendors(cluster: Cluster) -> set[str]:
    """Every resource that some node reports in a vendor's domain."""
    reported = {key for node in cluster.nodes for key in (node.get("status") or {}).get("allocatable") or {}}
    return {key for key in reported if key.startswith(tuple(_DOMAINS))}


def _allocatable(node: Object, resource: str) -> str | None:
    return ((node.get("status") or {}).get("allocatable") or {}).get(resource)


def _stale(cluster: Cluster, resource: str, nodes: list[str]) -> Finding:
    blocks = cluster.version[:2] < _ZERO_IGNORED
    make = error if blocks else warning
    effect = (
        "this version of Kubernetes places no pod there that asks for it"
        if blocks
        else "monitoring shows GPUs as gone, and containers may fail to start (kubernetes PR #141426)"
    )
    return make(
        "stale-allocatable",
        f"extended-resource/{resource}",
        f"{counted(nodes, 'node')} with an allocatable {resource} of 0, left behind by a device plugin: {effect}.",
        "Drain and reboot each node; or remove the key: `kubectl patch node NODE --subresource=status --type=json "
        f'-p \'[{{"op":"remove","path":"/status/allocatable/{_pointer(resource)}"}}]\'`, capacity likewise.',
        *some(nodes),
    )


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
