"""The examinations, and the one place that runs them all.

An examination is a function of the cluster and of what it should be that yields findings; the decorator makes it known.
Its docstring's first line says what it looks at.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from berkelium_lab.api import ApiError
from berkelium_lab.doctor.cluster import CannotLook, Cluster
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import COULD_NOT_LOOK, Finding, warning

Look = Callable[[Cluster, Expectation], Iterator[Finding]]


@dataclass(frozen=True)
class Examination:
    """One examination; `title` names what it looks at."""

    name: str
    title: str
    look: Look


EXAMINATIONS: list[Examination] = []


def examination(look: Look) -> Look:
    """Make a function an examination; they run in the order in which they are defined."""
    title = (look.__doc__ or look.__name__).partition("\n")[0].rstrip(".")
    EXAMINATIONS.append(Examination(look.__name__, title, look))
    return look


def run(one: Examination, cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """The findings of one examination; a permission that it lacks becomes a finding too."""
    try:
        yield from one.look(cluster, expectation)
    except CannotLook as missing:
        yield _blind(one, f"Grant this identity: {missing}; or run the doctor with another one.")
    except ApiError as refusal:
        yield _blind(one, "Run it again; when it stays so, ask whoever runs the API server.", str(refusal))


def _blind(one: Examination, remedy: str, *evidence: str) -> Finding:
    return warning(
        COULD_NOT_LOOK, f"examination/{one.name}", f"Could not look at this: {one.title}.", remedy, *evidence
    )
