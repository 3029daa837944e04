"""What the AMD driver and AMD's node labeller publish."""

import pytest

from berkelium_infra import catalog
from berkelium_lab import fleet as fleets
from berkelium_lab.hardware import amd
from berkelium_lab.hardware.devices import NothingPublished
from berkelium_lab.hardware.inventory import inventory

HARDWARE = inventory(fleets.load("berkelium"))


def test_an_mi100_is_published_with_an_empty_product_name_and_its_device_id() -> None:
    (only,) = amd.gpu_slices(HARDWARE["mi100-1"], amd.dialect("v1.0.1"))
    assert [device["name"] for device in only["devices"]] == ["gpu-0-128", "gpu-1-129", "gpu-2-130", "gpu-3-131"]
    assert only["devices"][2] == {
        "name": "gpu-2-130",
        "attributes": {
            "type": {"string": "amdgpu"},
            "productName": {"string": ""},
            "deviceID": {"string": "0x738c"},
            "driverVersion": {"version": "6.14.14"},
            "driverVersionFull": {"string": "6.14.14"},
            "numaNode": {"int": 0},
            "resource.kubernetes.io/pciBusID": {"string": "0000:61:00.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:60"},
        },
        "capacity": {"memory": {"value": "32752Mi"}, "computeUnits": {"value": "120"}, "simdUnits": {"value": "480"}},
    }


def test_v1_0_0_has_no_full_driver_version() -> None:
    (only,) = amd.gpu_slices(HARDWARE["mi100-1"], amd.dialect("v1.0.0"))
    assert all("driverVersionFull" not in device["attributes"] for device in only["devices"])


def test_v0_1_0_skips_the_mi100() -> None:
    with pytest.raises(NothingPublished, match="compute partitions"):
        amd.gpu_slices(HARDWARE["mi100-1"], amd.dialect("v0.1.0"))


def test_latest_speaks_like_the_newest_known_version() -> None:
    assert amd.dialect("latest").version == "1.0.1"


def test_a_node_without_amd_gpus_publishes_nothing() -> None:
    with pytest.raises(NothingPublished, match="no AMD GPU"):
        amd.gpu_slices(HARDWARE["h100-1"], amd.dialect("v1.0.1"))


def test_the_node_labeller_names_device_and_units() -> None:
    labels = amd.node_labels(catalog.model("mi100"), 4)
    assert labels["amd.com/gpu.device-id"] == "738c"
    assert labels["amd.com/gpu.cu-count"] == "120"
    assert labels["amd.com/gpu.simd-count"] == "480"
    assert labels["amd.com/gpu.product-name"] == "AMD_Instinct_MI100"
    assert labels["amd.com/gpu.vram"] == "32G"
    assert labels["beta.amd.com/gpu.device-id"] == "738c"
    assert labels["beta.amd.com/gpu.device-id.738c"] == "4"
