"""Why the kubelet plugin is split by kind of node: without it the A40 nodes publish nothing at driver 25.12.0."""

import pytest

from berkelium_infra.catalog import MODELS
from berkelium_lab.api import Api
from berkelium_lab.placement import Inventory
from berkelium_lab.wait import NotYet, until
from tests.lab.labs import LabFactory

NVIDIA_MODELS = {model.key for model in MODELS if model.vendor.name == "NVIDIA"}


def models_published(api: Api) -> set[str]:
    """The NVIDIA models that have at least one device in a ResourceSlice."""
    devices = Inventory.read(api).devices.values()
    return {device.model.key for device in devices if device.model and device.driver == "gpu.nvidia.com"}


def plugin_nodes(api: Api) -> set[str]:
    """The nodes on which a kubelet plugin of the NVIDIA driver runs."""
    pods = api.list("v1", "Pod", "nvidia-dra-driver-gpu", label_selector="nvidia-dra-driver-gpu-component")
    return {pod["spec"]["nodeName"] for pod in pods if pod["status"].get("phase") == "Running"}


def test_every_nvidia_model_publishes_its_gpus(deployed: Api) -> None:
    assert models_published(deployed) == NVIDIA_MODELS


def test_a40_nodes_publish_whole_gpus_without_counters(deployed: Api) -> None:
    pieces = deployed.list("resource.k8s.io/v1", "ResourceSlice", field_selector="spec.nodeName=a40-1")
    (piece,) = [piece for piece in pieces if piece["spec"]["driver"] == "gpu.nvidia.com"]
    assert len(piece["spec"]["devices"]) == 4
    assert all("consumesCounters" not in device for device in piece["spec"]["devices"])


@pytest.fixture(scope="module")
def unsplit(labs: LabFactory) -> Api:
    """A lab with the program applied and the split switched off."""
    return labs.deployed("unsplit", settings={"nvidia": {"splitKubeletPlugin": "off"}}, settle=False)


def test_without_the_split_the_a40_vanish(unsplit: Api) -> None:
    def probe() -> bool:
        nodes, models = plugin_nodes(unsplit), models_published(unsplit)
        if not {"a40-1", "a40-2"} <= nodes or models != NVIDIA_MODELS - {"a40"}:
            raise NotYet(f"plugins run on {sorted(nodes)}; published are {sorted(models)}")
        return True

    assert until(probe, "plugins run on the A40 nodes, which publish nothing", 30)
