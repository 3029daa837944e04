"""A set is the union of old and new as long as its creator owns it, and just the new once it is handed over."""

import secrets
from collections.abc import Iterator

import pytest

from berkelium_infra.components.admission_policies import BINDINGS
from berkelium_infra.field_owner import handed_over
from berkelium_infra.live import open_kubeconfig
from berkelium_lab.api import Api, ApiError, Object
from berkelium_lab.lab import Lab

CREATOR, MANAGER = "pulumi-kubernetes", "pulumi-kubernetes-1a2b3c4d"
VERSION, KIND = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"


def binding(name: str, *actions: str) -> Object:
    """A binding to a policy that does not exist, which so does nothing."""
    return {
        "apiVersion": VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"policyName": "none", "validationActions": list(actions)},
    }


@pytest.fixture
def created(api: Api) -> Iterator[str]:
    """The name of a binding in mode Warn that was created as the provider does it from 4.29 on."""
    name = f"test-{secrets.token_hex(4)}"
    api.raw("POST", BINDINGS, {"fieldManager": CREATOR}, binding(name, "Warn", "Audit"))
    yield name
    api.delete(VERSION, KIND, name)


def test_a_change_from_warn_to_deny_can_be_previewed_once_the_fields_are_handed_over(
    api: Api, lab: Lab, created: str
) -> None:
    wanted = binding(created, "Deny", "Audit")
    with pytest.raises(ApiError, match="must not contain both Deny and Warn"):
        api.apply(wanted, manager=MANAGER, dry_run=True)

    live = open_kubeconfig(str(lab.kubeconfig))
    path = f"{BINDINGS}/{created}"
    found = live.get(path)
    assert found
    patch = handed_over(found["metadata"], MANAGER)
    assert patch
    live.patch(path, patch)

    assert set(api.apply(wanted, manager=MANAGER, dry_run=True)["spec"]["validationActions"]) == {"Deny", "Audit"}
    after = live.get(path)
    assert after
    assert handed_over(after["metadata"], MANAGER) is None
