"""The devices that a cluster publishes, and which of them a CEL selector is true for.

Selectors are evaluated by the program `device-selectors`, which is the scheduler's own CEL library. It serves to
explain what the scheduler decided, and to say what is wrong with a device class before anybody uses it.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berkelium_infra.catalog import GpuModel
from berkelium_lab.check.stand import complete_pools
from berkelium_lab.errors import LabError
from berkelium_lab.placement import Inventory

PROGRAM = "device-selectors"
_SECONDS = 60


@dataclass(frozen=True)
class Device:
    """A published device. `attributes` and `capacity` are by qualified name, values as text and quantities."""

    index: int
    name: str
    driver: str
    node: str
    kind: str
    model: GpuModel | None
    parent: str | None
    profile: str | None
    attributes: dict[str, Any]
    types: dict[str, str]
    capacity: dict[str, str]

    @property
    def title(self) -> str:
        """The model and, for a part of a GPU, that it is one."""
        name = self.model.title if self.model else f"{self.driver} {self.kind}"
        return f"MIG device of {name}" if self.kind == "mig" else name


@dataclass(frozen=True)
class Outcome:
    """What one selector is for the devices: the indices for which it is true, the errors by index, or `invalid`."""

    matches: frozenset[int]
    errors: dict[int, str]
    invalid: str = ""


class Devices:
    """All devices of the complete pools among `slices`."""

    def __init__(self, slices: Sequence[dict[str, Any]], program: Path) -> None:
        complete = complete_pools(list(slices))
        kept = [s for s in slices if (s["spec"]["driver"], s["spec"]["pool"]["name"]) in complete]
        raw = [(s["spec"], device) for s in kept for device in s["spec"].get("devices") or []]
        inventory = Inventory(kept)
        self.all = [_device(number, spec, device, inventory) for number, (spec, device) in enumerate(raw)]
        self._request = [{**device, "driver": spec["driver"]} for spec, device in raw]
        self._program = program
        self._known: dict[str, Outcome] = {}

    def evaluate(self, expressions: Iterable[str]) -> list[Outcome]:
        """The outcome of each expression. Raises `LabError` when the program fails."""
        wanted = list(expressions)
        missing = list(dict.fromkeys(e for e in wanted if e not in self._known))
        if missing:
            for expression, result in zip(missing, self._ask(missing), strict=True):
                errors = {int(index): text for index, text in (result.get("errors") or {}).items()}
                self._known[expression] = Outcome(frozenset(result["matches"]), errors, result.get("invalid", ""))
        return [self._known[expression] for expression in wanted]

    def _ask(self, expressions: list[str]) -> list[dict[str, Any]]:
        question = json.dumps({"devices": self._request, "expressions": expressions})
        try:
            done = subprocess.run(
                [self._program], input=question, capture_output=True, text=True, timeout=_SECONDS, check=True
            )
        except subprocess.CalledProcessError as fault:
            raise LabError(f"{self._program} failed: {fault.stderr.strip()}") from None
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise LabError(f"{self._program} failed: {fault}") from None
        return json.loads(done.stdout)["results"]


def _device(index: int, spec: dict[str, Any], device: dict[str, Any], inventory: Inventory) -> Device:
    driver = spec["driver"]
    pool = spec["pool"]["name"]
    described = inventory.devices[driver, pool, device["name"]]
    attributes, types = {}, {}
    for name, value in (device.get("attributes") or {}).items():
        types[_qualified(name, driver)], attributes[_qualified(name, driver)] = next(iter(value.items()))
    capacity = {_qualified(n, driver): str(c.get("value")) for n, c in (device.get("capacity") or {}).items()}
    return Device(
        index=index,
        name=device["name"],
        driver=driver,
        node=spec.get("nodeName") or pool,
        kind=described.kind,
        model=described.model,
        parent=described.parent,
        profile=described.profile,
        attributes=attributes,
        types=types,
        capacity=capacity,
    )


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def summary(devices: Iterable[Device]) -> str:
    """For instance `16 × NVIDIA H200 NVL, 8 × NVIDIA A40 48GB`."""
    counts = Counter(device.title for device in devices)
    return ", ".join(f"{count} × {title}" for title, count in counts.most_common()) or "no device"


def most_on_one_node(devices: Iterable[Device]) -> tuple[int, list[str]]:
    """How many of the devices one pod can hold at most at a time, and the nodes where it can.

    MIG devices are places on a GPU that exclude each other: of one profile as many fit as the catalog says.
    """
    whole: Counter[str] = Counter()
    parts: dict[tuple[str, str | None], set[str | None]] = {}
    fit: dict[tuple[str, str | None], int] = {}
    for device in devices:
        if device.kind != "mig" or device.model is None:
            whole[device.node] += 1
            continue
        key = (device.node, device.profile)
        parts.setdefault(key, set()).add(device.parent)
        fit[key] = next((p.instances for p in device.model.mig_profiles if p.name == device.profile), 1)
    best: Counter[str] = Counter(whole)
    for (node, profile), parents in parts.items():
        best[node] = max(best[node], whole[node] + len(parents) * fit[node, profile])
    if not best:
        return 0, []
    most = max(best.values())
    return most, sorted(node for node, count in best.items() if count == most)
