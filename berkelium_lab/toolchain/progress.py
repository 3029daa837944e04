"""What a build says while it runs: which tool, how far, how long. Lines, so that a log reads as well as a terminal."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection

Report = Callable[[str], None]

INTERVAL_SECONDS = 10.0
KEPT_LINES = 40


def silent(_: str) -> None:
    """The report of a caller who wants none."""


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Progress:
    """The lines of one run, from any thread; `total` is the number of tools to build."""

    def __init__(self, report: Report, total: int, interval: float = INTERVAL_SECONDS) -> None:
        self.interval = interval
        self._report = report
        self._total = total
        self._built = 0
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        with self._lock:
            self._report(text)

    def finished(self, text: str) -> None:
        """A tool is there; `text` says how it came."""
        with self._lock:
            self._built += 1
            self._report(f"{text} ({self._built} of {self._total} tools)")


class ToolProgress:
    """Follows the output of Go's commands for one tool.

    Go names each package that it compiles (`-v`); `expect` says which will come, so that the rest of the output, the
    reason for a failure among it, can be told apart. The last lines of the rest are in `lines`.
    """

    def __init__(self, progress: Progress, tool: str) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._progress = progress
        self._tool = tool
        self._started = self._said = time.monotonic()
        self._pending: set[str] = set()
        self._packages = 0
        self._downloads = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def expect(self, packages: Collection[str]) -> None:
        self._pending = set(packages)
        self._packages = len(packages)
        self.say("linking" if self._packages <= 1 else f"{self._packages} packages to compile")

    def line(self, line: str) -> None:
        if line.startswith("go: downloading "):
            self._downloads += 1
            self._say_sometimes(f"downloading modules, {self._downloads} so far")
        elif line in self._pending:
            self._pending.discard(line)
            self._compiling()
        elif line.strip():
            self.lines.append(line)

    def say(self, text: str) -> None:
        self._said = time.monotonic()
        self._progress.say(f"{self._tool}: {text}, {duration(self.seconds)}")

    def waiting(self) -> None:
        self._say_sometimes("still waiting for the other process")

    def _compiling(self) -> None:
        done = self._packages - len(self._pending)
        if not self._pending and self._packages > 1:
            self.say("linking")
        else:
            self._say_sometimes(f"{done} of {self._packages} packages compiled")

    def _say_sometimes(self, text: str) -> None:
        if time.monotonic() - self._said >= self._progress.interval:
            self.say(text)
