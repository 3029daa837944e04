"""Upgrades and downgrades: what a changed chart version means to the cluster that runs another one.

The versions that run are read from the live cluster. A move that upstream does not support is refused, in a preview as
well, and one that changes more than a number is explained. Without a cluster to ask, as in a preview without
credentials, nothing is known of what runs, and nothing is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pulumi

from berkelium_infra.errors import UserError
from berkelium_infra.live import Live, Refused
from berkelium_infra.settings import Settings
from berkelium_infra.versions import MOVES, Chart, Move, order

VERSION_LABEL = "app.kubernetes.io/version"


class UnsupportedDowngrade(UserError):
    """The configuration asks for a release to which nothing leads back from the one that runs."""


@dataclass(frozen=True)
class Part:
    """A part of the stack that is installed by a chart.

    `key` stands below `charts` in the configuration. `workload` is the path, below the namespace, of the object that
    carries the version of the release last applied, finished or not.
    """

    key: str
    title: str
    chart: Chart
    wanted: str
    workload: str


def parts(settings: Settings) -> Iterator[Part]:
    """The parts of this stack that have `MOVES`."""
    if settings.nvidia.enabled:
        chart = settings.nvidia_driver.chart
        yield Part(
            "nvidia",
            "NVIDIA driver",
            chart,
            settings.charts.nvidia.version,
            "daemonsets/nvidia-dra-driver-gpu-kubelet-plugin",
        )
    if settings.amd.enabled:
        chart = settings.amd_operator.chart
        yield Part(
            "amd",
            "AMD operator",
            chart,
            settings.charts.amd.version,
            "deployments/amd-gpu-operator-gpu-operator-charts-controller-manager",
        )


class Upgrades:
    """What the configured versions mean to the cluster, and the hooks by which an unsupported one changes nothing.

    An upgrade is explained in the log. A refusal is no error of the program as such, since `pulumi destroy` runs the
    program too, and starting over is the way out of it: it is the hooks' error as soon as a resource that has them is
    about to be made or changed, in a preview as well. `hooks` is None where nothing is refused.
    """

    def __init__(self, settings: Settings, live: Live | None) -> None:
        self.refusals = tuple(_judged(settings, live)) if live else ()
        for refusal in self.refusals:
            pulumi.log.warn(refusal.summary)
        self.hooks = self._hooks() if self.refusals else None

    def and_also(self, hooks: pulumi.ResourceHookBinding) -> pulumi.ResourceHookBinding:
        """These hooks and others, for the resources of a driver."""
        return pulumi.ResourceHookBinding.merge(hooks, self.hooks)

    def _hooks(self) -> pulumi.ResourceHookBinding:
        options = pulumi.ResourceHookOptions(on_dry_run=True)
        hook = pulumi.ResourceHook("supported-versions", self._refuse, options)
        return pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])

    def _refuse(self, _: pulumi.ResourceHookArgs) -> None:
        raise UnsupportedDowngrade("\n".join(map(str, self.refusals)))


@dataclass(frozen=True)
class Refusal:
    """A downgrade that upstream does not support, with upstream's reasons."""

    part: Part
    current: str
    reasons: tuple[str, ...]

    @property
    def summary(self) -> str:
        """What contradicts what, in one sentence."""
        return (
            f"charts.{self.part.key}.version: It is {self.part.wanted}, but the cluster runs {self.current}, and there "
            "is no way back."
        )

    def __str__(self) -> str:
        wanted, key = self.part.wanted, self.part.key
        return (
            f"{self.summary}\n  Why: {'; '.join(self.reasons)}.\n  Write {self.current} or a later version. To start "
            f"over with {wanted} instead, drain the GPU nodes, apply with {key}.enabled: false, remove the driver's "
            "checkpoint files on the nodes, and apply with that version."
        )


def _judged(settings: Settings, live: Live) -> Iterator[Refusal]:
    """Log what an upgrade changes; yield what is refused."""
    for part in parts(settings):
        current = running(live, part)
        if current is None or order(current) == order(part.wanted):
            continue
        if order(part.wanted) < order(current):
            reasons = tuple(m.no_way_back for m in _crossed(part.key, part.wanted, current) if m.no_way_back)
            if reasons:
                yield Refusal(part, current, reasons)
            else:
                pulumi.log.warn(f"{part.title}: {current} runs and goes back to {part.wanted}.")
            continue
        for move in _crossed(part.key, current, part.wanted):
            pulumi.log.info(f"{part.title} {current} to {part.wanted}: {'; '.join(move.changes)}.")
            if move.no_way_back:
                pulumi.log.warn(f"{part.title} {current} to {part.wanted}: there is no way back. {move.no_way_back}.")


def running(live: Live, part: Part) -> str | None:
    """The version that runs: the newest of what Helm says is deployed and what the workload says was last applied.

    They differ after an upgrade that did not finish, some nodes of which have the newer release all the same. None
    where neither is there. What the identity may not read counts as not there: Secrets are not for everybody.
    """
    found = [_deployed(live, part), _applied(live, part)]
    return max((each for each in found if each), key=order, default=None)


def _deployed(live: Live, part: Part) -> str | None:
    try:
        record = live.helm_release(part.chart.namespace, part.chart.release)
    except Refused:
        return None
    return str(record["chart"]["metadata"]["version"]) if record else None


def _applied(live: Live, part: Part) -> str | None:
    try:
        workload = live.get(f"/apis/apps/v1/namespaces/{part.chart.namespace}/{part.workload}")
    except Refused:
        return None
    return ((workload or {}).get("metadata", {}).get("labels") or {}).get(VERSION_LABEL)


def _crossed(key: str, older: str, newer: str) -> list[Move]:
    return [move for move in MOVES if move.part == key and order(older) < order(move.to) <= order(newer)]
