"""The simulated NVIDIA driver on a real control plane: it publishes while its plugin pods run, and only then."""

from typing import Any

import pytest

from berkelium_lab.api import Api
from berkelium_lab.hardware import nvidia
from berkelium_lab.hardware.nvidia_dialects import dialect, feature_gates
from berkelium_lab.wait import NotYet, until
from tests.lab.hardware.hand_made import (
    HARDWARE,
    SECONDS,
    choose,
    daemon_set,
    newest,
    slices,
    until_none,
    until_pod,
    until_shape,
)  # fmt: skip


def plugin(namespace: str, gates: str, tag: str = "v25.12.0") -> dict[str, Any]:
    """The NVIDIA kubelet plugin on nodes whose label says `plugin`."""
    container = {
        "name": "gpus",
        "image": f"nvcr.io/nvidia/k8s-dra-driver-gpu:{tag}",
        "env": [{"name": "FEATURE_GATES", "value": gates}],
    }
    return daemon_set(namespace, "plugin", {"nvidia-dra-driver-gpu-component": "kubelet-plugin"}, container)


WITH_MIG = [0, *[26] * 8]
"""A slice of counters, and one for each of eight GPUs with its 25 MIG devices."""


def test_slices_come_with_the_plugin_pod_and_go_with_it(api: Api, namespace: str) -> None:
    api.create(plugin(namespace, "DynamicMIG=true,"))
    assert slices(api, "h100-1") == []
    choose(api, "h100-1", "plugin")
    until_shape(api, "h100-1", WITH_MIG)
    assert slices(api, "h100-2") == []
    choose(api, "h100-1", None)
    until_none(api, "h100-1")


@pytest.mark.parametrize("node", ["b300-1", "h200-1", "h100-1", "a100-1"])
def test_the_api_server_takes_every_slice_as_it_is(api: Api, namespace: str, node: str) -> None:
    api.create(plugin(namespace, "DynamicMIG=true,"))
    choose(api, node, "plugin")
    gpus = len(HARDWARE[node].gpus)
    found = until_shape(api, node, [0, *[26] * gpus])
    spoken = dialect("v25.12.0")
    wanted = nvidia.gpu_slices(HARDWARE[node], spoken, feature_gates("DynamicMIG=true", spoken), (1, 37), True)
    kept = [{key: piece[key] for key in ("devices", "sharedCounters") if key in piece} for piece in found]
    assert all(piece in kept for piece in wanted)
    assert len(kept) == len(wanted)


def test_slices_follow_the_feature_gates(api: Api, namespace: str) -> None:
    choose(api, "h100-1", "plugin")
    api.create(plugin(namespace, "DynamicMIG=true,"))
    before = until_shape(api, "h100-1", WITH_MIG)
    api.apply(plugin(namespace, "DynamicMIG=false,"))
    after = until_shape(api, "h100-1", [8])
    assert (before[0]["pool"]["generation"], after[0]["pool"]["generation"]) == (1, 2)


def test_slices_follow_an_upgrade_of_the_driver(api: Api, namespace: str) -> None:
    choose(api, "h100-1", "plugin")
    api.create(plugin(namespace, "DynamicMIG=true,"))
    old = until_shape(api, "h100-1", WITH_MIG)
    api.apply(plugin(namespace, "DynamicMIG=true,", tag="v0.4.1"))

    def upgraded() -> bool:
        found = newest(api, "h100-1")
        if found[0]["pool"]["generation"] == old[0]["pool"]["generation"]:
            raise NotYet("the old generation")
        devices = [device for piece in found for device in piece.get("devices", [])]
        return all("addressingMode" in device["attributes"] for device in devices)

    assert until(upgraded, "the slices of v0.4.1", SECONDS)


def test_at_25_12_0_a40_nodes_publish_nothing_with_dynamic_mig_and_at_0_4_1_whole_gpus(
    api: Api, namespace: str
) -> None:
    api.create(plugin(namespace, "DynamicMIG=true,"))
    choose(api, "a40-1", "plugin")
    choose(api, "h100-1", "plugin")
    until_pod(api, namespace, "a40-1")
    until_shape(api, "h100-1", WITH_MIG)
    assert slices(api, "a40-1") == []
    api.apply(plugin(namespace, "DynamicMIG=true,", tag="v0.4.1"))
    until_shape(api, "a40-1", [1, 1, 1, 1])


def test_gates_that_exclude_each_other_stop_the_driver_for_all_to_see(api: Api, namespace: str) -> None:
    api.create(plugin(namespace, "DynamicMIG=true,MPSSupport=true,"))
    choose(api, "h100-1", "plugin")

    def crashed() -> dict[str, Any]:
        pod = until_pod(api, namespace, "h100-1")
        (status,) = pod["status"]["containerStatuses"]
        if "waiting" not in status["state"]:
            raise NotYet(f"state {status['state']}")
        return pod

    pod = until(crashed, "a waiting container", SECONDS)
    (status,) = pod["status"]["containerStatuses"]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    ready = {condition["type"]: condition["status"] for condition in pod["status"]["conditions"]}
    assert (ready["Ready"], ready["ContainersReady"]) == ("False", "False")
    events = api.list("v1", "Event", namespace, field_selector=f"involvedObject.name={pod['metadata']['name']}")
    assert any("DynamicMIG is currently mutually exclusive with MPSSupport" in event["message"] for event in events)
    assert slices(api, "h100-1") == []
