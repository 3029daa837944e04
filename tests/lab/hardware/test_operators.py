"""node-feature-discovery and the AMD GPU operator, played on a real control plane while their pods run."""

from collections.abc import Iterator
from typing import Any

import pytest

from berkelium_lab.api import Api
from berkelium_lab.wait import NotYet, until
from tests.lab.hardware.hand_made import (
    NODE,
    SECONDS,
    choose,
    crds,
    daemon_set,
    served,
    slices,
    until_none,
    until_shape,
)  # fmt: skip


@pytest.fixture
def nfd(api: Api, namespace: str) -> Iterator[str]:
    """node-feature-discovery, made by hand: its CRDs and an account that may do everything."""
    crds(api, "node-feature-discovery")
    served(api, "nfd.k8s-sigs.io/v1alpha1", "NodeFeature")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "nfd", "namespace": namespace}],
    }
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nfd", "namespace": namespace}})
    api.create(binding)
    yield namespace
    api.delete(binding["apiVersion"], binding["kind"], namespace)


def nfd_labels(role: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "node-feature-discovery", "role": role}


def nfd_master(namespace: str) -> dict[str, Any]:
    labels = nfd_labels("master")
    pod = {"serviceAccountName": "nfd", "containers": [{"name": "master", "image": "nfd:v0.18.3"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "master", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def until_label(api: Api, node: str, key: str, wanted: str | None) -> None:
    def probe() -> bool:
        found = (api.get("v1", "Node", node) or {})["metadata"]["labels"].get(key)
        if found != wanted:
            raise NotYet(f"{key} is {found!r}")
        return True

    until(probe, f"label {key}={wanted!r} on {node}", SECONDS)


def test_the_real_nfd_master_labels_nodes_where_a_worker_runs(api: Api, nfd: str) -> None:
    label = "feature.node.kubernetes.io/pci-0302_10de.present"
    worker = {"name": "worker", "image": "nfd:v0.18.3"}
    api.create(daemon_set(nfd, "worker", nfd_labels("worker"), worker))
    api.create(nfd_master(nfd))
    choose(api, "a40-1", "worker")
    until_label(api, "a40-1", label, "true")
    assert label not in (api.get("v1", "Node", "a40-2") or {})["metadata"]["labels"]
    choose(api, "a40-1", None)
    until_label(api, "a40-1", label, None)


DEVICE_CONFIG = {
    "selector": {NODE: "amd"},
    "driver": {"enable": False},
    "devicePlugin": {"enableDevicePlugin": False, "enableNodeLabeller": False},
    "draDriver": {"enable": True, "image": "docker.io/rocm/k8s-gpu-dra-driver:v1.0.1"},
    "metricsExporter": {"enable": False},
}


@pytest.fixture
def amd(api: Api, namespace: str) -> Iterator[str]:
    """The AMD operator, made by hand: its CRDs and its controller-manager pod."""
    crds(api, "gpu-operator-charts")
    served(api, "amd.com/v1alpha1", "DeviceConfig")
    manager = {"name": "manager", "image": "docker.io/rocm/gpu-operator:v1.5.1"}
    api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "controller-manager", "namespace": namespace},
            "spec": {"containers": [manager]},
        }
    )
    yield namespace
    for config in api.list("amd.com/v1alpha1", "DeviceConfig", namespace):
        api.delete("amd.com/v1alpha1", "DeviceConfig", config["metadata"]["name"], namespace)
    until(lambda: not api.list("amd.com/v1alpha1", "DeviceConfig", namespace), "no DeviceConfig any more", SECONDS)


def device_config(namespace: str, **changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "amd.com/v1alpha1",
        "kind": "DeviceConfig",
        "metadata": {"name": "gpus", "namespace": namespace},
        "spec": {**DEVICE_CONFIG, **changes},
    }


def until_condition(api: Api, namespace: str, kind: str, reason: str) -> dict[str, Any]:
    def probe() -> dict[str, Any]:
        config = api.get("amd.com/v1alpha1", "DeviceConfig", "gpus", namespace) or {}
        conditions = (config.get("status") or {}).get("conditions") or []
        for condition in conditions:
            if (condition["type"], condition["status"], condition["reason"]) == (kind, "True", reason):
                return condition
        raise NotYet(f"conditions {conditions}")

    return until(probe, f"condition {kind} with reason {reason}", SECONDS)


def test_a_device_config_becomes_slices_and_takes_them_with_it(api: Api, amd: str) -> None:
    choose(api, "mi100-1", "amd")
    api.create(device_config(amd))
    (piece,) = until_shape(api, "mi100-1", [4])
    assert piece["driver"] == "gpu.amd.com"
    assert piece["devices"][0]["attributes"]["productName"] == {"string": ""}
    until_condition(api, amd, "Ready", "OperatorReady")
    api.delete("amd.com/v1alpha1", "DeviceConfig", "gpus", amd)
    until_none(api, "mi100-1")
    until(lambda: api.get("amd.com/v1alpha1", "DeviceConfig", "gpus", amd) is None, "the finalizer to go", SECONDS)


def test_a_device_config_that_no_node_matches_says_so_and_recovers(api: Api, amd: str) -> None:
    api.create(device_config(amd))
    until_condition(api, amd, "Error", "NoMatchingNodes")
    choose(api, "mi100-1", "amd")
    until_condition(api, amd, "Ready", "OperatorReady")
    until_shape(api, "mi100-1", [4])


def test_device_plugin_and_dra_driver_together_are_an_error_of_the_device_config(api: Api, amd: str) -> None:
    choose(api, "mi100-1", "amd")
    api.create(device_config(amd, devicePlugin={"enableDevicePlugin": True}))
    condition = until_condition(api, amd, "Error", "ValidationError")
    assert "DRADriver and DevicePlugin cannot be enabled at the same time" in condition["message"]
    assert slices(api, "mi100-1") == []
