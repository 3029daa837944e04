"""ResourceSlices as objects: the envelope that drivers put around their devices, and what is remembered of one."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from berkelium_lab.hardware.devices import Slice


@dataclass(frozen=True)
class Pool:
    """All that one driver publishes for one node: a pool named after the node.

    `contents` are digests of its slices in order. The slices themselves, which are large, are made by `build` when
    they must be written.
    """

    driver: str
    node: str
    indexed_names: bool
    contents: tuple[str, ...]
    build: Callable[[], list[Slice]] = field(compare=False)

    @property
    def key(self) -> tuple[str, str]:
        """Driver and node."""
        return self.driver, self.node

    @property
    def wanted(self) -> list[tuple[str, str]]:
        """Name prefix and content of every slice, sorted."""
        return sorted((name_prefix(self, index), content) for index, content in enumerate(self.contents))


def pool(driver: str, node: str, indexed_names: bool, build: Callable[[], list[Slice]]) -> Pool:
    """The pool of the slices that `build` makes; it must make the same whenever it is called."""
    return Pool(driver, node, indexed_names, tuple(content(part) for part in build()), build)


@dataclass(frozen=True)
class PublishedSlice:
    """What matters of a ResourceSlice that the API server holds; `content` is a digest of its variable part."""

    name: str
    driver: str
    node: str
    generation: int
    count: int
    prefix: str
    content: str


def manifests(pool: Pool, node_uid: str, generation: int) -> list[dict[str, Any]]:
    """The ResourceSlices of the pool, in order."""
    return [_manifest(pool, index, part, node_uid, generation) for index, part in enumerate(pool.build())]


def _manifest(pool: Pool, index: int, part: Slice, node_uid: str, generation: int) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "generateName": name_prefix(pool, index),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": pool.node, "uid": node_uid, "controller": True}
            ],
        },
        "spec": {
            "driver": pool.driver,
            "nodeName": pool.node,
            "pool": {"name": pool.node, "generation": generation, "resourceSliceCount": len(pool.contents)},
            **part,
        },
    }


def name_prefix(pool: Pool, index: int) -> str:
    """`generateName`: from helper library 0.36 on it begins with the index of the slice in the pool, in hex."""
    if pool.indexed_names:
        return f"{index:05x}-{pool.driver}-{pool.node}-"
    return f"{pool.node}-{pool.driver}-"


def published(obj: dict[str, Any]) -> PublishedSlice:
    """Reads a ResourceSlice; `node` is empty for a slice that belongs to no single node."""
    spec = obj["spec"]
    return PublishedSlice(
        name=obj["metadata"]["name"],
        driver=spec["driver"],
        node=spec.get("nodeName", ""),
        generation=spec["pool"]["generation"],
        count=spec["pool"]["resourceSliceCount"],
        prefix=obj["metadata"].get("generateName", ""),
        content=content(spec),
    )


def content(part: Slice) -> str:
    """A digest of the devices and counters of a slice."""
    variable = {key: part[key] for key in ("devices", "sharedCounters") if part.get(key)}
    return sha256(json.dumps(variable, sort_keys=True).encode()).hexdigest()
