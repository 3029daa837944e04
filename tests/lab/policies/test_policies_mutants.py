"""A policy that lacks a clause or a pattern gives some sample or command the wrong verdict."""

from collections.abc import Iterator
from functools import cache

import pytest

from berkelium_lab.api import ApiError
from berkelium_lab.policy_trial import EvaluationError, Trial, trial
from tests.lab.policies.conftest import Judge
from tests.lab.policies.mutants import Mutant, mutants
from tests.lab.policies.world import Object, commands, documents, job, samples

ALL = {f"{mutant.policy}: {mutant.clause}": mutant for mutant in mutants()}


@pytest.fixture(scope="module")
def mutant_trial(judge: Judge) -> Iterator[Trial]:
    """All mutants, each live in a namespace of its own, while the policies themselves are suspended."""
    judge.suspend()
    try:
        with trial(judge.api, {name: mutant.manifest for name, mutant in ALL.items()}) as running:
            yield running
    finally:
        judge.install()


@cache
def cases(policy: str) -> list[tuple[bool, list[Object]]]:
    """Whether it must be refused, and the objects: samples first, then the table of commands."""
    found = [(verdict == "denied", documents(path)) for verdict, path in samples(policy)]
    if policy == "no-idle-gpu":
        found += [(verdict == "idle", [job(c)]) for verdict in ("idle", "working") for c in commands(verdict)]
    return found


def refused(running: Trial, name: str, objects: list[Object]) -> bool | None:
    """Whether the mutant refuses one of the objects; None when it cannot be evaluated."""
    single = Trial(running.api, {name: running.namespaces[name]})
    try:
        return any(refusals for obj in objects if (refusals := single.refusals(obj)))
    except (EvaluationError, ApiError):
        return None


@pytest.mark.parametrize("name", ALL)
def test_without_it_some_verdict_is_wrong(mutant_trial: Trial, name: str) -> None:
    mutant: Mutant = ALL[name]
    wrong = (objects for must, objects in cases(mutant.policy) if refused(mutant_trial, name, objects) is not must)
    assert next(wrong, None) is not None, f"nothing notices that {mutant.policy} lacks: {mutant.clause}"
