"""A lab to which the states of the program are applied one after the other, and what is seen of each."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from berkelium_lab import paths, workspace
from berkelium_lab.api import connect
from berkelium_lab.interrupts import Interrupts
from berkelium_lab.lab import Lab, labs
from berkelium_lab.review import snapshot, workloads
from berkelium_lab.review.errors import ReviewError
from berkelium_lab.review.model import Forecast, Outcome, Step
from berkelium_lab.review.settling import settle
from berkelium_lab.review.snapshot import Snapshot
from berkelium_lab.review.trees import Tree
from berkelium_lab.review.workloads import Manifest

PREFIX = "preview-"

Report = Callable[[str], None]


@dataclass(frozen=True)
class Observation:
    """What is seen of a state: every object, and what became of the workloads. `warnings` are the program's own."""

    snapshot: Snapshot
    outcomes: list[Outcome]
    warnings: tuple[str, ...]


class Bench:
    """A running lab on which states are applied. Methods raise `LabError` when the engine refuses, and
    `KeyboardInterrupt` when a signal ended it.
    """

    def __init__(self, lab: Lab, report: Report, charts: str | None = None) -> None:
        self._lab = lab
        self._report = report
        self._charts = charts
        self._api = connect(lab.kubeconfig)

    @property
    def context(self) -> str:
        """The context of the lab's kubeconfig."""
        return f"lab-{self._lab.name}"

    def state(self, tree: Tree, rounds: list[list[Manifest]]) -> Observation:
        """Apply the tree, wait until its effects have come to rest, and look; the workloads are removed again."""
        with _interruptible():
            done = workspace.deploy(self._lab, tree.overrides, self._report, **self._options(tree))
        self._report("waiting until labels, rollouts and devices have come to rest")
        try:
            settle(self._api)
            taken = snapshot.take(self._api)
            count = sum(len(manifests) for manifests in rounds)
            self._report(f"read {len(taken.objects)} objects and {taken.devices} devices; trying {count} manifests")
            outcomes = [outcome for each in rounds for outcome in workloads.try_all(self._api, each)]
        except TimeoutError as error:
            raise ReviewError(str(error)) from None
        return Observation(taken, outcomes, done.warnings)

    def forecast(self, tree: Tree) -> Forecast:
        """The engine's preview of the tree against the state that is applied, with the server's dry run."""
        with _interruptible():
            seen = workspace.preview(self._lab, tree.overrides, self._report, **self._options(tree))
        steps = [Step(operation=m.operation, type=m.type, name=m.name, paths=m.paths) for m in seen.steps]
        return Forecast(counts=seen.changes, steps=steps, text=seen.text.strip())

    def _options(self, tree: Tree) -> workspace.Options:
        return {"charts": self._charts, "project": tree.directory, "stack": tree.stack, "secrets": tree.secrets}


@contextmanager
def throw_away_lab(name: str, keep: bool, report: Report) -> Iterator[Lab]:
    """A lab that did not exist before and is gone afterwards, however the block ends; with `keep` it goes on.

    Also removes what killed reviews have left. Raises `ReviewError` when there is a lab of that name.
    """
    _remove_left_behind(report)
    if name in labs():
        raise ReviewError(f"there is a lab {name!r} already, and a review needs an empty one; give another --name")
    lab = Lab(name)
    with Interrupts() as interrupts:
        try:
            lab.up(report=report)
            yield lab
        except BaseException:
            keep = False
            raise
        finally:
            if not keep:
                with interrupts.held():
                    report(f"taking down lab {name!r}")
                    lab.down()
                    _forget_locks(name)


def _forget_locks(name: str) -> None:
    """Remove the lock files of a lab whose name nobody uses again."""
    if name.startswith(PREFIX):
        lock = paths.lock_file(name)
        for file in (lock, lock.with_suffix(".deploy.lock")):
            file.unlink(missing_ok=True)


def _remove_left_behind(report: Report) -> None:
    for name in labs():
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and owner.isdigit() and not psutil.pid_exists(int(owner)):
            report(f"an earlier review was killed; taking down its lab {name!r}")
            Lab(name).down()
            _forget_locks(name)


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except workspace.OperationInterrupted:
        raise KeyboardInterrupt from None
