"""Two snapshots: which objects were added, removed or changed, and in what."""

from berkelium_lab.api import Object
from berkelium_lab.review.differences import differences
from berkelium_lab.review.model import Change, ObjectChange
from berkelium_lab.review.snapshot import Key, Snapshot, release_of


def changes(before: Snapshot, after: Snapshot) -> list[ObjectChange]:
    """The objects that differ, in the order of kind, namespace and name."""
    keys = sorted({*before.objects, *after.objects}, key=lambda key: (key.kind, key.namespace, key.name, key.group))
    compared = (_object(key, before.objects.get(key), after.objects.get(key)) for key in keys)
    return [change for change in compared if change]


def _object(key: Key, old: Object | None, new: Object | None) -> ObjectChange | None:
    if old == new:
        return None
    obj = new or old
    assert obj is not None
    change: Change = "changed" if old and new else ("added" if new else "removed")
    return ObjectChange(
        change=change,
        api_version=obj["apiVersion"],
        kind=key.kind,
        namespace=key.namespace or None,
        name=key.name,
        release=release_of(obj),
        differences=differences(old, new) if change == "changed" else [],
        manifest=None if change == "changed" else obj,
    )
