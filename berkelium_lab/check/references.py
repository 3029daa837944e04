"""Which objects name which others, and which objects therefore have to be tried together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from berkelium_lab.check.findings import Item, Object
from berkelium_lab.check.shapes import (
    IMPLICIT_PREFIX,
    claim_spec,
    dig,
    entries,
    extended_resources,
    joined,
    mapping,
    pod_template,
    requests,
)

CLAIM, TEMPLATE, CLASS = "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"

TOGETHER = ("ResourceQuota", "LimitRange")
"""Kinds that act on all objects of their namespace."""


@dataclass(frozen=True)
class Reference:
    """The field `path` names the object `name` of that kind; classes have no namespace."""

    kind: str
    name: str
    path: str


def of(item: Item) -> Iterator[Reference]:
    """What an object names that must exist for it to get devices."""
    template = pod_template(item.obj)
    if template:
        yield from _of_pod(*template)
    claim = claim_spec(item.obj)
    if claim:
        for request in requests(*claim):
            if request.device_class:
                yield Reference(CLASS, request.device_class, f"{request.path}.deviceClassName")


def _of_pod(pod: Object, path: str) -> Iterator[Reference]:
    for index, claim in entries(dig(pod, "spec.resourceClaims")):
        # The nesting of v1alpha2 is no longer valid, but what it means is clear.
        for holder, below in ((claim, ""), (mapping(claim.get("source")), ".source")):
            for key, kind in (("resourceClaimTemplateName", TEMPLATE), ("resourceClaimName", CLAIM)):
                if isinstance(holder.get(key), str):
                    yield Reference(kind, holder[key], joined(path, f"spec.resourceClaims[{index}]{below}.{key}"))
    for name in extended_resources(pod):
        if name.startswith(IMPLICIT_PREFIX):
            yield Reference(CLASS, name.removeprefix(IMPLICIT_PREFIX), joined(path, "spec.containers"))


class Index:
    """The objects of the input by what others call them."""

    def __init__(self, items: list[Item]) -> None:
        self._items: dict[tuple[str, str, str], list[Item]] = {}
        for item in items:
            if item.kind in (CLAIM, TEMPLATE, CLASS):
                self._items.setdefault(self._key(item.kind, item.namespace, item.name), []).append(item)

    def find(self, reference: Reference, by: Item) -> Item | None:
        """The object that `by` means: one of its own file if there is one, else the first."""
        found = self._items.get(self._key(reference.kind, by.namespace, reference.name), [])
        return next((item for item in found if item.file == by.file), found[0] if found else None)

    def same_name_elsewhere(self, reference: Reference) -> Item | None:
        """An object of that kind and name in any namespace."""
        for (kind, _, name), items in self._items.items():
            if kind == reference.kind and name == reference.name:
                return items[0]
        return None

    def names(self, kind: str, namespace: str) -> list[str]:
        """The names of the objects of a kind in a namespace."""
        return [name for (k, where, name) in self._items if k == kind and where == ("" if kind == CLASS else namespace)]

    @staticmethod
    def _key(kind: str, namespace: str, name: str) -> tuple[str, str, str]:
        return kind, "" if kind == CLASS else namespace, name


def groups(items: list[Item], index: Index) -> list[list[Item]]:
    """The items in groups that are connected by references.

    A quota or limit range joins the objects of its namespace: all of them, or only those of its own file when the
    input has several objects of one name there and so cannot be meant to be applied as a whole.
    """
    parent = {id(item): item for item in items}

    def root(item: Item) -> Item:
        while parent[id(item)] is not item:
            parent[id(item)] = parent[id(parent[id(item)])]
            item = parent[id(item)]
        return item

    def join(one: Item, other: Item) -> None:
        parent[id(root(one))] = root(other)

    known = {id(item) for item in items}
    for item in items:
        for reference in of(item):
            target = index.find(reference, item)
            if target is not None and id(target) in known:
                join(item, target)
    for ruler in items:
        if ruler.kind in TOGETHER:
            around = [item for item in items if item.namespace == ruler.namespace and item.kind != CLASS]
            whole = len({(item.kind, item.name) for item in around}) == len(around)
            for item in around:
                if whole or item.file == ruler.file:
                    join(item, ruler)
    found: dict[int, list[Item]] = {}
    for item in items:
        found.setdefault(id(root(item)), []).append(item)
    return list(found.values())


def nearest(name: str, known: Any) -> list[str]:
    """The known names that look most like `name`, best first."""
    import difflib

    def ending(text: str) -> str:
        return text.rpartition("/")[2].rpartition("-")[2]

    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    ends = [other for other in known if ending(other) == ending(name) and other not in close]
    return [*close, *ends][:3]
