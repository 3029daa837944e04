"""Mending what has drifted inside a Helm release: a difference in the release's inputs, so that Helm upgrades it.

A `Stash` keeps the mark of the last drift that was mended. It changes only when there is a new one; without drift, and
in a preview without the cluster, the inputs are those of the last time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from berkelium_infra import drifted
from berkelium_infra.live import Live, Refused
from berkelium_infra.versions import Chart

_REPLACING = " (replacing)"


@dataclass(frozen=True)
class Mending:
    """What a release's inputs are to be: `description`, and `force_update`, with which Helm replaces the objects.

    Without the latter Helm leaves fields that were added by hand.
    """

    description: pulumi.Output[str | None]
    force_update: pulumi.Output[bool | None]


@dataclass(frozen=True)
class Wanted:
    """What the stack declares of a release, drift aside."""

    chart: Chart
    version: str
    values: Mapping[str, Any]
    description: str | None

    def is_deployed(self, record: Mapping[str, Any]) -> bool:
        """Whether Helm's record is of just this; if not, the release is upgraded anyway, and put right by that."""
        found = (record["chart"]["metadata"]["version"].removeprefix("v"), record.get("config") or {})
        described = str((record.get("info") or {}).get("description") or "")
        return found == (self.version.removeprefix("v"), self.values) and described.startswith(self.description or "")


def mending(live: Live | None, wanted: Wanted, parent: pulumi.Resource | None) -> Mending:
    """The inputs for the release that is wanted."""
    chart, description = wanted.chart, wanted.description
    mark = _mark(live, wanted) if live else None
    stash = pulumi.Stash(
        f"{chart.release}-mended",
        input=mark or "",
        opts=pulumi.ResourceOptions(parent=parent, ignore_changes=None if mark else ["input"]),
    )
    return Mending(
        stash.input.apply(lambda recorded: _described(description, recorded)),
        stash.input.apply(lambda recorded: True if (recorded or "").endswith(_REPLACING) else None),
    )


def _described(description: str | None, recorded: str | None) -> str | None:
    if not recorded:
        return description
    mended = f"drift {recorded.removesuffix(_REPLACING)} mended"
    return f"{description}, {mended}" if description else mended


def _mark(live: Live, wanted: Wanted) -> str | None:
    """The mark of the drift that is there now, if there is any; each drifted object is reported."""
    chart = wanted.chart
    try:
        record = live.helm_release(chart.namespace, chart.release)
        if record is None or not wanted.is_deployed(record):
            return None
        found = drifted.of_record(live, record)
    except Refused:
        # A preview's identity may not be allowed to read Helm's records, which are Secrets.
        return None
    if not found:
        return None
    for each in found:
        what = "is gone" if each.gone else f"was edited: {', '.join(change.path for change in each.changes)}"
        pulumi.log.warn(f"release {chart.release}: {each} {what}; the release is upgraded to put it back")
    replacing = any(change.added for each in found for change in each.changes)
    return drifted.digest(found, int(record["version"])) + (_REPLACING if replacing else "")
