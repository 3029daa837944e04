"""`policy.yaml` is what the parts compose to, and everything in a policy's folder is in step."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from berkelium_infra import catalog
from berkelium_infra.errors import UserError
from berkelium_infra.policy_source import bare_pods, compose

NAMES = [path.name for path in sorted(compose.POLICIES.iterdir()) if path.is_dir()]


def slug(sentence: str) -> str:
    """A sentence as the name of its sample."""
    return re.sub(r"[^a-z0-9]+", "-", sentence.lower().replace("'", "")).strip("-")


def sentences(policy: str) -> list[str]:
    """The sentences of a README that have samples."""
    text = (compose.POLICIES / policy / "README.md").read_text()
    listed = text.split("Every sentence below is a manifest in `samples/`.")[1]
    if policy == "require-resources":
        listed = listed.split("## What is not covered")[0]
    return re.findall(r"^- (.+?)\.(?: |$)", listed, re.MULTILINE)


def samples(policy: str) -> list[Path]:
    return sorted((compose.POLICIES / policy / "samples").glob("*/*.yaml"))


@pytest.mark.parametrize("policy", NAMES)
def test_the_policy_is_exactly_what_its_parts_compose_to(policy: str) -> None:
    stored = (compose.POLICIES / policy / "policy.yaml").read_text()
    assert stored == compose.text(policy), "run `berkelium policies compose --write`"


@pytest.mark.parametrize("policy", NAMES)
def test_the_policy_is_two_documents_that_survive_a_round_trip(policy: str) -> None:
    documents = list(yaml.safe_load_all(compose.text(policy)))
    assert documents == compose.manifests(policy)
    assert [document["kind"] for document in documents] == [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]


@pytest.mark.parametrize("policy", NAMES)
def test_a_policy_has_a_readme_and_samples_of_both_verdicts(policy: str) -> None:
    folder = compose.POLICIES / policy
    assert (folder / "README.md").is_file()
    assert {path.parent.name for path in samples(policy)} == {"allowed", "denied"}


@pytest.mark.parametrize("policy", NAMES)
def test_every_sentence_has_its_sample_and_every_sample_its_sentence(policy: str) -> None:
    assert sorted(slug(sentence) for sentence in sentences(policy)) == sorted(path.stem for path in samples(policy))


@pytest.mark.parametrize("policy", NAMES)
def test_a_policy_asks_failing_closed_and_exempts_the_system_by_name(policy: str) -> None:
    rule, binding = compose.manifests(policy)
    assert rule["spec"]["failurePolicy"] == "Fail"
    (term,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert term["key"] == "kubernetes.io/metadata.name"
    assert {"kube-system", "kube-public", "kube-node-lease"} <= set(term["values"])
    assert binding["spec"]["validationActions"] == ["Deny", "Audit"]


@pytest.mark.parametrize("policy", NAMES)
def test_the_messages_lead_to_the_readme(policy: str) -> None:
    (validation,) = compose.manifests(policy)[0]["spec"]["validations"]
    for text in (validation["message"], validation["messageExpression"]):
        assert f"policies/{policy}/README.md" in text


@pytest.mark.parametrize("policy", NAMES)
def test_no_expression_is_longer_than_the_server_takes(policy: str) -> None:
    # The API server has no limit on one expression but on the object: 1.5 MiB in etcd, 256 KiB by client-side apply.
    assert len(compose.text(policy)) < 200_000


def test_every_extended_resource_of_the_catalog_holds_a_gpu() -> None:
    expression = re.compile(compose.gpu_resources())
    names = [c.extended_resource for c in catalog.DEVICE_CLASSES if c.extended_resource]
    assert names
    assert [name for name in names if not expression.search(name)] == []
    assert not expression.search("cpu")
    assert not expression.search("example.com/nvidia.com")


def test_a_new_vendor_in_the_catalog_is_covered_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    further = replace(catalog.DEVICE_CLASSES[0], extended_resource="example.com/npu")
    monkeypatch.setattr(catalog, "DEVICE_CLASSES", (*catalog.DEVICE_CLASSES, further))
    expression = re.compile(compose.gpu_resources())
    assert expression.search("example.com/npu")
    assert not expression.search("example.com/npu-memory")


def test_an_unknown_policy_is_an_error_that_names_the_known() -> None:
    with pytest.raises(UserError, match="require-resources"):
        compose.manifests("no-such-policy")


def test_bare_pods_are_left_alone_unless_a_stack_says_otherwise() -> None:
    policy, binding = compose.manifests("no-idle-gpu")
    assert bare_pods.variant(policy, binding, "allow") == []
    with pytest.raises(ValueError, match="allow, warn, deny"):
        bare_pods.variant(policy, binding, "audit")


@pytest.mark.parametrize(("mode", "actions"), [("warn", ["Warn", "Audit"]), ("deny", ["Deny", "Audit"])])
def test_the_variant_for_bare_pods_asks_only_pods_without_a_controller(mode: str, actions: list[str]) -> None:
    policy, binding = compose.manifests("no-idle-gpu")
    variant, its_binding = bare_pods.variant(policy, binding, mode)
    assert variant["metadata"]["name"] == its_binding["spec"]["policyName"] == "no-idle-gpu-bare-pods"
    assert [rule["resources"] for rule in variant["spec"]["matchConstraints"]["resourceRules"]] == [["pods"]]
    assert [condition["name"] for condition in variant["spec"]["matchConditions"]] == ["not-mirror", "bare"]
    assert its_binding["spec"]["validationActions"] == actions
    assert its_binding["spec"]["matchResources"] == binding["spec"]["matchResources"]
    assert policy["metadata"]["name"] == "no-idle-gpu", "the policy that was given is left as it was"
