"""The tools, built when they are not there yet."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from filelock import Timeout

from berkelium_lab.toolchain import schedule
from berkelium_lab.toolchain.build import build
from berkelium_lab.toolchain.errors import ToolchainError
from berkelium_lab.toolchain.go import find_go
from berkelium_lab.toolchain.layout import Layout, is_program
from berkelium_lab.toolchain.processes import Cancelled, ProcessGroups
from berkelium_lab.toolchain.progress import Progress, Report, ToolProgress, silent
from berkelium_lab.toolchain.schedule import Job
from berkelium_lab.toolchain.table import Tool

READY_BINARIES = "BERKELIUM_TOOLS"
LOCK_POLL_SECONDS = 0.1

_BEFORE_A_BUILD = (
    "Building {count} of {total} tools into {root}. A complete build from an empty cache takes about 20 minutes on "
    "2 cores and about 12 GB of disk for Go's caches; `go clean -cache -modcache` frees that disk afterwards."
)


@dataclass(frozen=True)
class Toolchain:
    """A directory that holds every tool under its plain name."""

    directory: Path
    names: tuple[str, ...]

    def path(self, name: str) -> Path:
        """The program `name`. Raises ToolchainError for a name that is no tool's."""
        if name not in self.names:
            raise ToolchainError(f"There is no tool {name!r}; the tools are: {', '.join(self.names)}.")
        return self.directory / name


def ensure_tools(report: Report | None = None, layout: Layout | None = None) -> Toolchain:
    """All tools: the binaries in `$BERKELIUM_TOOLS`, or else from the cache, with what is missing there built first.

    `report` gets each line of progress; nothing is reported when nothing is to be built. An interruption (Ctrl-C,
    SIGTERM, SIGHUP) ends every process of the build; a later call takes up what is done.

    Raises ToolchainError: Go is missing or too old, a build failed, `$BERKELIUM_TOOLS` lacks a binary.
    """
    layout = layout or Layout()
    if ready := ready_binaries(layout):
        return ready
    if missing := layout.missing():
        _build_all(layout, missing, report or silent)
    return Toolchain(layout.assemble(), layout.names)


def find_tools(layout: Layout | None = None) -> Toolchain:
    """As `ensure_tools`, but raises ToolchainError instead of building."""
    layout = layout or Layout()
    if ready := ready_binaries(layout):
        return ready
    if missing := layout.missing():
        names = ", ".join(tool.name for tool in missing)
        raise ToolchainError(f"Not built yet: {names}. Build them with `berkelium tools build`.")
    return Toolchain(layout.assemble(), layout.names)


def ready_binaries(layout: Layout) -> Toolchain | None:
    """The tools in `$BERKELIUM_TOOLS`; None when it is not set.

    Raises ToolchainError when the directory is missing or lacks a binary.
    """
    configured = os.environ.get(READY_BINARIES)
    if not configured:
        return None
    directory = Path(configured).expanduser().absolute()
    if not directory.is_dir():
        raise ToolchainError(f"{READY_BINARIES} is set to {configured}, which is no directory.")
    missing = [name for name in layout.names if not is_program(directory / name)]
    if missing:
        raise ToolchainError(
            f"{READY_BINARIES} is set to {configured}, which has no executable {', '.join(missing)}. "
            f"Put it there, or unset {READY_BINARIES} to have the tools built."
        )
    return Toolchain(directory, layout.names)


def _build_all(layout: Layout, missing: list[Tool], report: Report) -> None:
    groups = ProcessGroups()
    go = find_go(layout, missing, groups)
    progress = Progress(report, total=len(missing))
    progress.say(_BEFORE_A_BUILD.format(count=len(missing), total=len(layout.tools), root=layout.root))
    modules: dict[str, list[Tool]] = {}
    for tool in missing:
        modules.setdefault(tool.directory, []).append(tool)

    def job(directory: str, tools: list[Tool]) -> Job:
        def work() -> None:
            with _locked(layout, directory, groups, progress):
                for tool in tools:
                    if is_program(layout.binary(tool)):
                        progress.finished(f"{tool.name}: another process has built it")
                    else:
                        build(layout, tool, go, progress)

        return Job(directory, max(tool.memory_mib for tool in tools), work)

    with _stoppable():
        schedule.run(
            [job(directory, tools) for directory, tools in modules.items()],
            memory_mib=schedule.available_memory_mib(),
            workers=os.cpu_count() or 1,
            stop=groups.cancel,
        )


@contextlib.contextmanager
def _locked(layout: Layout, directory: str, groups: ProcessGroups, progress: Progress) -> Iterator[None]:
    """Holds the lock of a module; waits for another process that holds it, and says so."""
    lock = layout.lock(directory)
    follow: ToolProgress | None = None
    while True:
        try:
            lock.acquire(timeout=0 if follow is None else LOCK_POLL_SECONDS, poll_interval=LOCK_POLL_SECONDS)
            break
        except Timeout:
            if groups.cancelled:
                raise Cancelled from None
            if follow is None:
                follow = ToolProgress(progress, directory)
                follow.say("another process builds it, waiting")
            follow.waiting()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP unwind the stack as Ctrl-C does, where signals can be handled (the main thread).

    A signal that is ignored, as `nohup` ignores SIGHUP, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    handled = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, leave) for number in handled}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
