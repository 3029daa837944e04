"""Child processes that never outlive the simulator."""

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_STOP_SECONDS = 3.0


def start(command: list[str], log_file: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a program whose output is appended to `log_file`.

    It must be called from the main thread: on Linux the kernel ends the child when the thread that made it ends.
    """
    with log_file.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            preexec_fn=_die_with_parent,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child, by force if it does not end by itself."""
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _die_with_parent() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
