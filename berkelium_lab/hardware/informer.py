"""A local copy of all objects of one kind, kept up to date by a watch, so that an idle simulator asks for nothing."""

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import urllib3

from berkelium_lab.api import Api, ApiError

log = logging.getLogger(__name__)

T = TypeVar("T")

_WATCH_SECONDS = 600
_PAUSE = 0.5


class Informer(Generic[T]):
    """Objects of one kind in all namespaces, each reduced to what is wanted of it.

    `reduce` makes a `T` of an object, or None to leave it out. `changed` is called after every change of the copy.
    While `wanted` says no (its CustomResourceDefinition is missing, for instance) the copy is empty.
    """

    def __init__(
        self,
        api: Api,
        api_version: str,
        kind: str,
        reduce: Callable[[dict[str, Any]], T | None],
        changed: Callable[[], None],
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._api = api
        self._api_version = api_version
        self._kind = kind
        self._reduce = reduce
        self._changed = changed
        self._wanted = wanted
        self._lock = threading.Lock()
        self._items: dict[str, T] = {}
        self._seen = 0
        self._stop = threading.Event()
        self._trouble = ""
        self.synced = False

    def start(self) -> None:
        """Begin to list and watch, in a daemon thread."""
        threading.Thread(target=self._run, name=f"watch {self._kind}", daemon=True).start()

    def stop(self) -> None:
        """Take in no more changes; the thread ends with its watch or with the process."""
        self._stop.set()

    def items(self) -> list[T]:
        """The copy as it is now."""
        with self._lock:
            return list(self._items.values())

    def get(self, name: str, namespace: str = "") -> T | None:
        """One object of the copy."""
        with self._lock:
            return self._items.get(f"{namespace}/{name}")

    def put(self, obj: dict[str, Any]) -> None:
        """Take in an object that was just written, before the watch tells of it."""
        with self._lock:
            if _version(obj) > self._seen:
                self._store(obj)

    def drop(self, name: str, namespace: str = "") -> None:
        """Forget an object that was just deleted, before the watch tells of it."""
        with self._lock:
            self._items.pop(f"{namespace}/{name}", None)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._wanted():
                    self._watch(self._list())
                    continue
                self._replace([], 0)
            except (ApiError, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                self._tell(error)
            self._stop.wait(_PAUSE)

    def _tell(self, error: Exception) -> None:
        """Log what goes wrong, once until all is well again. A kind not served and a watch too old are ordinary."""
        ordinary = isinstance(error, ApiError) and error.status in (404, 410)
        if not ordinary and type(error).__name__ != self._trouble:
            self._trouble = type(error).__name__
            log.warning("watching %s: %s", self._kind, error)

    def _list(self) -> str:
        objects, version = self._api.list_with_version(self._api_version, self._kind)
        self._trouble = ""
        self._replace(objects, int(version))
        return version

    def _watch(self, version: str) -> None:
        events = self._api.watch(self._api_version, self._kind, resource_version=version, seconds=_WATCH_SECONDS)
        for event, obj in events:
            if self._stop.is_set() or not self._wanted():
                return
            with self._lock:
                self._seen = max(self._seen, _version(obj))
                before = self._items.get(_key(obj))
                if event == "DELETED":
                    self._items.pop(_key(obj), None)
                elif event != "BOOKMARK":
                    self._store(obj)
                different = before != self._items.get(_key(obj))
            if different:
                self._changed()

    def _store(self, obj: dict[str, Any]) -> None:
        reduced = self._reduce(obj)
        if reduced is None:
            self._items.pop(_key(obj), None)
        else:
            self._items[_key(obj)] = reduced

    def _replace(self, objects: list[dict[str, Any]], version: int) -> None:
        with self._lock:
            before = self._items
            self._items = {}
            for obj in objects:
                self._store(obj)
            self._seen = version
            different = before != self._items or not self.synced
            self.synced = True
        if different:
            self._changed()


def _key(obj: dict[str, Any]) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _version(obj: dict[str, Any]) -> int:
    # Resource versions are comparable numbers (guaranteed since Kubernetes 1.35).
    return int(obj["metadata"]["resourceVersion"])
