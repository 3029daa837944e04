"""Objects that others name and that nobody has."""

from collections.abc import Callable, Sequence

from berkelium_lab.check.findings import Item, error
from berkelium_lab.check.references import CLASS, Index, Reference, nearest
from berkelium_lab.check.references import of as references_of


def missing(item: Item, index: Index, classes: Sequence[str], exists: Callable[[str, str], bool]) -> None:
    """Add an error for every object that the item names and that is neither in the input nor in the cluster."""
    for reference in references_of(item):
        if index.find(reference, item) is not None:
            continue
        if reference.kind == CLASS:
            if reference.name not in classes:
                close = nearest(reference.name, classes)
                hint = f"did you mean {', or '.join(close)}?" if close else f"there are {', '.join(classes)}"
                message = f"there is no DeviceClass {reference.name}"
                item.add(error("missing-reference", message, hint, reference.path))
        elif not exists(reference.kind, reference.name):
            message = f"there is no {reference.kind} {reference.name} in namespace {item.namespace}"
            item.add(error("missing-reference", message, _where_instead(index, reference, item), reference.path))


def _where_instead(index: Index, reference: Reference, item: Item) -> str:
    other = index.same_name_elsewhere(reference)
    if other is not None:
        return (
            f"{other.file}:{other.line} has one in namespace {other.namespace}; a pod uses those of its own namespace"
        )
    close = nearest(reference.name, index.names(reference.kind, item.namespace))
    return f"did you mean {', or '.join(close)}?" if close else "give its file to the check as well"
