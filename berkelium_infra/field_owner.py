"""Whose the fields of a new object are: right after its creation they pass to the manager that changes them later.

Since 4.29 Pulumi's provider creates an object as the field manager `pulumi-kubernetes`, and changes it by server-side
apply as a manager of its own. It hands the fields over at the first change, but not in the preview of that change
(provider 4.32, `fixCSAFieldManagers`): there a set is the union of old and new. A binding whose `validationActions` go
from Warn to Deny could then not be previewed, since the API server refuses both at once.
"""

from collections.abc import Mapping
from typing import Any

import pulumi

from berkelium_infra.live import Live, Refused, Unreachable

_CREATOR = ("pulumi-kubernetes", "Update")
_MANAGER = "__fieldManager"
"""Output in which the provider keeps the name of the manager that it changes the object as."""


def hand_over(live: Live | None, collection: str) -> pulumi.ResourceHookBinding:
    """The hook for objects of that collection, a path of the API such as `/apis/<group>/<version>/<plural>`."""

    def after_create(args: pulumi.ResourceHookArgs) -> None:
        manager = (args.new_outputs or {}).get(_MANAGER)
        if live is None or not manager:
            return
        path = f"{collection}/{args.id}"
        try:
            obj = live.get(path)
            if obj and (patch := handed_over(obj["metadata"], str(manager))):
                live.patch(path, patch)
        except (Refused, Unreachable) as error:
            # All it costs is the preview of the next change.
            pulumi.log.warn(f"{args.name}: the fields stay those of the provider's first manager: {error}")

    hook = pulumi.ResourceHook(f"hand-over-{collection.rpartition('/')[2]}", after_create)
    return pulumi.ResourceHookBinding(after_create=[hook])


def handed_over(metadata: Mapping[str, Any], manager: str) -> list[dict[str, Any]] | None:
    """The JSON patch that makes `manager` the owner of what the creator owns; None when there is nothing to do."""
    entries = metadata.get("managedFields") or []
    if not any(_created(entry) for entry in entries) or any(entry["manager"] == manager for entry in entries):
        return None
    passed = [{**entry, "manager": manager, "operation": "Apply"} if _created(entry) else entry for entry in entries]
    return [
        # Whoever changed the object meanwhile has changed the list as well.
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        {"op": "replace", "path": "/metadata/managedFields", "value": passed},
    ]


def _created(entry: Mapping[str, Any]) -> bool:
    return (entry["manager"], entry["operation"]) == _CREATOR and not entry.get("subresource")
