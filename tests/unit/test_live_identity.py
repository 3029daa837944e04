"""The program and the cluster's identity: remembered, compared before anything else, renewed only when told to."""

from typing import Any

import pulumi
import pytest

from berkelium_infra import live
from berkelium_infra.components import cluster_identity
from berkelium_infra.components.cluster_identity import ACCEPT
from berkelium_infra.live import Live
from tests.unit import program

STASH = "pulumi:index:Stash"
OURS, OTHER = "uid-ours", "uid-other"


class Cluster(Live):
    """A live cluster with an identity and nothing in it."""

    def __init__(self, uid: str) -> None:
        self._uid = uid

    def namespace_uid(self, name: str) -> str | None:
        assert name == "kube-system"
        return self._uid

    def get(self, path: str, query: object = None) -> dict[str, Any] | None:  # noqa: ARG002
        return None


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the stack's state has remembered: `output` of the stash."""
    remembered: dict[str, str] = {}
    original = program._Mocks.new_resource

    def new_resource(self: Any, args: Any) -> Any:
        identifier, outputs = original(self, args)
        if (args.typ, args.name) == (STASH, "cluster-identity"):
            outputs["output"] = remembered.get("output", args.inputs["input"])
        return identifier, outputs

    monkeypatch.setattr(program._Mocks, "new_resource", new_resource)
    monkeypatch.delenv(ACCEPT, raising=False)
    return remembered


def in_cluster(monkeypatch: pytest.MonkeyPatch, uid: str | None) -> None:
    monkeypatch.setattr(live, "find", lambda _: Cluster(uid) if uid else None)


def test_the_first_run_remembers_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    in_cluster(monkeypatch, OURS)
    stash = program.run("prod")[(STASH, "cluster-identity")]
    assert stash.inputs["input"] == OURS
    assert list(stash.request.ignoreChanges) == ["input"]
    assert not stash.request.replaceOnChanges


def test_another_cluster_stops_the_program_before_anything_in_a_cluster_is_declared(
    monkeypatch: pytest.MonkeyPatch, state: dict[str, str]
) -> None:
    state["output"] = OURS
    in_cluster(monkeypatch, OTHER)
    registered: list[tuple[str, str]] = []
    with pytest.raises(pulumi.RunError, match="leads to another cluster") as caught:
        program.run("prod", on_register=registered)
    assert OTHER in str(caught.value)
    assert OURS in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [kind for kind, _ in registered if kind.startswith(("kubernetes:", "pulumi:providers"))] == []


def test_a_rebuilt_cluster_is_accepted_by_its_own_identity_only(
    monkeypatch: pytest.MonkeyPatch, state: dict[str, str]
) -> None:
    in_cluster(monkeypatch, OTHER)
    monkeypatch.setenv(ACCEPT, OURS)
    with pytest.raises(pulumi.RunError, match=f"{ACCEPT} names the cluster {OURS}"):
        program.run("prod")
    monkeypatch.setenv(ACCEPT, OTHER)
    state["output"] = OTHER
    stash = program.run("prod")[(STASH, "cluster-identity")]
    assert list(stash.request.replaceOnChanges) == ["input"]
    assert not stash.request.ignoreChanges


def test_without_a_cluster_nothing_is_compared_or_forgotten(
    monkeypatch: pytest.MonkeyPatch, state: dict[str, str]
) -> None:
    state["output"] = OURS
    in_cluster(monkeypatch, None)
    stash = program.run("prod")[(STASH, "cluster-identity")]
    assert stash.inputs["input"] == cluster_identity.UNKNOWN
    assert list(stash.request.ignoreChanges) == ["input"]


def test_everything_in_the_cluster_waits_for_the_identity_and_the_teardown_is_after_everything() -> None:
    registered = program.run("prod")
    identity = (STASH, "cluster-identity")
    assert registered.waits((program.PROVIDER, "cluster"), identity)
    for resource in registered.cluster_objects:
        assert resource.request.provider.startswith(registered[(program.PROVIDER, "cluster")].urn)
        assert registered.waits((STASH, "teardown"), (resource.type, resource.name)), resource.name
    assert list(registered[(STASH, "teardown")].request.hooks.before_delete) == ["no-claims-held"]


def test_a_drivers_resources_ask_for_claims_on_its_own_devices() -> None:
    registered = program.run("prod")
    for name, hook in (
        ("nvidia-dra-driver-gpu", "no-claims-held-gpu.nvidia.com"),
        ("amd-gpu-operator", "no-claims-held-gpu.amd.com"),
    ):
        assert hook in registered[(program.RELEASE, name)].request.hooks.before_delete


def test_production_protects_its_classes_and_policies_and_nothing_else() -> None:
    kinds = {program.DEVICE_CLASS, program.POLICY, program.BINDING}
    for stack, protected in (("prod", True), ("staging", False)):
        for resource in program.run(stack).cluster_objects:
            assert resource.request.protect is (protected and resource.type in kinds), (stack, resource.name)


def test_registry_credentials_are_a_secret_in_the_request_and_named_where_images_are_pulled() -> None:
    credentials = {"server": "registry.example.com", "username": "builder", "password": "open-sesame"}
    registered = program.run("prod", {"amd": {"registryCredentials": credentials}}, secret=("amd",))
    secret = registered[("kubernetes:core/v1:Secret", "amd-driver-registry")]
    assert secret.inputs["metadata"]["namespace"] == "kube-amd-gpu"
    signature = "4dabf18193072939515e22adb298388d"
    assert signature in str(secret.inputs["stringData"])
    spec = registered[(program.DEVICE_CONFIG, "berkelium-amd")].inputs["spec"]
    assert spec["draDriver"]["imageRegistrySecret"] == {"name": "amd-driver-registry"}
    everything = [each for each in registered.resources.values() if each is not secret]
    assert "open-sesame" not in str(everything)
