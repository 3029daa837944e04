"""`berkelium policies` as its users type it."""

import json

import pytest
import yaml
from click.testing import CliRunner

from berkelium_cli.policies import policies
from berkelium_infra.errors import UserError
from berkelium_infra.policy_source import compose


def run(*arguments: str) -> str:
    result = CliRunner().invoke(policies, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_yaml_is_the_stored_policies() -> None:
    stored = [document for name in compose.names() for document in compose.manifests(name)]
    assert list(yaml.safe_load_all(run("yaml"))) == stored


def test_the_option_yaml_prints_the_same() -> None:
    assert run("--yaml") == run("yaml")


@pytest.mark.parametrize(("mode", "actions"), [("warn", ["Warn", "Audit"]), ("audit", ["Audit"])])
def test_a_mode_is_put_into_the_binding(mode: str, actions: list[str]) -> None:
    _, binding = yaml.safe_load_all(run("yaml", "no-idle-gpu", "--mode", mode))
    assert binding["spec"]["validationActions"] == actions


def test_a_policy_that_is_off_has_no_binding() -> None:
    assert [each["kind"] for each in yaml.safe_load_all(run("yaml", "--mode", "off"))] == [
        "ValidatingAdmissionPolicy"
    ] * 2


def test_an_exempt_namespace_stands_beside_those_of_the_system() -> None:
    for document in yaml.safe_load_all(run("yaml", "--exempt", "gpu-operator")):
        if document["kind"] == "ValidatingAdmissionPolicyBinding":
            (term,) = document["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
            assert sorted(term["values"]) == ["gpu-operator", "kube-node-lease", "kube-public", "kube-system"]


def test_bare_pods_can_be_refused_too() -> None:
    names = [each["metadata"]["name"] for each in yaml.safe_load_all(run("yaml", "no-idle-gpu", "--bare-pods", "deny"))]
    assert names == ["no-idle-gpu", "no-idle-gpu", "no-idle-gpu-bare-pods", "no-idle-gpu-bare-pods"]


def test_list_gives_each_policy_with_its_rule() -> None:
    listed = {each["name"]: each["rule"] for each in json.loads(run("list", "--json"))}
    assert sorted(listed) == compose.names()
    assert "only waits" in listed["no-idle-gpu"]


@pytest.mark.parametrize("word", ["show", "explain"])
def test_show_and_explain_print_the_readme(word: str) -> None:
    readme = (compose.POLICIES / "require-resources" / "README.md").read_text()
    assert run(word, "require-resources") == readme


def test_an_unknown_policy_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="no-idle-gpu, require-resources"):
        run("yaml", "no-such-policy")


def test_compose_finds_the_policies_in_step() -> None:
    assert run("compose") == ""
