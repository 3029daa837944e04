"""The loop that runs the simulator's parts whenever something that they watch has changed."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import urllib3

from berkelium_lab.api import ApiError

log = logging.getLogger(__name__)

_COALESCE = 0.02
_RETRY = 0.5


class Controller(Protocol):
    """One part of the simulator."""

    name: str

    def reconcile(self) -> float | None:
        """Compare and act; the seconds after which to be called again even if nothing changes, or None."""
        ...


class Loop:
    """Calls every controller after `wake`, at most once per batch of changes."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._stopped = threading.Event()

    def wake(self) -> None:
        """Something changed."""
        self._event.set()

    def stop(self) -> None:
        """End `run` after the round that is under way."""
        self._stopped.set()
        self._event.set()

    def run(self, controllers: Sequence[Controller], ready: Callable[[], bool]) -> None:
        """Call the controllers, once `ready`, until `stop`.

        A refused or failed request is logged, and the controllers are called again.
        """
        timeout: float | None = None
        while True:
            self._event.wait(timeout)
            if self._stopped.wait(_COALESCE):
                return
            self._event.clear()
            if not ready():
                continue
            delays = [_guarded(controller) for controller in controllers]
            timeout = min((delay for delay in delays if delay is not None), default=None)


def _guarded(controller: Controller) -> float | None:
    try:
        return controller.reconcile()
    except (ApiError, urllib3.exceptions.HTTPError, OSError) as error:
        log.warning("%s: %s", controller.name, error)
        return _RETRY
    except Exception:
        # One part's defect must not stop the others: the laboratory would lose all its hardware.
        log.exception("%s failed", controller.name)
        return 10 * _RETRY
