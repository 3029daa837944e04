"""Who owns the fields of an object that the provider has just created."""

from typing import Any

from berkelium_infra.field_owner import handed_over

MANAGER = "pulumi-kubernetes-1a2b3c4d"
FIELDS = {"f:spec": {"f:validationActions": {'v:"Warn"': {}}}}
CREATED = {"manager": "pulumi-kubernetes", "operation": "Update", "fieldsV1": FIELDS}
STATUS = {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"}


def metadata(*entries: dict[str, Any]) -> dict[str, Any]:
    """An object's metadata with those entries."""
    return {"resourceVersion": "7", "managedFields": list(entries)}


def test_what_the_creator_owns_becomes_the_later_managers_and_nothing_else_changes() -> None:
    assert handed_over(metadata(STATUS, CREATED), MANAGER) == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {
            "op": "replace",
            "path": "/metadata/managedFields",
            "value": [STATUS, {"manager": MANAGER, "operation": "Apply", "fieldsV1": FIELDS}],
        },
    ]


def test_an_object_that_was_made_by_server_side_apply_is_left_alone() -> None:
    assert handed_over(metadata({**CREATED, "manager": MANAGER, "operation": "Apply"}), MANAGER) is None
    assert handed_over({"resourceVersion": "7"}, MANAGER) is None


def test_an_object_that_others_made_is_left_alone() -> None:
    assert handed_over(metadata({**CREATED, "manager": "kubectl-create"}), MANAGER) is None
    assert handed_over(metadata({**CREATED, "subresource": "status"}), MANAGER) is None
