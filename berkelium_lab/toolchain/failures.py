"""What a user reads when a build has failed."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from berkelium_lab.toolchain.errors import ToolchainError
from berkelium_lab.toolchain.layout import BUILD_ENVIRONMENT
from berkelium_lab.toolchain.processes import CommandFailed

SHOWN_LINES = 15

_NETWORK = (
    "no such host",
    "dial tcp",
    "network is unreachable",
    "connection refused",
    "i/o timeout",
    "TLS handshake timeout",
    "proxyconnect",
    "temporary failure in name resolution",
)
_HINTS = (
    (
        _NETWORK,
        "Go could not download a module: there is no network, or the module proxy cannot be reached. Check the "
        "connection and `go env GOPROXY`; what is downloaded and compiled already is kept.",
    ),
    (("no space left on device",), "The disk is full: a complete build wants about 12 GB for Go's caches."),
    (("signal: killed", "cannot allocate memory"), "The machine ran out of memory: close other programs and retry."),
    (
        ("missing go.sum entry", "updates to go.mod needed", "checksum mismatch"),
        "go.mod and go.sum do not agree: run `go mod tidy` in the tool's directory (tools/README.md).",
    ),
)


def build_failure(tool: str, failure: CommandFailed, lines: Iterable[str], log: Path) -> ToolchainError:
    """The command, the last lines of its output, where all of it is, and what to do where the output tells."""
    last = list(lines)[-SHOWN_LINES:]
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in BUILD_ENVIRONMENT.items())
    parts = [
        f"{tool} could not be built: {_end(failure.returncode)}.",
        f"  command: cd {shlex.quote(str(failure.directory))} && {settings} {shlex.join(failure.command)}",
        "  last lines of its output:" if last else "  it printed nothing.",
        *(f"    {line}" for line in last),
        f"  all of its output: {log}",
    ]
    if hint := _hint(last):
        parts.append(hint)
    return ToolchainError("\n".join(parts))


def _end(returncode: int) -> str:
    return (
        f"the command was ended by signal {-returncode}" if returncode < 0 else f"the command ended with {returncode}"
    )


def _hint(lines: Iterable[str]) -> str | None:
    text = "\n".join(lines).lower()
    for signs, hint in _HINTS:
        if any(sign.lower() in text for sign in signs):
            return hint
    return None
