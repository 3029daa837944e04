"""What a person sees of an operation of the engine: a line per change, and errors without the machinery's noise."""

import re
import time
from collections.abc import Callable

from berkelium_lab.engine import Action, Message

_DONE = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
    "create-replacement": "created anew",
    "delete-replaced": "deleted for replacement",
    "import": "imported",
    "refresh": "read",
}
_ANNOUNCED = {name: f"would be {done}" for name, done in _DONE.items()}
_SLOW_KIND = "Release"
_NOISE = (
    "Resource monitor has terminated",
    "an unhandled error occurred",
    "update failed",
    "preview failed",
    "destroy failed",
    "resource registration failed",
)
_LINES, _COLUMNS = 12, 400
"""What is shown of one error: the API server quotes a refused expression whole, and more than once."""

_TRACEBACK = "Traceback (most recent call last)"


class Progress:
    """Called with each message of the engine; keeps its errors and warnings, and the resources that differ."""

    def __init__(self, action: Action, report: Callable[[str], None]) -> None:
        self._action = action
        self._verbs = _ANNOUNCED if action == "preview" else _DONE
        self._report = report
        self._started: dict[tuple[str, str], float] = {}
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self.steps: list[Message] = []

    def __call__(self, message: Message) -> None:
        """Take one message."""
        if message.kind == "resource":
            self._resource(message)
        elif message.kind == "warning":
            if warning := self._note(self.warnings, message):
                self._report(f"  warning: {warning}")
        elif message.kind == "note":
            self._report(message.text)
        elif message.kind == "error":
            self._note(self.errors, message)

    def summary(self, changes: dict[str, int], seconds: float) -> None:
        """Report what was done altogether."""
        counts = [f"{count} {self._verbs.get(name, name)}" for name, count in sorted(changes.items()) if name != "same"]
        counts += [f"{changes['same']} unchanged"] if changes.get("same") else []
        self._report(f"{self._action}: {', '.join(counts) or 'nothing to do'}, in {seconds:.1f} s")

    def _resource(self, message: Message) -> None:
        if message.state == "started" and message.operation not in ("same", "read", "refresh"):
            self.steps.append(message)
        kind = message.type.rsplit(":", 1)[-1]
        # Only what a cluster holds: the stack, its components and the provider are Pulumi's own bookkeeping.
        if not message.type.startswith("kubernetes:") or message.operation in ("same", "read", "refresh"):
            return
        key = (message.type, message.name)
        if message.state == "started":
            self._started[key] = time.monotonic()
            if kind == _SLOW_KIND and self._action != "preview":
                self._report(f"  {message.operation} {kind} {message.name} …")
        elif message.state == "done":
            seconds = time.monotonic() - self._started.pop(key, time.monotonic())
            took = f" ({seconds:.1f} s)" if kind == _SLOW_KIND and self._action != "preview" else ""
            self._report(f"  {self._verbs.get(message.operation, message.operation)} {kind} {message.name}{took}")
        else:
            self._report(f"  failed to {message.operation} {kind} {message.name}")

    def _note(self, notes: list[str], message: Message) -> str:
        """Keep a diagnostic; its text, or nothing when it is noise or has been said."""
        text = readable(message.text)
        note = f"{message.name}: {text}" if message.name else text
        if not text or note in notes:
            return ""
        notes.append(note)
        return note


def readable(text: str) -> str:
    """An engine's error as a person wants it: no traceback, no resource name of the engine's own, nothing said twice.

    Empty when the text only repeats what another error says.
    """
    if text.startswith(_NOISE):
        return ""
    if _TRACEBACK in text:
        # The program's own failure; a failed resource also ends in one, which its own error explains better.
        last = text.strip().splitlines()[-1].strip()
        return "" if "grpc" in text or "RpcError" in text else last
    text = re.sub(r"urn:pulumi:[^\"\s]*::|^before hook \"[^\"]*\" failed: ", "", text)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    shown = [line if len(line) <= _COLUMNS else f"{line[:_COLUMNS]}…" for line in lines[:_LINES]]
    if len(lines) > _LINES:
        shown.append(f"… and {len(lines) - _LINES} more lines")
    return "\n    ".join(shown)
