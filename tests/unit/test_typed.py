"""Manifests as input classes: nothing is lost, and nothing unknown gets through."""

from typing import Any

import pytest
from pulumi import _types as types
from pulumi_kubernetes.admissionregistration.v1 import ValidatingAdmissionPolicyInitArgs

from berkelium_infra.typed import UnknownKey, arguments


def policy(**spec: Any) -> dict[str, Any]:
    """A small policy manifest."""
    return {"metadata": {"name": "p", "labels": {"any.key/at-all": "x"}}, "spec": {"failurePolicy": "Fail", **spec}}


def test_nested_lists_and_maps_become_input_classes() -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    manifest = policy(matchConstraints={"resourceRules": rules}, variables=[{"name": "a", "expression": "1"}])
    built: Any = arguments(ValidatingAdmissionPolicyInitArgs, manifest, "policy.yaml")
    assert types.is_input_type(type(built.spec.match_constraints.resource_rules[0]))
    assert built.spec.match_constraints.resource_rules[0].api_groups == [""]
    assert built.spec.variables[0].expression == "1"
    assert built.metadata.labels == {"any.key/at-all": "x"}


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (policy() | {"sepc": {}}, "policy.yaml.sepc"),
        (policy(failurepolicy="Fail"), "policy.yaml.spec.failurepolicy"),
        (policy(variables=[{"name": "a", "expresion": "1"}]), r"policy.yaml.spec.variables\[0\].expresion"),
        (policy(matchConstraints={"rules": []}), "policy.yaml.spec.matchConstraints.rules"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_its_path(manifest: dict[str, Any], path: str) -> None:
    with pytest.raises(UnknownKey, match=f"{path}: there is no such field"):
        arguments(ValidatingAdmissionPolicyInitArgs, manifest, "policy.yaml")
