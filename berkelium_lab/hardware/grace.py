"""How long things outlive the pod that made them."""

import time
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

WIPE_SECONDS = 3.0
"""How long slices outlive the last plugin pod of a node, so that a rollout leaves no gap.

On a real node the kubelet deletes them some time after the plugin is gone (30 s); nobody wants to wait that long here.
A plugin that is killed and comes back finds them in both cases.
"""


class Grace(Generic[K]):
    """Tells what has been without its pod for `seconds`, so that a pod's replacement finds everything in place."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[K, float] = {}

    def expired(self, orphans: Iterable[K]) -> tuple[list[K], float | None]:
        """Which of `orphans` have been such for long enough, and the seconds until the next one will have been."""
        now = self._clock()
        self._since = {key: self._since.get(key, now) for key in orphans}
        due = [key for key, since in self._since.items() if now - since >= self._seconds]
        waits = [since + self._seconds - now for key, since in self._since.items() if key not in due]
        return due, min(waits, default=None)
