"""Every class against every product that a driver may publish: it takes its own and errors on none."""

from collections.abc import Iterator

import pytest

from berkelium_infra import catalog
from berkelium_lab.api import Api
from tests.lab import workloads
from tests.lab.labs import fresh_namespace

NODE = "odd-hardware-1"

# Product names as drivers, node labels and neighbouring products spell them.
PRODUCTS = (
    "NVIDIA B300 SXM6 AC",
    "NVIDIA B200",
    "NVIDIA H200 NVL",
    "NVIDIA H200",
    "NVIDIA-H200-NVL",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA H100 PCIe",
    "NVIDIA H100 NVL",
    "NVIDIA A100 80GB PCIe",
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA A100-PCIE-40GB",
    "NVIDIA-A100-80GB-PCIe",
    "NVIDIA A40",
    "NVIDIA A40-48Q",
)

# What each class must take of the devices below, by name of device.
TAKEN = {
    "nvidia-b300": {"gpu-0"},
    "nvidia-h200": {"gpu-2"},
    "nvidia-h100": {"gpu-5"},
    "nvidia-a100": {"gpu-8"},
    "nvidia-a40": {"gpu-12"},
    "gpu.nvidia.com": {"gpu-12"},
    "mig.nvidia.com": {f"mig-{index}" for index in range(len(PRODUCTS))},
    "gpu.amd.com": {"gpu-0-128", "gpu-1-129"},
}


def nvidia(index: int, product: str, kind: str) -> dict:
    """A device of that product, with no attribute but the two that every NVIDIA device has."""
    attributes = {"type": {"string": kind}, "productName": {"string": product}}
    return {"name": f"{kind}-{index}", "attributes": attributes}


def slices(node: dict) -> list[dict]:
    """Pools of three drivers on one node; the devices that lack attributes come first."""
    pools = {
        "nic.example.com": [{"name": "nic-0", "attributes": {"speed": {"int": 400}}}, {"name": "nic-1"}],
        "gpu.amd.com": [
            {"name": "unnamed", "attributes": {"type": {"string": "amdgpu"}}},
            {"name": "gpu-9-137", "attributes": {"type": {"string": "amdgpu"}, "deviceID": {"string": "0x74a1"}}},
            {"name": "gpu-0-128", "attributes": {"type": {"string": "amdgpu"}, "deviceID": {"string": "0x738c"}}},
            {"name": "gpu-1-129", "attributes": {"type": {"string": "amdgpu"}, "deviceID": {"string": "0x738e"}}},
        ],
        "gpu.nvidia.com": [
            nvidia(index, product, kind) for kind in ("vfio", "mig", "gpu") for index, product in enumerate(PRODUCTS)
        ],
    }
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node["metadata"]["uid"], "controller": True}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{NODE}-{driver}", "ownerReferences": [owner]},
            "spec": {
                "driver": driver,
                "nodeName": NODE,
                "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        }
        for driver, devices in pools.items()
    ]


@pytest.fixture(scope="module")
def odd_node(deployed: Api) -> Iterator[None]:
    """A node that no driver of ours runs on, with every product as every type."""
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    deployed.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
            "spec": {"taints": [{"key": "odd", "effect": "NoSchedule"}]},
            "status": {"allocatable": allocatable, "capacity": allocatable},
        }
    )
    node = deployed.get("v1", "Node", NODE)
    assert node
    workloads.create(deployed, slices(node))
    yield
    deployed.delete("v1", "Node", NODE)
    for piece in slices(node):
        deployed.delete("resource.k8s.io/v1", "ResourceSlice", piece["metadata"]["name"])


@pytest.mark.usefixtures("odd_node")
@pytest.mark.parametrize("device_class", catalog.DEVICE_CLASSES, ids=lambda c: c.name)
def test_a_class_takes_its_own_products_and_no_other(device_class: catalog.DeviceClass, deployed: Api) -> None:
    with fresh_namespace(deployed) as namespace:
        claim, pod = workloads.claiming(namespace, "all", device_class.name, node=NODE, mode="All")
        pod["spec"]["tolerations"] = [{"key": "odd", "operator": "Exists"}]
        workloads.create(deployed, [claim, pod])
        found = workloads.running(deployed, namespace, "all")
    assert {device.name for device in found.devices} == TAKEN[device_class.name]
