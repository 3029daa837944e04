"""Faults in what the stack declares (classes, releases) and in tenants' quotas, each found in a lab."""

from collections.abc import Iterator

import pytest

from berkelium_infra.settings import ExtraDeviceClass
from berkelium_lab.api import Api
from berkelium_lab.doctor import Expectation
from berkelium_lab.lab import Lab
from tests.lab.doctor_faults import (
    RESOURCE_API,
    Doctor,
    added,
    changed,
    device_class,
    helm_record,
    on,
    put_back,
    removed,
)

DRIVER = "odd.example.com"
NFD = "node-feature-discovery"
RELEASE = f"release/{NFD}/{NFD}"


@pytest.fixture(scope="module")
def doctor(lab: Lab, deployed: Api) -> Iterator[Doctor]:
    """The doctor on the main lab, which is healthy before and after."""
    with on(lab, deployed) as doctor:
        yield doctor


def test_a_missing_class_is_found(doctor: Doctor) -> None:
    with removed(doctor.api, RESOURCE_API, "DeviceClass", "nvidia-h100"):
        doctor.finds(
            ("error", "class-missing", "deviceclass/nvidia-h100"),
            ("warning", "device-unclassed", "device/gpu.nvidia.com/gpu/NVIDIA H100 80GB HBM3"),
        )


def test_a_class_that_was_changed_by_hand_is_found(doctor: Doctor) -> None:
    def change(obj: dict) -> None:
        cel = obj["spec"]["selectors"][0]["cel"]
        cel["expression"] = cel["expression"].replace("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe")

    with changed(doctor.api, RESOURCE_API, "DeviceClass", "nvidia-h100", change):
        doctor.finds(
            ("error", "class-differs", "deviceclass/nvidia-h100"),
            ("warning", "class-matches-nothing", "deviceclass/nvidia-h100"),
            ("warning", "device-unclassed", "device/gpu.nvidia.com/gpu/NVIDIA H100 80GB HBM3"),
        )


def test_two_classes_with_one_extended_resource_are_found(doctor: Doctor) -> None:
    classes = [device_class(name, f'device.driver == "{DRIVER}"', "example.com/odd") for name in ("odd-b", "odd-a")]
    with added(doctor.api, *classes):
        doctor.finds(("error", "extended-resource-shared", "extended-resource/example.com/odd"))
        assert {line.partition(",")[0] for line in doctor.only("extended-resource-shared").evidence} == {
            "odd-a",
            "odd-b",
        }


def test_a_class_without_a_guard_is_found(doctor: Doctor) -> None:
    expression = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
    with added(doctor.api, device_class("odd", expression)):
        doctor.finds(("error", "class-stumbles", "deviceclass/odd"))


def test_a_class_that_only_the_scheduler_can_evaluate_is_said_to_be_so(doctor: Doctor) -> None:
    selector = f'device.driver == "gpu.nvidia.com" && "{DRIVER}" in device.attributes'
    extra = ExtraDeviceClass(name="odd", selector=selector)
    settings = doctor.expectation.settings.model_copy(update={"extra_device_classes": (extra,)})
    expecting = Doctor(doctor.api, Expectation(settings, project=doctor.expectation.project))
    with added(doctor.api, device_class("odd", selector)):
        expecting.healthy()
        assert expecting.only("class-not-evaluated").subject == "deviceclass/odd"


@pytest.mark.parametrize(
    ("status", "id"),
    [
        ("pending-upgrade", "release-pending"),
        ("failed", "release-failed"),
        ("uninstalling", "release-not-deployed"),
    ],
)
def test_a_release_in_a_bad_state_is_found(doctor: Doctor, status: str, id: str) -> None:
    with added(doctor.api, helm_record(doctor.api, NFD, 99, status)):
        doctor.finds(("error", id, RELEASE))


def test_a_release_of_another_version_is_found(doctor: Doctor) -> None:
    with added(doctor.api, helm_record(doctor.api, NFD, 99, "deployed", "0.17.0")):
        doctor.finds(("error", "release-version", RELEASE), ("warning", "release-version-unknown", RELEASE))


def test_a_release_that_is_installed_twice_is_found(doctor: Doctor) -> None:
    record = helm_record(doctor.api, NFD, 99, "deployed")
    record["metadata"]["namespace"] = "default"
    with added(doctor.api, record):
        doctor.finds(("error", "release-duplicate", RELEASE))


def test_a_record_that_cannot_be_read_is_found(doctor: Doctor) -> None:
    record = helm_record(doctor.api, NFD, 99, "deployed")
    record["data"]["release"] = "bm9uc2Vuc2U="
    with added(doctor.api, record):
        doctor.finds(("warning", "release-unreadable", f"secret/{NFD}/{record['metadata']['name']}"))


def test_a_missing_release_is_found(doctor: Doctor) -> None:
    api = doctor.api
    records = api.list("v1", "Secret", NFD, label_selector=f"owner=helm,name={NFD}")
    for record in records:
        api.delete("v1", "Secret", record["metadata"]["name"], NFD)
    try:
        doctor.finds(("error", "release-missing", RELEASE))
    finally:
        for record in records:
            put_back(api, record)


def test_a_quota_key_without_effect_is_found_and_the_cluster_agrees(doctor: Doctor, namespace: str) -> None:
    hard = {"nvidia.com/gpu": "1", "requests.nvidia.com/gpu": "1", "requests.nvidia.com/mig-1g.10gb": "1"}
    metadata = {"name": "gpus", "namespace": namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    with added(doctor.api, quota):
        doctor.finds(("warning", "quota-without-effect", f"resourcequota/{namespace}/gpus"))
        found = [finding for finding in doctor.findings() if finding.id == "quota-without-effect"]
        assert {finding.evidence[0] for finding in found} == {"nvidia.com/gpu: 1", "requests.nvidia.com/mig-1g.10gb: 1"}
        # The API server itself keeps no count of a key that no evaluator knows.
        status = (doctor.api.get("v1", "ResourceQuota", "gpus", namespace) or {}).get("status", {})
        assert "nvidia.com/gpu" not in status.get("used", {})
