"""Faults in a stack's configuration: what each is, and how all of them become one message."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from berkelium_infra.errors import UserError


@dataclass(frozen=True, order=True)
class Fault:
    """One fault: the dotted key it sits at, what is wrong, and what to write instead (both whole sentences)."""

    key: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.key}: {self.problem} {self.remedy}"


class SettingsError(UserError):
    """A stack's configuration has faults; `faults` holds all of them, the text lists them one per line."""

    def __init__(self, stack: str, faults: Sequence[Fault]) -> None:
        self.stack = stack
        self.faults = tuple(faults)
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        lines = "".join(f"\n  {fault}" for fault in faults)
        super().__init__(f"Pulumi.{stack}.yaml has {count}; no resource was touched.{lines}")


def listed(names: Iterable[str]) -> str:
    """Names in one phrase: `a`, `a or b`, `a, b or c`."""
    words = list(names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def unknown(key: str, name: str, kind: str, known: Iterable[str]) -> Fault:
    """The fault of a name that nothing answers to, with the nearest known one when it looks like a slip.

    `kind` ends the sentence "… is no …", for instance "key of nvidia".
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    problem = f"{name!r} is no {kind}."
    if near:
        return Fault(key, problem, f"Write {near[0]}.")
    return Fault(key, problem, f"Known here: {', '.join(names)}." if names else "Remove it.")
