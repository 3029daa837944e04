"""The devices that drivers publish, in a form that compares: slices are cut and named anew at every publication."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from berkelium_lab.api import Object
from berkelium_lab.placement import Inventory
from berkelium_lab.review.differences import differences
from berkelium_lab.review.model import Difference, PoolChange

_ON_A_POOL = ("driver", "pool", "devices", "sharedCounters", "nodeName")


@dataclass
class Pool:
    """One driver's devices on one node, whatever the slices: devices, their sorts and shared counters by name."""

    node: str | None
    devices: dict[str, Any] = field(default_factory=dict)
    sorts: dict[str, str] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)


def of(slices: Iterable[Object]) -> dict[tuple[str, str], Pool]:
    """The pools of these ResourceSlices by driver and name, each in its newest generation."""
    specs = [piece["spec"] for piece in slices]
    newest: dict[tuple[str, str], int] = {}
    for spec in specs:
        key = spec["driver"], spec["pool"]["name"]
        newest[key] = max(spec["pool"]["generation"], newest.get(key, 0))
    found: dict[tuple[str, str], Pool] = {}
    for spec in specs:
        key = spec["driver"], spec["pool"]["name"]
        if spec["pool"]["generation"] == newest[key]:
            _take(found.setdefault(key, Pool(spec.get("nodeName"))), spec)
    return found


def _take(pool: Pool, spec: Object) -> None:
    inventory = Inventory([{"spec": spec}])
    for device in spec.get("devices", []):
        pool.devices[device["name"]] = {key: value for key, value in device.items() if key != "name"}
        known = inventory.devices[spec["driver"], spec["pool"]["name"], device["name"]]
        title = known.model.title if known.model else "unknown model"
        pool.sorts[device["name"]] = f"{title} {known.profile}" if known.profile else title
    for counters in spec.get("sharedCounters", []):
        pool.counters[counters["name"]] = counters.get("counters")
    pool.rest |= {key: value for key, value in spec.items() if key not in _ON_A_POOL}


def changes(before: dict[tuple[str, str], Pool], after: dict[tuple[str, str], Pool]) -> list[PoolChange]:
    """The pools that differ, by node and driver."""
    found = []
    for driver, name in sorted({*before, *after}, key=lambda key: (key[1], key[0])):
        old, new = (pools.get((driver, name)) or Pool(None) for pools in (before, after))
        if old != new:
            found.append(_change(driver, name, old, new))
    return found


def _change(driver: str, name: str, old: Pool, new: Pool) -> PoolChange:
    lost, gained = sorted(old.devices.keys() - new.devices.keys()), sorted(new.devices.keys() - old.devices.keys())
    both = old.devices.keys() & new.devices.keys()
    parts: list[Difference] = []
    for device in sorted(both):
        parts += differences(old.devices[device], new.devices[device], device)
    shared = old.counters.keys() & new.counters.keys()
    for counters in sorted(shared):
        parts += differences(old.counters[counters], new.counters[counters], f"{counters}.counters")
    if old.devices and new.devices:
        parts += differences(old.rest, new.rest, "")
    return PoolChange(
        driver=driver,
        pool=name,
        node=new.node or old.node,
        lost=lost,
        gained=gained,
        lost_sorts=dict(sorted(Counter(old.sorts[device] for device in lost).items())),
        gained_sorts=dict(sorted(Counter(new.sorts[device] for device in gained).items())),
        left=len(new.devices),
        differences=parts,
    )
