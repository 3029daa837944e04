"""A review from beginning to end."""

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from berkelium_infra.errors import UserError
from berkelium_lab.project_copy import PROJECT
from berkelium_lab.review import bench, compare, pools, trees, workloads
from berkelium_lab.review.bench import Bench, Observation, throw_away_lab
from berkelium_lab.review.model import Compared, Failure, Review
from berkelium_lab.review.revision import Repository, Revision
from berkelium_lab.review.trees import Tree
from berkelium_lab.workspace import STACK

Report = Callable[[str], None]


@dataclass(frozen=True)
class Question:
    """What to review: the work tree `project` against revision `base`, by default where it left the main branch.

    `stack` is whose configuration is applied; `charts` as for `workspace.deploy`; `name` names the lab, which `keep`
    leaves running with the change applied.
    """

    base: str | None = None
    stack: str = STACK
    charts: str | None = None
    name: str | None = None
    keep: bool = False
    project: Path = PROJECT


def review(question: Question, report: Report) -> Review:
    """Apply both states to a throw-away lab and compare.

    What the engine refuses is the review's `failure`. Raises `ReviewError` and `LabError` when there is nothing to
    apply, or nothing to apply it to, and `KeyboardInterrupt` on a signal; nothing is left behind in any case.
    """
    started = time.monotonic()
    repository = Repository(question.project)
    base = repository.base(question.base)
    repository.require_program(base, question.stack)
    found = _header(question, repository, base)
    name = question.name or f"{bench.PREFIX}{os.getpid()}-{secrets.token_hex(3)}"
    report(f"comparing with {base}, {base.name}")
    with throw_away_lab(name, question.keep, report) as lab:
        place = lab.directory / "review"
        repository.extract(base, place / "base")
        trees.copy(question.project, place / "head", question.stack)
        on = Bench(lab, report, question.charts)
        before, after = (
            trees.prepare(place / side, question.stack, on.context, question.charts) for side in ("base", "head")
        )
        found = run(on, before, after, found, report)
    if question.keep:
        report(f"the lab goes on with the change applied; remove it with `berkelium lab down --name {name}`")
    return found.model_copy(update={"seconds": round(time.monotonic() - started, 1)})


def run(on: Bench, before: Tree, after: Tree, found: Review, report: Report) -> Review:
    """Apply `before` and `after` to the bench; the review with what differs filled in."""
    rounds = workloads.rounds(workloads.read(before.directory), workloads.read(after.directory))
    stage = "apply the base revision"
    try:
        report("— the base revision")
        old = on.state(before, rounds)
        stage = "preview the change"
        report("— the engine's preview of the change")
        found = found.model_copy(update={"forecast": on.forecast(after)})
        stage = "apply the change"
        report("— the change")
        new = on.state(after, rounds)
    except UserError as error:
        return found.model_copy(update={"failure": Failure(stage=stage, message=str(error))})
    return found.model_copy(update=compared(old, new))


def compared(old: Observation, new: Observation) -> dict[str, object]:
    """The fields of a review that come from looking at both states."""
    return {
        "objects": compare.changes(old.snapshot, new.snapshot),
        "pools": pools.changes(old.snapshot.pools, new.snapshot.pools),
        "workloads": workloads.changes(old.outcomes, new.outcomes),
        "warnings_gone": [text for text in old.warnings if text not in new.warnings],
        "warnings_new": [text for text in new.warnings if text not in old.warnings],
        "compared": Compared(
            objects=len({*old.snapshot.objects, *new.snapshot.objects}),
            devices=max(old.snapshot.devices, new.snapshot.devices),
            workloads=len(new.outcomes),
        ),
    }


def _header(question: Question, repository: Repository, base: Revision) -> Review:
    changed = " with changes that are in no commit" if repository.dirty() else ""
    return Review(
        base=str(base),
        base_name=base.name,
        head=f"{repository.head()}{changed}",
        stack=question.stack,
        notes=trees.adjustments(question.stack, question.charts),
    )
