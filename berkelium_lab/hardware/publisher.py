"""Brings the ResourceSlices that the API server holds to what the drivers publish.

It does what the drivers' helper library does: a pool whose content changed is written anew with the next generation,
and the slices of older generations are deleted afterwards, so that no moment lacks a complete pool.
"""

import logging
from collections.abc import Container, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from berkelium_lab.api import Api, ApiError
from berkelium_lab.hardware.informer import Informer
from berkelium_lab.hardware.slices import Pool, PublishedSlice, manifests

log = logging.getLogger(__name__)

_REQUESTS_AT_ONCE = 8
_PATH = "/apis/resource.k8s.io/v1/resourceslices"
# A slice of 26 devices is large; what comes back of it is only its name and version.
_METADATA_ONLY = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}

Key = tuple[str, str]
"""Driver and node of a pool."""


class Publisher:
    """Writes and deletes slices; `slices` is the local copy of what the API server holds."""

    def __init__(self, api: Api, slices: Informer[PublishedSlice]) -> None:
        self._api = api
        self._slices = slices
        self._workers = ThreadPoolExecutor(_REQUESTS_AT_ONCE, thread_name_prefix="slices")
        self._refused: dict[Key, Pool] = {}

    def close(self) -> None:
        """End the worker threads."""
        self._workers.shutdown(cancel_futures=True)

    def publish(self, pools: Iterable[Pool], node_uids: Mapping[str, str]) -> None:
        """Write the pools that differ from what is held. `node_uids` has the UID of every existing node.

        A pool of which the API server refuses a slice is not tried again until it changes.
        """
        held = self.held()
        writes: list[tuple[Pool, list[PublishedSlice], list[Future[str | None]]]] = []
        for pool in pools:
            current = held.get(pool.key, [])
            if pool.node in node_uids and not _up_to_date(pool, current) and self._refused.get(pool.key) != pool:
                generation = max((published.generation for published in current), default=0) + 1
                bodies = manifests(pool, node_uids[pool.node], generation)
                writes.append((pool, current, [self._workers.submit(self._create, body) for body in bodies]))
        for pool, current, futures in writes:
            self._finish(pool, current, [future.result() for future in futures])

    def withdraw(self, keys: Iterable[Key]) -> None:
        """Delete all slices of these pools."""
        held = self.held()
        for key in keys:
            self._refused.pop(key, None)
            if names := [published.name for published in held.get(key, [])]:
                self._delete(names)
                log.info("%s: %s withdrawn, %d slices", key[1], key[0], len(names))

    def held(self) -> dict[Key, list[PublishedSlice]]:
        """The slices of every pool that has any."""
        pools: dict[Key, list[PublishedSlice]] = {}
        for published in self._slices.items():
            pools.setdefault((published.driver, published.node), []).append(published)
        return pools

    def held_for(self, drivers: Iterable[str], nodes: Container[str]) -> set[Key]:
        """The pools of these drivers on these nodes that have any slice; nodes outside the fleet are not ours."""
        chosen = set(drivers)
        return {(driver, node) for driver, node in self.held() if driver in chosen and node in nodes}

    def _finish(self, pool: Pool, old: list[PublishedSlice], created: list[str | None]) -> None:
        names = [name for name in created if name is not None]
        if len(names) < len(created):
            self._refused[pool.key] = pool
            self._delete(names)
            return
        self._refused.pop(pool.key, None)
        self._delete([published.name for published in old])
        log.info("%s: %s publishes %d slices", pool.node, pool.driver, len(names))

    def _create(self, body: dict[str, Any]) -> str | None:
        """The name of the new slice; None when the API server refuses it, which a driver would log and no more."""
        try:
            created = self._api.raw("POST", _PATH, {"fieldValidation": "Strict"}, body, _METADATA_ONLY)
        except ApiError as error:
            log.error("%s: a ResourceSlice was refused: %s", body["spec"]["nodeName"], error)
            return None
        self._slices.put({**body, "metadata": created["metadata"]})
        return created["metadata"]["name"]

    def _delete(self, names: list[str]) -> None:
        for finished in [self._workers.submit(self._remove, name) for name in names]:
            finished.result()

    def _remove(self, name: str) -> None:
        self._api.delete("resource.k8s.io/v1", "ResourceSlice", name)
        self._slices.drop(name)


def _up_to_date(pool: Pool, current: list[PublishedSlice]) -> bool:
    if len({published.generation for published in current}) > 1:
        return False
    if any(published.count != len(pool.contents) for published in current):
        return False
    return pool.wanted == sorted((published.prefix, published.content) for published in current)
