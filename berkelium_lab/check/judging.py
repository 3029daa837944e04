"""What the scheduler made of one object's pods, read from the cluster while they are there."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from berkelium_lab import placement
from berkelium_lab.api import Api
from berkelium_lab.check.findings import Item, Object
from berkelium_lab.check.prepare import Prepared
from berkelium_lab.placement import Inventory, Placement

_NOT_PLACED = ("Unschedulable", "SchedulerError")


@dataclass
class Judgement:
    """The pods of one object: `wanted` were asked for, `placed` have a node, `waiting` the scheduler's reason instead.

    `failure` is what keeps the cluster from making pods at all, such as a quota; `undecided` what was seen last of
    pods on which nothing was decided in time.
    """

    item: Item
    wanted: int
    placed: list[Object] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    failure: str = ""
    undecided: str = ""
    description: str = ""

    @property
    def runs(self) -> bool:
        """Whether every pod that was asked for has a place."""
        return not self.failure and len(self.placed) >= self.wanted

    @property
    def decided(self) -> bool:
        """Whether there is nothing left to wait for."""
        return bool(self.failure) or len(self.placed) + len(self.waiting) >= self.wanted


def judge(prepared: Prepared, pods: Iterable[Object], wanted: int) -> Judgement:
    """Sort the pods of an object by what the scheduler decided."""
    found = Judgement(prepared.item, wanted)
    for pod in pods:
        if pod["spec"].get("nodeName"):
            found.placed.append(pod)
            continue
        for condition in pod.get("status", {}).get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition.get("reason") in _NOT_PLACED:
                found.waiting.append(condition.get("message") or condition["reason"])
    return found


def describe(api: Api, judgement: Judgement, inventory: Inventory) -> str:
    """Where the pods are and what each was given, for instance `2 × NVIDIA H200 NVL on h200-1`."""
    if not judgement.placed:
        return ""
    nodes = Counter(pod["spec"]["nodeName"] for pod in judgement.placed)
    devices = _devices(placement.read(api, judgement.placed[0], inventory))
    if len(judgement.placed) == 1:
        return f"{devices or 'no device'} on {next(iter(nodes))}"
    where = ", ".join(f"{node} ({count})" for node, count in sorted(nodes.items()))
    each = f", {devices} each" if devices else ""
    return f"{len(judgement.placed)} pods{each}, on {where}"


def _devices(found: Placement) -> str:
    kinds = Counter(
        (f"MIG {device.profile} of " if device.profile else "") + (device.model.title if device.model else device.name)
        for device in found.devices
    )
    return " and ".join(f"{count} × {kind}" for kind, count in kinds.items())
