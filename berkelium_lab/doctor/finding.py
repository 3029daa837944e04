"""What an examination finds, and the sum of all findings."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """How much a finding matters: an error breaks something, a warning may, an info is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(BaseModel):
    """One finding.

    `id` tells the kind of finding and never changes; `subject` is the object that it is about, as `kind/name` or
    `kind/namespace/name`. `evidence` holds what was seen, a line each, and `remedy` what to do.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    severity: Severity
    subject: str
    summary: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""


class Diagnosis(BaseModel):
    """All findings on one cluster, errors first.

    `compared_with` says what the cluster should be. `blind` says that some examination was not possible: what it would
    have found is not known.
    """

    model_config = ConfigDict(frozen=True)

    server: str
    compared_with: str
    findings: tuple[Finding, ...]

    @property
    def blind(self) -> bool:
        """Whether an examination was refused by the API server."""
        return any(finding.id == COULD_NOT_LOOK for finding in self.findings)

    @property
    def sick(self) -> bool:
        """Whether there is a finding of severity error."""
        return bool(self.of(Severity.ERROR))

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of that severity."""
        return tuple(finding for finding in self.findings if finding.severity is severity)


COULD_NOT_LOOK = "could-not-look"


def error(id: str, subject: str, summary: str, remedy: str, *evidence: str) -> Finding:
    """Something does not work, or will not."""
    return Finding(id=id, severity=Severity.ERROR, subject=subject, summary=summary, evidence=evidence, remedy=remedy)


def warning(id: str, subject: str, summary: str, remedy: str, *evidence: str) -> Finding:
    """Something may not do what it looks like."""
    return Finding(id=id, severity=Severity.WARNING, subject=subject, summary=summary, evidence=evidence, remedy=remedy)


def info(id: str, subject: str, summary: str, remedy: str = "", *evidence: str) -> Finding:
    """Something worth knowing."""
    return Finding(id=id, severity=Severity.INFO, subject=subject, summary=summary, evidence=evidence, remedy=remedy)


SHOWN = 20
"""How many equal things a finding lists before it only counts the rest."""


def some(lines: Sequence[str]) -> list[str]:
    """The first lines, and how many more there are."""
    if len(lines) <= SHOWN:
        return list(lines)
    return [*lines[:SHOWN], f"and {len(lines) - SHOWN} more"]


def counted(things: Sequence[object], noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{len(things)} {noun}" if len(things) == 1 else f"{len(things)} {noun}s"
