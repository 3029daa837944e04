"""What inside a Helm release is no longer as Helm left it: Pulumi and Helm look at their own records only.

The API server is asked, by dry run, what an object would be if its manifest were applied now; the answer has the
server's own defaults and spelling of quantities, so that it can be compared with the live object.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import yaml

from berkelium_infra.live import Live, Refused

WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")
"""Kinds that are compared in both directions: a node selector that was added by hand can stop every pod."""

_VOLATILE = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink")
_RESTARTED = "kubectl.kubernetes.io/restartedAt"
_PROBE = "drift-probe"
_APPLY = {"fieldManager": "berkelium-drift", "force": "true"}
_ABSENT = None


Pointer = tuple[str | int, ...]
"""Where a field is in the live object: keys, and positions in lists."""


@dataclass(frozen=True)
class Change:
    """A field that differs: its dotted path, what the release says and what is there, None for nothing."""

    path: str
    declared: Any
    found: Any
    pointer: Pointer = field(default=(), compare=False)

    @property
    def added(self) -> bool:
        """Whether the field was added; Helm leaves what its manifest does not name."""
        return self.declared is _ABSENT


@dataclass(frozen=True)
class Drifted:
    """An object of a release that differs from its manifest; without `changes` it is gone."""

    kind: str
    namespace: str
    name: str
    changes: tuple[Change, ...]
    version: str = ""
    """Resource version of the live object, so that the same edit made twice is told apart."""

    @property
    def gone(self) -> bool:
        """Whether the object was deleted."""
        return not self.changes

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def of_release(live: Live, namespace: str, name: str) -> list[Drifted] | None:
    """The objects of the deployed release that have drifted; None when there is no such release.

    Raises `Refused` when Helm's record may not be read, `Unreachable` when the cluster does not answer.
    """
    record = live.helm_release(namespace, name)
    return None if record is None else of_record(live, record)


def of_record(live: Live, record: Mapping[str, Any]) -> list[Drifted]:
    """The objects that differ from the manifests in Helm's record of a release.

    An object that the API server does not let itself be asked about is passed over.
    """
    manifests = [each for each in _documents(record["manifest"]) if each.get("kind")]
    return of_objects(live, manifests, record["namespace"], WORKLOADS)


def of_objects(
    live: Live, manifests: Sequence[dict[str, Any]], namespace: str = "", both_ways: Collection[str] | None = None
) -> list[Drifted]:
    """The objects that differ from their manifests; those without a namespace are in `namespace`.

    Kinds in `both_ways`, by default all, are compared for what was added too.
    """
    paths = _Paths(live, namespace)
    for manifest in manifests:
        paths.learn(manifest)

    def compare(manifest: dict[str, Any]) -> Drifted | None:
        return _compare(live, paths, manifest, both_ways is None or manifest["kind"] in both_ways)

    with ThreadPoolExecutor(8) as pool:
        return [found for found in pool.map(compare, manifests) if found]


def digest(drifted: list[Drifted], revision: int) -> str:
    """A short name for this drift of this revision; another edit, or the same made again later, has another."""
    content = json.dumps([revision, *((str(each), each.version) for each in drifted)])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def changes(declared: Any, found: Any, path: str = "", pointer: Pointer = ()) -> Iterator[Change]:
    """The fields in which two values differ; lists of named entries are compared by name."""
    if isinstance(declared, Mapping) and isinstance(found, Mapping):
        for key in sorted({*declared, *found}):
            below = f"{path}.{key}" if path else str(key)
            yield from changes(declared.get(key), found.get(key), below, (*pointer, key))
    elif _named(declared) and _named(found):
        left, right = ({entry["name"]: entry for entry in each} for each in (declared, found))
        places = {name: place for place, name in enumerate(right)}
        for name in [*left, *(name for name in right if name not in left)]:
            below = (*pointer, places.get(name, len(places)))
            yield from changes(left.get(name), right.get(name), f"{path}[{name}]", below)
    elif declared != found:
        yield Change(path, declared, found, pointer)


def _named(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) and "name" in each for each in value)
    )


def _documents(manifest: str) -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(manifest, Loader=loader) if isinstance(each, dict)]


class _Paths:
    """Where the API serves the objects of a release; discovery is asked once per API version."""

    def __init__(self, live: Live, namespace: str) -> None:
        self._live = live
        self._namespace = namespace
        self._served: dict[str, dict[str, tuple[str, bool]]] = {}

    def learn(self, manifest: Mapping[str, Any]) -> None:
        version = manifest["apiVersion"]
        if version not in self._served:
            found = self._live.get(_prefix(version)) or {"resources": []}
            self._served[version] = {
                each["kind"]: (each["name"], each["namespaced"])
                for each in found["resources"]
                if "/" not in each["name"]
            }

    def namespace(self, manifest: Mapping[str, Any]) -> str:
        _, namespaced = self._served[manifest["apiVersion"]].get(manifest["kind"], ("", False))
        return (manifest["metadata"].get("namespace") or self._namespace) if namespaced else ""

    def collection(self, manifest: Mapping[str, Any]) -> str | None:
        """The path of the objects of the manifest's kind; None when the kind is not served."""
        plural, _ = self._served[manifest["apiVersion"]].get(manifest["kind"], ("", False))
        inside = f"/namespaces/{where}" if (where := self.namespace(manifest)) else ""
        return f"{_prefix(manifest['apiVersion'])}{inside}/{plural}" if plural else None


def _prefix(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _compare(live: Live, paths: _Paths, manifest: dict[str, Any], both_ways: bool) -> Drifted | None:
    collection, name = paths.collection(manifest), manifest["metadata"]["name"]
    if collection is None:
        return None
    kind, namespace = manifest["kind"], paths.namespace(manifest)
    try:
        found = live.get(f"{collection}/{name}")
        if found is None:
            return Drifted(kind, namespace, name, ())
        declared = _declared(live, collection, manifest, namespace, found, both_ways)
    except Refused:
        return None
    seen = tuple(changes(_comparable(declared or found, manifest), _comparable(found, manifest)))
    return Drifted(kind, namespace, name, seen, found["metadata"]["resourceVersion"]) if seen else None


def _declared(
    live: Live,
    collection: str,
    manifest: dict[str, Any],
    namespace: str,
    found: Mapping[str, Any],
    both_ways: bool,
) -> dict[str, Any] | None:
    """What the object would be as its manifest says."""
    metadata = {**manifest["metadata"], **({"namespace": namespace} if namespace else {})}
    if not both_ways:
        path = f"{collection}/{metadata['name']}"
        return live.dry_run("PATCH", path, {**manifest, "metadata": metadata}, _APPLY, "application/apply-patch+yaml")
    # Under another name, as if it were new: an application to the live object would keep what was added to it.
    probe = {**manifest, "metadata": {**metadata, "name": f"{metadata['name'][:40]}-{_PROBE}"}}
    fresh = live.dry_run("POST", collection, probe, {}, "application/json")
    if fresh is None:
        return None
    content = {key: value for key, value in fresh.items() if key not in ("metadata", "status")}
    return {**content, "metadata": _with_declared(found["metadata"], metadata)}


def _with_declared(found: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """The live object's metadata with the manifest's labels and annotations; others write theirs beside them."""
    merged = dict(found)
    for part in ("labels", "annotations"):
        if declared.get(part):
            merged[part] = {**(found.get(part) or {}), **declared[part]}
    return merged


def _comparable(obj: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in obj.items() if key not in ("status", "apiVersion", "kind")}
    kept["metadata"] = {key: value for key, value in obj["metadata"].items() if key not in _VOLATILE}
    if manifest["kind"] in WORKLOADS:
        kept["spec"] = _without_restart(obj["spec"])
        if "replicas" not in (manifest.get("spec") or {}):
            kept["spec"].pop("replicas", None)
    return kept


def _without_restart(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A rolling restart is no drift: undoing it would only restart everything again."""
    template = spec["template"]
    metadata = template.get("metadata") or {}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _RESTARTED}
    plain = {key: value for key, value in metadata.items() if key not in ("annotations", "creationTimestamp")}
    return {
        **spec,
        "template": {**template, "metadata": {**plain, **({"annotations": annotations} if annotations else {})}},
    }
