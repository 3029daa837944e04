"""The admission policies of the program under mocks: declared as their files say, in the mode of the settings."""

import pytest
import yaml

from berkelium_infra.policies import policy_names
from tests.unit import program
from tests.unit.program import BINDING, POLICY, ROOT, STACK_NAMESPACES, Registered


@pytest.mark.parametrize(("mode", "actions"), [("warn", ["Warn", "Audit"]), ("deny", ["Deny", "Audit"])])
def test_bare_pods_with_an_idle_gpu_are_refused_or_warned_of_where_the_stack_says_so(
    mode: str, actions: list[str]
) -> None:
    registered = program.run("prod", {"bareGpuPods": mode})
    binding = registered[BINDING, "no-idle-gpu-bare-pods"]
    assert binding.inputs["spec"]["validationActions"] == actions
    assert registered.outputs["policies"]["no-idle-gpu-bare-pods"] == mode


def test_both_policies_of_the_documentation_are_declared_and_bound(stack: Registered) -> None:
    assert set(stack.of(POLICY)) == set(stack.of(BINDING)) == {"no-idle-gpu", "require-resources"}


@pytest.mark.parametrize("name", policy_names())
@pytest.mark.parametrize(
    ("mode", "actions"), [("deny", ["Deny", "Audit"]), ("warn", ["Warn", "Audit"]), ("audit", ["Audit"])]
)
def test_a_mode_becomes_the_actions_of_the_binding(name: str, mode: str, actions: list[str]) -> None:
    registered = program.run("prod", {"policies": {name: mode}})
    spec = registered[BINDING, name].inputs["spec"]
    assert spec["validationActions"] == actions
    assert spec["policyName"] == name


@pytest.mark.parametrize("name", policy_names())
def test_a_policy_that_is_off_has_no_binding(name: str) -> None:
    registered = program.run("prod", {"policies": {name: "off"}})
    assert (POLICY, name) in registered.resources
    assert (BINDING, name) not in registered.resources


@pytest.mark.parametrize("name", policy_names())
def test_system_stack_and_named_namespaces_are_exempt_by_name(name: str) -> None:
    registered = program.run("prod", {"exemptNamespaces": ["monitoring"]})
    selector = registered[BINDING, name].inputs["spec"]["matchResources"]["namespaceSelector"]
    (expression,) = [e for e in selector["matchExpressions"] if e["key"] == "kubernetes.io/metadata.name"]
    assert expression["operator"] == "NotIn"
    assert expression["values"] == sorted(
        ["kube-system", "kube-public", "kube-node-lease", "monitoring", *STACK_NAMESPACES]
    )


@pytest.mark.parametrize("name", policy_names())
def test_a_policy_is_declared_exactly_as_its_file_says(prod: Registered, name: str) -> None:
    policy, _ = yaml.safe_load_all((ROOT / f"policies/{name}/policy.yaml").read_text())
    assert prod[POLICY, name].inputs == policy
