"""Programs that outlive the command that started them, found again by process id without mistaking another for them.

Every process of a lab carries the lab's directory in an environment variable that its children inherit. Together
with the time of creation this tells a process from a later one that was given the same id, and finds the children
of a process that has died.
"""

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import psutil
from pydantic import BaseModel

MARK = "BERKELIUM_LAB_DIRECTORY"
"""Environment variable by which the processes of a lab are known."""

_CLOCK_STEP = 2.0
"""Seconds by which a process's time of creation may seem to move when the system's clock is set."""

_KILLED_SECONDS = 10

_CONFIGURED_BY_ENVIRONMENT = ("ETCD_", "KWOK_", "KUBECONFIG", "KUBERNETES_SERVICE_")

_children: list[subprocess.Popen[bytes]] = []


class ProcessRecord(BaseModel):
    """What is kept of a process: its id and its time of creation in seconds of the epoch."""

    pid: int
    create_time: float


def start(command: Sequence[str | Path], directory: Path, log: Path) -> ProcessRecord:
    """Start a program in a session of its own, its output appended to `log`, marked as belonging to `directory`.

    Raises `OSError` when it cannot be executed. It survives the caller and gets none of the terminal's signals.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=_environment(directory),
            start_new_session=True,
        )
    # Kept, because only its parent can take a dead process off the process table.
    _children.append(process)
    return ProcessRecord(pid=process.pid, create_time=_created(process.pid))


def find(record: ProcessRecord, directory: Path) -> psutil.Process | None:
    """The running process of a record, or None when it has ended, whoever has its id now."""
    for child in _children:
        child.poll()
    try:
        process = psutil.Process(record.pid)
        if _has_ended(process) or abs(process.create_time() - record.create_time) > _CLOCK_STEP:
            return None
        # A process that is just being executed, or is ending, has no environment for a moment.
        if process.environ() and not _belongs_to(process, directory):
            return None
    except psutil.Error:
        return None
    return process


def belonging_to(directory: Path) -> list[psutil.Process]:
    """Every running process of the lab in `directory`, the children of its programs included."""
    found = []
    for process in psutil.process_iter():
        try:
            if not _has_ended(process) and _belongs_to(process, directory):
                found.append(process)
        except psutil.Error:
            continue
    return found


def left_of(record: ProcessRecord, directory: Path) -> list[psutil.Process]:
    """What still runs of the session that a recorded process began: children that have outlived it."""
    return [each for each in belonging_to(directory) if each.pid != record.pid and _session(each) == record.pid]


def stop(processes: Iterable[psutil.Process], seconds: float) -> None:
    """End processes: SIGTERM to all at once, SIGKILL to those that still run after `seconds`; returns when all ended.

    Raises `TimeoutError` when one cannot be killed.
    """
    running = list(processes)
    for process in running:
        _signal(process, "terminate")
    running = _wait(running, seconds)
    for process in running:
        _signal(process, "kill")
    if alive := _wait(running, _KILLED_SECONDS):
        raise TimeoutError(f"processes that do not end when killed: {', '.join(str(each.pid) for each in alive)}")


def tail(log: Path, lines: int) -> list[str]:
    """The last `lines` lines of a log; none when there is no such file."""
    try:
        with log.open("rb") as file:
            return _last_lines(file, lines)
    except FileNotFoundError:
        return []


def _last_lines(file: IO[bytes], lines: int) -> list[str]:
    size = file.seek(0, os.SEEK_END)
    # 64 KiB hold the lines that a person wants to read, however long the program has been logging.
    file.seek(max(0, size - max(65536, lines * 512)))
    return file.read().decode(errors="replace").splitlines()[-lines:] if lines > 0 else []


def _environment(directory: Path) -> dict[str, str]:
    """The caller's environment without what would configure the programs behind the lab's back, and with the mark."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_CONFIGURED_BY_ENVIRONMENT)}
    return {**kept, MARK: str(directory)}


def _belongs_to(process: psutil.Process, directory: Path) -> bool:
    return process.environ().get(MARK) == str(directory)


def _session(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except (ProcessLookupError, PermissionError):
        return None


def _created(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return time.time()


def _signal(process: psutil.Process, how: str) -> None:
    try:
        getattr(process, how)()
    except psutil.NoSuchProcess:
        return


def _wait(running: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those of `running` that have not ended after `seconds`."""
    deadline = time.monotonic() + seconds
    while alive := [process for process in running if _is_alive(process)]:
        if time.monotonic() >= deadline:
            return alive
        time.sleep(0.02)
    return []


def _is_alive(process: psutil.Process) -> bool:
    for child in _children:
        child.poll()
    try:
        return process.is_running() and not _has_ended(process)
    except psutil.NoSuchProcess:
        return False


def _has_ended(process: psutil.Process) -> bool:
    """Whether a process is a zombie and nothing more.

    Who adopted it may take its time to read its exit status, so waiting for it to vanish would take as long. While
    some of its threads are still ending, it also holds its files and ports still.
    """
    return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
