"""Findings of a search for drift, as they are printed and given out as JSON."""

from typing import Any

from pydantic import BaseModel

from berkelium_infra.drifted import Drifted


class Difference(BaseModel):
    """One field: dotted path, what was applied and what is there; null for nothing."""

    path: str
    declared: Any = None
    found: Any = None


class Finding(BaseModel):
    """One object that drifted. `release` names the Helm release that it belongs to; `gone` that it was deleted."""

    kind: str
    namespace: str = ""
    name: str
    release: str | None = None
    gone: bool = False
    differences: tuple[Difference, ...] = ()

    @classmethod
    def of(cls, drifted: Drifted, release: str | None = None) -> "Finding":
        """From a comparison."""
        return cls(
            kind=drifted.kind,
            namespace=drifted.namespace,
            name=drifted.name,
            release=release,
            gone=drifted.gone,
            differences=tuple(
                Difference(path=change.path, declared=change.declared, found=change.found) for change in drifted.changes
            ),
        )


class Drift(BaseModel):
    """Everything that was found in one cluster; `compared` counts the objects and releases that were looked at."""

    server: str
    compared: int
    findings: tuple[Finding, ...]
