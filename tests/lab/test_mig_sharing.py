"""Whole GPUs and MIG partitions on the same nodes: each takes what it asked for, and gives it back whole."""

import pytest

from berkelium_infra import catalog
from berkelium_lab.api import Api
from tests.lab import workloads

NODE = "h100-1"
GPUS = 8
H100_1G = 'device.attributes["gpu.nvidia.com"].profile == "1g.10gb"'


def partition(namespace: str, name: str) -> list[dict]:
    """A pod that asks for one 1g.10gb of the node."""
    return workloads.claiming(namespace, name, "mig.nvidia.com", node=NODE, selectors=[H100_1G])


def whole(namespace: str, name: str, count: int) -> list[dict]:
    """A pod that asks for whole GPUs of the node."""
    return workloads.claiming(namespace, name, "nvidia-h100", node=NODE, count=count)


def test_a_whole_gpu_class_hands_out_every_gpu_of_a_node_and_no_partition(deployed: Api, namespace: str) -> None:
    objects = workloads.claiming(namespace, "all", "nvidia-h100", node=NODE, mode="All")
    workloads.create(deployed, objects)
    found = workloads.running(deployed, namespace, "all")
    assert sorted(device.name for device in found.devices) == [f"gpu-{index}" for index in range(GPUS)]
    assert {device.kind for device in found.devices} == {"gpu"}


def test_a_partition_is_never_cut_from_a_gpu_that_is_taken(deployed: Api, namespace: str) -> None:
    workloads.create(deployed, whole(namespace, "all", GPUS))
    workloads.running(deployed, namespace, "all")
    workloads.create(deployed, partition(namespace, "slice"))
    assert "cannot allocate all claims" in workloads.unschedulable(deployed, namespace, "slice")
    workloads.remove(deployed, namespace, "all")
    workloads.running(deployed, namespace, "slice")


def test_a_gpu_cut_into_partitions_comes_back_whole_when_their_claims_end(deployed: Api, namespace: str) -> None:
    workloads.create(deployed, partition(namespace, "slice"))
    cut = workloads.running(deployed, namespace, "slice").devices[0]
    workloads.create(deployed, whole(namespace, "others", GPUS - 1))
    others = workloads.running(deployed, namespace, "others")
    assert cut.kind == "mig"
    assert cut.name.split("-mig-")[0] not in {device.name for device in others.devices}
    workloads.create(deployed, whole(namespace, "last", 1))
    workloads.unschedulable(deployed, namespace, "last")
    workloads.remove(deployed, namespace, "slice")
    (device,) = workloads.running(deployed, namespace, "last").devices
    assert device.name == cut.name.split("-mig-")[0]


@pytest.mark.parametrize("model", catalog.MIG_MODELS, ids=lambda m: m.key)
def test_whole_gpus_and_partitions_of_every_model_share_a_node(
    model: catalog.GpuModel, deployed: Api, namespace: str
) -> None:
    node = f"{model.key}-1"
    profile = model.mig_profiles[0].name
    selector = f'device.attributes["gpu.nvidia.com"].profile == "{profile}"'
    workloads.create(
        deployed, workloads.claiming(namespace, "slice", "mig.nvidia.com", node=node, selectors=[selector])
    )
    workloads.create(deployed, workloads.claiming(namespace, "whole", f"nvidia-{model.key}", node=node))
    kinds = {
        name: [device.kind for device in workloads.running(deployed, namespace, name).devices]
        for name in ("slice", "whole")
    }
    assert kinds == {"slice": ["mig"], "whole": ["gpu"]}
