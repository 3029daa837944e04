"""Child processes in groups of their own, with their output line by line, that can all be stopped at once."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

GRACE_SECONDS = 10.0


class Cancelled(Exception):
    """The build was told to stop, because of an interruption or because another tool's build failed."""


class CommandFailed(Exception):
    """A command ended with another code than 0. `returncode` is negative for a signal."""

    def __init__(self, command: Sequence[str], directory: Path, returncode: int) -> None:
        super().__init__(f"{command[0]} ended with {returncode}")
        self.command = tuple(command)
        self.directory = directory
        self.returncode = returncode


class ProcessGroups:
    """Runs commands for several threads; after `cancel` none runs and none can be started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def run(
        self,
        command: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
    ) -> None:
        """Runs `command` to its end and hands over each line of its output (both streams) as it comes.

        Raises CommandFailed when it ends with another code than 0, Cancelled after `cancel`.
        """
        process = self._start(command, directory, environment)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                on_line(line.rstrip("\n"))
            returncode = process.wait()
        except BaseException:
            _stop([process])
            raise
        finally:
            with self._lock:
                self._running.discard(process)
            if process.stdout is not None:
                process.stdout.close()
        if self.cancelled:
            raise Cancelled
        if returncode != 0:
            raise CommandFailed(command, directory, returncode)

    def cancel(self) -> None:
        """Stops every running command with all of its children and returns when they are gone."""
        with self._lock:
            self._cancelled.set()
            running = list(self._running)
        _stop(running)

    def _start(self, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        with self._lock:
            if self.cancelled:
                raise Cancelled
            process = subprocess.Popen(
                command,
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.add(process)
            return process


def _stop(processes: Sequence[subprocess.Popen[str]]) -> None:
    """An interrupt first, upon which Go removes its temporary files, then the kill of what is left of the group."""
    for process in processes:
        _signal(process, signal.SIGINT)
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
