"""Findings of a search for drift, as they are printed and given out as JSON."""

import json
import shlex
from typing import Any

from pydantic import BaseModel

from berkelium_infra.drifted import Drifted, Pointer


class Difference(BaseModel):
    """One field: dotted path, what was applied and what is there; null for nothing."""

    path: str
    declared: Any = None
    found: Any = None


class Finding(BaseModel):
    """One object that drifted.

    `release` names the Helm release that it belongs to; `gone` that it was deleted. `removal` is a command that takes
    away what was added, where applying the stack leaves that: it is nobody's field but of whoever added it.
    """

    kind: str
    namespace: str = ""
    name: str
    release: str | None = None
    gone: bool = False
    differences: tuple[Difference, ...] = ()
    removal: str | None = None

    @classmethod
    def of(cls, drifted: Drifted, release: str | None = None) -> "Finding":
        """From a comparison."""
        return cls(
            kind=drifted.kind,
            namespace=drifted.namespace,
            name=drifted.name,
            release=release,
            gone=drifted.gone,
            removal=None if release else _removal(drifted),
            differences=tuple(
                Difference(path=change.path, declared=change.declared, found=change.found) for change in drifted.changes
            ),
        )


def _removal(drifted: Drifted) -> str | None:
    # From the end, so that the positions before it stay what they are.
    places = sorted((change.pointer for change in drifted.changes if change.added), key=_sorting, reverse=True)
    if not places:
        return None
    operations = [{"op": "remove", "path": "".join(f"/{_escaped(part)}" for part in place)} for place in places]
    where = ["--namespace", drifted.namespace] if drifted.namespace else []
    words = [
        "kubectl",
        "patch",
        drifted.kind.lower(),
        drifted.name,
        *where,
        "--type=json",
        "-p",
        json.dumps(operations),
    ]
    return shlex.join(words)


def _sorting(pointer: Pointer) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (-1, part) for part in pointer]


def _escaped(part: str | int) -> str:
    """A part of a JSON pointer (RFC 6901)."""
    return str(part).replace("~", "~0").replace("/", "~1")


class Drift(BaseModel):
    """Everything that was found in one cluster; `compared` counts the objects and releases that were looked at."""

    server: str
    compared: int
    findings: tuple[Finding, ...]
