"""Teardown: refused under running work, in order, without hanging, and only what is the stack's own."""

from collections.abc import Iterator

import pytest

from berkelium_lab import workspace
from berkelium_lab.api import Api, connect
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from berkelium_lab.wait import NotYet, until
from tests.lab.labs import LabFactory

PROJECT = "my-project"
FOREIGN = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


@pytest.fixture
def stack(labs: LabFactory) -> Lab:
    """A lab of these tests' own with the program applied, which a test may take away."""
    return labs.applied("operations")


@pytest.fixture
def cluster(stack: Lab) -> Api:
    """The API of that lab."""
    return connect(stack.kubeconfig)


@pytest.fixture
def claim(cluster: Api) -> Iterator[str]:
    """The name of a claim that a running pod holds."""
    cluster.create(holder())

    def held() -> str:
        for name in claims_in_use(cluster):
            return name
        raise NotYet(str((cluster.get("v1", "Pod", "holder", PROJECT) or {}).get("status")))

    yield until(held, "the pod holds a claim", 60)
    cluster.delete("v1", "Pod", "holder", PROJECT)
    until(lambda: not cluster.list("resource.k8s.io/v1", "ResourceClaim", PROJECT), "the claim is given back", 60)


def claims_in_use(api: Api) -> list[str]:
    """The names of the project's claims that a pod holds."""
    claims = api.list("resource.k8s.io/v1", "ResourceClaim", PROJECT)
    return [claim["metadata"]["name"] for claim in claims if (claim.get("status") or {}).get("reservedFor")]


def holder() -> dict:
    """A pod that asks for a whole H200 by its extended resource and runs until it is deleted."""
    resources = {"cpu": "1", "memory": "1Gi", "nvidia.com/h200": "1"}
    container = {
        "name": "main",
        "image": "registry.example.com/tool:1",
        "resources": {"requests": resources, "limits": resources},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "holder", "namespace": PROJECT},
        "spec": {"containers": [container]},
    }


def test_destroy_is_refused_while_a_pod_holds_a_claim_and_lists_it(stack: Lab, cluster: Api, claim: str) -> None:
    before = workspace.state(stack)["resources"]
    with pytest.raises(LabError, match="1 claim is still held") as caught:
        workspace.destroy(stack)
    text = str(caught.value)
    assert f"{PROJECT}/{claim} (pod holder; gpu.nvidia.com/h200-" in text
    assert "BERKELIUM_DESTROY_HELD_CLAIMS" in text
    assert len(text.splitlines()) == 2, text
    kept = {each["urn"] for each in workspace.state(stack)["resources"]}
    assert {each["urn"] for each in before} <= kept
    assert cluster.get("v1", "Pod", "holder", PROJECT)
    assert workspace.preview(stack).unchanged


@pytest.mark.usefixtures("claim")
def test_switching_a_driver_off_is_refused_while_its_devices_are_held_and_not_for_the_other_vendor(
    stack: Lab, cluster: Api
) -> None:
    workspace.deploy(stack, {"guardDestroy": True})
    with pytest.raises(LabError, match="1 claim is still held"):
        workspace.deploy(stack, {"guardDestroy": True, "nvidia": {"enabled": False}})
    assert cluster.get("apps/v1", "DaemonSet", "nvidia-dra-driver-gpu-kubelet-plugin", "nvidia-dra-driver-gpu")
    workspace.deploy(stack, {"guardDestroy": True, "amd": {"enabled": False}})
    assert cluster.get("v1", "Namespace", "kube-amd-gpu") is None
    workspace.deploy(stack)


def test_a_protected_stack_keeps_its_classes_and_policies(stack: Lab, cluster: Api) -> None:
    workspace.deploy(stack, {"protect": True})
    with pytest.raises(LabError, match="protect"):
        workspace.deploy(stack, {"protect": True, "policies": {"no-idle-gpu": "off"}})
    with pytest.raises(LabError, match="protect"):
        workspace.destroy(stack, settings_overrides={"protect": True}, held_claims=True)
    assert cluster.get("resource.k8s.io/v1", "DeviceClass", "nvidia-h200")
    assert cluster.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "no-idle-gpu")
    workspace.deploy(stack)


@pytest.mark.usefixtures("claim")
def test_destroy_goes_on_when_told_to_the_users_first_the_classes_last_and_nothing_hangs(
    stack: Lab, cluster: Api
) -> None:
    cluster.apply(FOREIGN)
    lines: list[str] = []
    result = workspace.destroy(stack, report=lines.append, held_claims=True)
    assert set(result.changes) == {"delete"}
    deleted = [line.split()[1:3] for line in lines if line.strip().startswith("deleted ")]
    classes = [index for index, (kind, _) in enumerate(deleted) if kind == "DeviceClass"]
    assert deleted.index(["Namespace", PROJECT]) < min(classes)
    drivers = [["Release", "nvidia-dra-driver-gpu"], ["Release", "amd-gpu-operator"]]
    assert max(deleted.index(driver) for driver in drivers) < min(classes)

    def gone() -> bool:
        namespaces = {each["metadata"]["name"] for each in cluster.list("v1", "Namespace")}
        if left := namespaces & {PROJECT, "kube-amd-gpu", "nvidia-dra-driver-gpu", "node-feature-discovery"}:
            raise NotYet(f"still there: {left}")
        return True

    until(gone, "no namespace of the stack hangs", 60)
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com")
    assert cluster.list("resource.k8s.io/v1", "ResourceClaim") == []
