"""Examinations of resource pools: the scheduler does not use one that is incomplete or invalid, and says nothing.

The rules are those of the allocator (k8s.io/dynamic-resource-allocation, structured/internal/*/pools_*.go): only the
slices of the newest generation count; there must be as many as they say, device names must differ, and counters must
be declared in the pool.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from berkelium_infra.catalog import NVIDIA
from berkelium_lab.api import Object
from berkelium_lab.doctor.cluster import Cluster
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Finding, error, some
from berkelium_lab.doctor.registry import examination

Pool = tuple[str, str]
"""Driver and name of a pool."""


def newest(cluster: Cluster) -> dict[Pool, list[Object]]:
    """The specs of each pool's slices of the newest generation."""
    pools: dict[Pool, list[Object]] = defaultdict(list)
    for piece in cluster.slices:
        spec = piece["spec"]
        pools[spec["driver"], spec["pool"]["name"]].append(spec)
    return {key: _newest(specs) for key, specs in pools.items()}


def _newest(specs: list[Object]) -> list[Object]:
    generation = max(spec["pool"].get("generation", 0) for spec in specs)
    return [spec for spec in specs if spec["pool"].get("generation", 0) == generation]


@examination
def resource_pools(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:  # noqa: ARG001
    """Whether the pools of devices are complete and valid."""
    for (driver, name), specs in sorted(newest(cluster).items()):
        subject = f"pool/{driver}/{name}"
        wanted = {spec["pool"]["resourceSliceCount"] for spec in specs}
        generation = specs[0]["pool"].get("generation", 0)
        if wanted != {len(specs)}:
            yield error(
                "pool-incomplete",
                subject,
                "The pool is incomplete: the scheduler uses none of its devices.",
                "Restart the driver's plugin on the node, which publishes the pool anew: delete its pod.",
                f"generation {generation}: {len(specs)} slices, wanted {', '.join(map(str, sorted(wanted)))}",
            )
        uncounted = list(_uncounted(driver, specs))
        if uncounted:
            yield error(
                "pool-uncounted",
                subject,
                "MIG devices consume no counters: they and their whole GPU can be handed out at once.",
                "See the finding gate-partitionable-devices; once the gate is on, restart the plugin on the node.",
                *some(uncounted),
            )
        if faults := [*_duplicates(specs), *_unknown_counters(specs)]:
            yield error(
                "pool-invalid",
                subject,
                "The pool is invalid: the scheduler uses none of its devices.",
                "Restart the driver's plugin on the node; when the fault comes back, report it to the driver.",
                *some(faults),
            )


def _devices(specs: list[Object]) -> Iterator[Object]:
    for spec in specs:
        yield from spec.get("devices") or []


def _uncounted(driver: str, specs: list[Object]) -> Iterator[str]:
    """MIG devices that are made on demand and yet compete with nothing; one that exists already has a uuid."""
    if driver != NVIDIA.driver:
        return
    for device in _devices(specs):
        attributes = device.get("attributes") or {}
        made_on_demand = attributes.get("type", {}).get("string") == "mig" and "uuid" not in attributes
        if made_on_demand and not device.get("consumesCounters"):
            yield device["name"]


def _duplicates(specs: list[Object]) -> Iterator[str]:
    for name, count in Counter(device["name"] for device in _devices(specs)).items():
        if count > 1:
            yield f"device {name} is published {count} times"


def _unknown_counters(specs: list[Object]) -> Iterator[str]:
    declared = {
        (counter_set["name"], counter)
        for spec in specs
        for counter_set in spec.get("sharedCounters") or []
        for counter in counter_set["counters"]
    }
    sets = {name for name, _ in declared}
    for device in _devices(specs):
        for consumed in device.get("consumesCounters") or []:
            used = consumed["counterSet"]
            if used not in sets:
                yield f"device {device['name']} uses the counter set {used}, which the pool does not declare"
            else:
                unknown = sorted(counter for counter in consumed["counters"] if (used, counter) not in declared)
                if unknown:
                    yield f"device {device['name']} uses {', '.join(unknown)}, which counter set {used} does not have"
