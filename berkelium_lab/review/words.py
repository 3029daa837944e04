"""What a terminal and a comment say in the same words: headline, counts, groups of objects that change alike."""

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import yaml

from berkelium_lab.review.model import Difference, ObjectChange, Outcome, PoolChange, Review, WorkloadChange

WIDTH = 200
"""Columns of a value that are shown; policies and configuration files are quoted by the line that differs."""

LINES = 60
"""Lines of one object that are shown."""

WORSE = ("newly refused", "newly unschedulable", "newly undecided")
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


@dataclass(frozen=True)
class Group:
    """Objects of a kind that change in the same way."""

    change: str
    kind: str
    names: tuple[str, ...]
    release: str | None
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        """One line: sign, kind, names, and the release that they are part of."""
        inside = f" (release {self.release})" if self.release else ""
        return f"{_SIGNS[self.change]} {self.kind} {joined(self.names)}{inside}"


def headline(review: Review) -> str:
    """The result in one line."""
    if review.failure:
        return f"failed: could not {review.failure.stage}"
    if not review.changed:
        return "no changes"
    worse = sum(change.verdict in WORSE for change in review.workloads)
    vanished = sum(len(pool.lost) for pool in review.pools)
    gained = sum(len(pool.gained) for pool in review.pools)
    parts = [
        _counted(len(review.objects), "object changes", "objects change"),
        _counted(vanished, "device vanishes", "devices vanish"),
        _counted(gained, "device appears", "devices appear"),
        _counted(worse, "workload no longer runs", "workloads no longer run"),
        _counted(len(review.workloads) - worse, "workload runs differently", "workloads run differently"),
    ]
    said = ", ".join(part for part in parts if part)
    return said or "the program changes, the cluster does not"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}" if count else ""


def steps(review: Review) -> str:
    """The engine's counts: `2 update, 28 unchanged`."""
    counts = {("unchanged" if name == "same" else name): count for name, count in review.forecast.counts.items()}
    named = sorted(counts.items(), key=lambda item: (item[0] == "unchanged", item[0]))
    return ", ".join(f"{count} {name}" for name, count in named) or "none"


def object_counts(review: Review) -> str:
    """`1 added, 2 changed, of 319 compared`."""
    found = [
        (change, sum(each.change == change for each in review.objects)) for change in ("added", "removed", "changed")
    ]
    counts = ", ".join(f"{count} {change}" for change, count in found if count) or "none differs"
    return f"{counts}, of {review.compared.objects} compared"


def device_counts(review: Review) -> str:
    """How many devices vanish, appear or change, of how many."""
    lost, gained = (sum(len(getattr(pool, side)) for pool in review.pools) for side in ("lost", "gained"))
    altered = sum(bool(pool.differences) for pool in review.pools)
    parts = [f"{lost} vanish" if lost else "", f"{gained} appear" if gained else ""]
    parts.append(f"properties differ on {altered} {'pool' if altered == 1 else 'pools'}" if altered else "")
    return f"{', '.join(part for part in parts if part) or 'none differs'}, of {review.compared.devices}"


def workload_counts(review: Review) -> str:
    """How many of the documented workloads fare differently."""
    return f"{len(review.workloads) or 'none'} with another outcome, of {review.compared.workloads} tried"


def groups(review: Review) -> list[Group]:
    """The changed objects, those alike together: the labels of twenty nodes are one change."""
    found: dict[tuple[object, ...], list[str]] = {}
    for change in review.objects:
        where = f"{change.namespace}/" if change.namespace else ""
        key = (change.change, change.kind, change.release, tuple(object_lines(change)))
        found.setdefault(key, []).append(f"{where}{change.name}")
    return [Group(str(k[0]), str(k[1]), tuple(names), k[2], k[3]) for k, names in found.items()]  # type: ignore[arg-type]


def object_lines(change: ObjectChange) -> list[str]:
    """What differs in an object, or the whole of an added or removed one, as lines that begin with + or -."""
    if change.manifest is not None:
        content = {key: value for key, value in change.manifest.items() if key not in ("apiVersion", "kind")}
        # Alone in the title when several are alike.
        content["metadata"] = {k: v for k, v in content["metadata"].items() if k not in ("name", "namespace")}
        content["metadata"] = {key: value for key, value in content["metadata"].items() if value}
        filled = {key: value for key, value in content.items() if value}
        text = yaml.safe_dump(filled, sort_keys=False, width=WIDTH) if filled else ""
        sign = "+" if change.change == "added" else "-"
        return shortened([f"{sign} {line}" for line in text.splitlines()])
    return difference_lines(change.differences)


def difference_lines(differences: Iterable[Difference]) -> list[str]:
    """The properties that differ, each as its path and its old and new value."""
    lines: list[str] = []
    path = ""
    for difference in differences:
        first, *rest = _difference(difference)
        # Elements of one list follow each other under the list's path.
        lines += rest if first == path else [first, *rest]
        path = first
    return shortened(lines)


def shortened(lines: list[str]) -> list[str]:
    """The lines, cut in length and number, with a word on what is left out."""
    kept = [line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines[:LINES]]
    return kept if len(lines) <= LINES else [*kept, f"  … and {len(lines) - LINES} more lines"]


def _difference(difference: Difference) -> Iterator[str]:
    yield f"  {difference.path or '(all)'}"
    old, new = _text(difference.old), _text(difference.new)
    if difference.change == "changed" and ("\n" in old or "\n" in new):
        changed = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
        # The first two lines are a file's names.
        yield from (f"{line[:1]} {line[1:]}" for line in list(changed)[2:] if not line.startswith("@@"))
        return
    if difference.change != "added":
        yield from (f"- {line}" for line in old.splitlines() or [""])
    if difference.change != "removed":
        yield from (f"+ {line}" for line in new.splitlines() or [""])


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list) and value:
        return yaml.safe_dump(value, sort_keys=False, width=WIDTH).rstrip("\n")
    return json.dumps(value)


def pool_groups(review: Review) -> list[tuple[str, list[str]]]:
    """Pools that differ alike: a title with their nodes, and lines."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for pool in review.pools:
        found.setdefault((pool.driver, tuple(pool_lines(pool))), []).append(pool.pool)
    return [(f"{driver} on {joined(names)}", list(lines)) for (driver, lines), names in found.items()]


def pool_lines(pool: PoolChange) -> list[str]:
    """What differs in a pool: sorts of devices with their number, then properties of devices that stay."""
    lines = [f"- {count} × {sort}" for sort, count in pool.lost_sorts.items()]
    lines += [f"+ {count} × {sort}" for sort, count in pool.gained_sorts.items()]
    lines += ["  nothing is left"] if pool.lost and not pool.left else []
    return lines + shortened([line for each in _alike(pool.differences) for line in each])


_BOOKKEEPING = ("consumesCounters", "counters")
"""Properties of devices that are said to differ and not quoted: dozens of numbers that follow from the sorts."""


def _alike(differences: Iterable[Difference]) -> Iterator[list[str]]:
    """The lines of devices' differences (the first name of each path), with those put together that are alike."""
    found: dict[tuple[str, ...], tuple[Difference, dict[str, None]]] = {}
    for difference in differences:
        device, _, rest = difference.path.partition(".")
        bookkeeping = next((name for name in _BOOKKEEPING if rest.startswith(name)), None)
        values = () if bookkeeping else (_text(difference.old), _text(difference.new))
        found.setdefault((bookkeeping or rest, difference.change, *values), (difference, {}))[1][device] = None
    for (rest, *values), (difference, devices) in found.items():
        path = f"{rest} of {joined(devices)}" if rest else joined(devices)
        lines = list(_difference(difference.model_copy(update={"path": path})))
        yield lines if len(values) > 1 else lines[:1]


def forecast_lines(review: Review) -> list[str]:
    """What `pulumi preview --diff` printed, without the lines that only name what the line before them has named."""
    named = ("[urn=", "[provider=")
    return [line for line in review.forecast.text.splitlines() if not line.lstrip().startswith(named)]


def workload_line(change: WorkloadChange) -> str:
    """What became of a workload, before and after."""
    fates = f"Before: {fate(change.before)}. After: {fate(change.after)}"
    return f"{change.pod} ({change.manifest}): {change.verdict}. {fates}"


def fate(outcome: Outcome | None) -> str:
    """An outcome in a few words."""
    if outcome is None:
        return "not tried"
    warned = f", warned: {joined(outcome.warnings)}" if outcome.warnings else ""
    if outcome.state == "runs":
        devices = ", ".join(f"{count} × {sort}" for sort, count in outcome.devices.items())
        return f"runs{f' with {devices} by ' + joined(outcome.routes) if devices else ''}{warned}"
    message = " ".join(outcome.message.split())
    return f"{outcome.state}{f': {message}' if message else ''}{warned}"


def joined(names: Iterable[str]) -> str:
    """A few names in full, of many the first and a number."""
    given = list(names)
    return ", ".join(given) if len(given) <= 12 else f"{', '.join(given[:10])} and {len(given) - 10} more"
