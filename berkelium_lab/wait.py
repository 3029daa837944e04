"""Waiting for a condition, never for a length of time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotYet(Exception):
    """Raised by a probe whose condition does not hold yet; its text is what the probe saw instead."""


def remaining(left: Callable[[], list[T]], seconds: float, interval: float = 0.1) -> list[T]:
    """What `left` still lists after `seconds`; empty as soon as it lists nothing. It is asked at least once."""
    deadline = time.monotonic() + seconds
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(min(interval, max(0.0, deadline - time.monotonic())))
    return found


def until(probe: Callable[[], T | None], what: str, seconds: float, interval: float = 0.1) -> T:
    """The first truthy result of `probe`, which is called every `interval` seconds.

    Raises `TimeoutError` after `seconds`, naming `what` and the last thing seen: the text of the last `NotYet`, or
    the last result. The probe runs at least once, and any other exception of it passes through at once.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            result = probe()
            if result:
                return result
            seen = repr(result)
        except NotYet as reason:
            seen = str(reason)
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not after {seconds:g} s; last seen: {seen}")
        time.sleep(min(interval, max(0.0, deadline - time.monotonic())))
