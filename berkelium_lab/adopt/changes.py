"""What an import followed by an update does to an object that exists.

The provider moves the fields that kubectl or an earlier Pulumi wrote to its own field manager and then applies the
declaration by server-side apply, with force (`fixCSAFieldManagers` in its pkg/await/await.go). So what is declared
becomes as declared, what kubectl wrote and nobody declares goes, and what others wrote (Helm, a controller) stays.
"""

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from berkelium_lab.api import Api, ApiError, Object
from berkelium_lab.review.differences import differences

_MOVED = ("kubectl", "before-first-apply", "pulumi-kubernetes", "pulumi-resource-kubernetes")
"""Prefixes of the managers whose fields the provider moves to itself."""

_UNDECLARED = ("kubectl.kubernetes.io/last-applied-configuration", "kubernetes.io/metadata.name")
"""Annotations and labels that come and go by themselves."""

Path = tuple[str, ...]


class Change(BaseModel):
    """One field that changes from `old` to `new` (None is absent), or stays because of `kept_by`."""

    path: str
    old: Any = None
    new: Any = None
    kept_by: str | None = None

    def __str__(self) -> str:
        if self.kept_by:
            return f"{self.path} stays {_short(self.old)}, though nobody declares it: {self.kept_by} wrote it"
        return f"{self.path}: {_short(self.old)} -> {_short(self.new)}"


def of_object(api: Api, declared: Object, live: Object) -> list[Change]:
    """The changes to a live object that makes it what is declared."""
    normal = _as_the_server_writes_it(api, declared)
    found = [*_metadata(declared, live), *_walk(live.get("spec") or {}, normal.get("spec") or {}, ("spec",), live)]
    return sorted(found, key=lambda change: change.path)


def of_values(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """The changes of a release's values."""
    return [Change(path=each.path, old=each.old, new=each.new) for each in differences(dict(old), dict(new), "values")]


def _as_the_server_writes_it(api: Api, declared: Object) -> Object:
    """The declared object with the API server's defaults, by a dry run of its creation under another name."""
    metadata = declared["metadata"]
    named = {"name": f"adopt-{secrets.token_hex(4)}", "namespace": metadata.get("namespace")}
    trial = {**declared, "metadata": {key: value for key, value in named.items() if value}}
    try:
        return api.create(trial, dry_run=True)
    except ApiError:
        # Without the right to try, or the namespace to try it in, a default may show as a change.
        return declared


def _metadata(declared: Object, live: Object) -> Iterator[Change]:
    for part in ("labels", "annotations"):
        wanted = declared["metadata"].get(part) or {}
        there = {k: v for k, v in (live["metadata"].get(part) or {}).items() if k not in _UNDECLARED}
        for change in _walk(there, wanted, ("metadata", part), live):
            # A label or annotation of somebody else is nobody's mistake.
            if change.kept_by is None:
                yield change


def _walk(old: Mapping[str, Any], new: Mapping[str, Any], path: Path, live: Object) -> Iterator[Change]:
    for key in dict.fromkeys((*old, *new)):
        at = (*path, key)
        here, there = old.get(key), new.get(key)
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            yield from _walk(here, there, at, live)
        elif here == there:
            continue
        elif key in old and key not in new:
            keepers = _other_managers(live, at)
            yield Change(path=_text(at), old=here, kept_by=", ".join(keepers) or None)
        elif isinstance(here, list) and isinstance(there, list):
            for each in differences(here, there, _text(at)):
                yield Change(path=each.path, old=each.old, new=each.new)
        else:
            yield Change(path=_text(at), old=here, new=there)


def _other_managers(live: Object, path: Path) -> list[str]:
    """The field managers that go on owning a field after the provider has moved what it moves."""
    owners = []
    for entry in live["metadata"].get("managedFields") or []:
        fields: Any = entry.get("fieldsV1") or {}
        for part in path:
            fields = fields.get(f"f:{part}") if isinstance(fields, Mapping) else None
        if fields is not None and not entry.get("manager", "").startswith(_MOVED):
            owners.append(entry["manager"])
    return sorted(set(owners))


def _text(path: Path) -> str:
    text = ""
    for part in path:
        text += f'["{part}"]' if any(sign in part for sign in "./ ") else f".{part}" if text else part
    return text


def _short(value: object) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:200]} …"
