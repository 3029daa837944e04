"""Signals that end a command, kept away from moments that must not be cut in two."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While entered, SIGINT, SIGTERM and SIGHUP all raise `KeyboardInterrupt`, but not inside `held()`.

    A signal that arrives there is kept until the outermost `held()` ends. Outside the main thread, where Python
    delivers no signal, nothing changes.
    """

    def __init__(self) -> None:
        self._previous: dict[signal.Signals, Any] = {}
        self._holders = 0
        self._pending = False

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # Ignored by whoever started this command (nohup, a shell's background job): it stays so.
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._received)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Put off interruptions until the block has ended."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
        if self._pending and not self._holders:
            self._pending = False
            raise KeyboardInterrupt

    def _received(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._holders:
            self._pending = True
        else:
            raise KeyboardInterrupt
