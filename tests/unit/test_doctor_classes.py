"""The doctor on device classes and on the devices that they offer."""

import pytest

from berkelium_infra import catalog
from berkelium_infra.settings import Settings
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.selectors import MissingAttribute, parse
from tests.unit.doctor_world import device_class, healthy

PROFILE = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
GUARD = 'device.driver == "gpu.nvidia.com" && '


def test_a_missing_class_is_an_error_and_its_devices_belong_to_nobody() -> None:
    world = healthy()
    world.remove("DeviceClass", "nvidia-h100")
    assert world.problems() == {
        ("error", "class-missing", "deviceclass/nvidia-h100"),
        ("warning", "device-unclassed", "device/gpu.nvidia.com/gpu/NVIDIA H100 80GB HBM3"),
    }


@pytest.mark.parametrize(
    ("change", "evidence"),
    [
        (
            {"extendedResourceName": "nvidia.com/other"},
            "extended resource: nvidia.com/other; declared: nvidia.com/h100",
        ),
        ({"selectors": []}, "selector: none"),
    ],
)
def test_a_class_that_differs_from_the_catalog_is_an_error(change: dict, evidence: str) -> None:
    world = healthy()
    world.one("DeviceClass", "nvidia-h100")["spec"].update(change)
    assert ("error", "class-differs", "deviceclass/nvidia-h100") in world.problems()
    assert evidence in world.only("class-differs").evidence


def test_a_class_that_a_stack_adds_is_expected_too() -> None:
    world = healthy()
    extra = [{"name": "nic", "selector": 'device.driver == "nic.example.com"'}]
    expectation = Expectation(
        Settings.model_validate({"extraDeviceClasses": extra, "projectNamespaces": ["my-project"]})
    )
    assert world.problems(expectation) == {("error", "class-missing", "deviceclass/nic")}
    world.add(device_class("nic", extra[0]["selector"], None))
    assert world.problems(expectation) == {("warning", "class-matches-nothing", "deviceclass/nic")}


def test_a_class_whose_selector_only_the_scheduler_can_evaluate_is_said_to_be_so() -> None:
    world = healthy()
    extra = [{"name": "big", "selector": 'device.driver == "gpu.nvidia.com" && device.capacity.size() > 9'}]
    expectation = Expectation(
        Settings.model_validate({"extraDeviceClasses": extra, "projectNamespaces": ["my-project"]})
    )
    world.add(device_class("big", extra[0]["selector"], None))
    assert world.problems(expectation) == set()
    assert world.only("class-not-evaluated", expectation).subject == "deviceclass/big"


@pytest.mark.parametrize(("older", "newer", "winner"), [("aa", "bb", "bb"), ("bb", "aa", "aa")])
def test_of_two_classes_with_one_extended_resource_the_later_one_wins(older: str, newer: str, winner: str) -> None:
    world = healthy()
    for name, day in ((older, 1), (newer, 2)):
        made = device_class(name, GUARD + PROFILE, "example.com/gpu")
        made["metadata"]["creationTimestamp"] = f"2026-11-0{day}T00:00:00Z"
        world.add(made)
    found = world.only("extended-resource-shared")
    assert (found.severity, found.subject) == ("error", "extended-resource/example.com/gpu")
    assert f"example.com/gpu; {winner} wins" in found.summary


def test_of_two_equally_old_classes_with_one_extended_resource_the_first_by_name_wins() -> None:
    world = healthy()
    world.add(
        device_class("bb", GUARD + PROFILE, "example.com/gpu"), device_class("aa", GUARD + PROFILE, "example.com/gpu")
    )
    assert "; aa wins" in world.only("extended-resource-shared").summary


def test_a_selector_that_asks_a_device_for_what_it_lacks_is_an_error() -> None:
    world = healthy()
    world.add(device_class("unguarded", PROFILE, None))
    assert ("error", "class-stumbles", "deviceclass/unguarded") in world.problems()
    assert world.only("class-stumbles").evidence == (
        f"selector: {PROFILE}",
        "gpu-0 of pool b300-1 (gpu.nvidia.com) has no gpu.nvidia.com/profile",
        "gpu-0-mig-0 of pool b300-1 (gpu.nvidia.com) has no gpu.nvidia.com/profile",
        "gpu-0 of pool h200-1 (gpu.nvidia.com) has no gpu.nvidia.com/profile",
        "10 devices in all",
    )


def test_devices_of_an_unknown_product_are_found_and_belong_to_no_class() -> None:
    world = healthy()
    (gpu, mig) = world.one("ResourceSlice", "h100-devices")["spec"]["devices"]
    gpu["attributes"]["productName"] = mig["attributes"]["productName"] = {"string": "NVIDIA H100 PCIe"}
    assert world.problems() == {
        ("warning", "product-unknown", "product/gpu.nvidia.com/NVIDIA H100 PCIe"),
        ("warning", "device-unclassed", "device/gpu.nvidia.com/gpu/NVIDIA H100 PCIe"),
        ("warning", "class-matches-nothing", "deviceclass/nvidia-h100"),
    }


ATTRIBUTES = {"gpu.nvidia.com/type": "gpu", "gpu.nvidia.com/productName": "NVIDIA A40"}


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ('device.driver == "gpu.nvidia.com"', True),
        ("device.driver == 'gpu.amd.com'", False),
        (GUARD + "device.attributes['gpu.nvidia.com'].type == 'gpu'", True),
        (GUARD + "device.attributes['gpu.nvidia.com'].type in ['mig', 'vfio']", False),
        (GUARD + 'device.attributes["gpu.nvidia.com"].?profile.orValue("") == "1g.10gb"', False),
        (GUARD + 'device.attributes["gpu.nvidia.com"].?profile.orValue("x") in ["x"]', True),
        (GUARD + 'device.attributes["gpu.nvidia.com"].productName.matches("A40")', None),
        ("device.driver == 'gpu.amd.com' && device.attributes['x'].a.matches('A40')", False),
        ("device.driver == 'gpu.amd.com' || device.driver == 'gpu.nvidia.com'", None),
        ("device.driver == 'gpu.amd.com' ? false : true", None),
        ('device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("1Gi")) > 0', None),
    ],
)
def test_a_selector_is_evaluated_as_far_as_it_can_be(expression: str, answer: bool | None) -> None:
    assert parse([expression]).matches("gpu.nvidia.com", ATTRIBUTES) is answer


def test_a_plain_access_to_an_absent_attribute_is_an_error() -> None:
    with pytest.raises(MissingAttribute, match=r"^gpu\.nvidia\.com/profile$"):
        parse([GUARD + PROFILE]).matches("gpu.nvidia.com", ATTRIBUTES)


@pytest.mark.parametrize("one", catalog.DEVICE_CLASSES, ids=lambda c: c.name)
def test_every_class_of_the_catalog_can_be_evaluated(one: catalog.DeviceClass) -> None:
    assert not parse([one.selector]).open
