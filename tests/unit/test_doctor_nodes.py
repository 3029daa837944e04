"""The doctor on what nodes advertise and on quotas."""

import pytest

from tests.unit.doctor_world import healthy, obj

A40 = "extended-resource/nvidia.com/a40"


def test_a_device_plugin_beside_a_dra_driver_is_an_error() -> None:
    world = healthy()
    world.one("Node", "a40-1")["status"]["allocatable"]["nvidia.com/a40"] = "2"
    assert world.problems() == {("error", "device-plugin-conflict", A40)}
    assert world.only("device-plugin-conflict").evidence == ("a40-1: 2",)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_a_device_plugin_conflicts_by_the_gpus_not_by_the_name_of_the_class(resource: str) -> None:
    world = healthy()
    world.one("Node", "h200-1")["status"]["allocatable"][resource] = "8"
    assert world.problems() == {("error", "device-plugin-conflict", f"extended-resource/{resource}")}


def test_slices_of_another_driver_make_no_conflict() -> None:
    world = healthy()
    world.add(obj("v1", "Node", "old-1", spec={}, status={"allocatable": {"nvidia.com/a40": "2"}}))
    pool = {"name": "old-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "nic.example.com", "nodeName": "old-1", "pool": pool, "devices": []}
    world.add(obj("resource.k8s.io/v1", "ResourceSlice", "old-1-nics", spec=spec))
    assert world.problems() == {("warning", "device-plugin-node", A40)}


def test_a_device_plugin_on_a_node_of_its_own_is_a_warning() -> None:
    world = healthy()
    plain = obj("v1", "Node", "old-1", spec={}, status={"allocatable": {"nvidia.com/a40": "2"}})
    world.add(plain)
    assert world.problems() == {("warning", "device-plugin-node", A40)}


@pytest.mark.parametrize(
    ("version", "severity"), [("v1.34.3", "error"), ("v1.35.4", "warning"), ("v1.37.2", "warning")]
)
def test_a_zero_that_a_device_plugin_left_blocks_the_node_before_1_35(version: str, severity: str) -> None:
    world = healthy()
    world.version = version
    world.one("Node", "a40-1")["status"]["allocatable"]["nvidia.com/a40"] = "0"
    found = world.only("stale-allocatable")
    assert (found.severity, found.subject, found.evidence) == (severity, A40, ("a40-1",))
    assert "/status/allocatable/nvidia.com~1a40" in found.remedy


def test_resources_that_no_class_stands_for_are_no_concern() -> None:
    world = healthy()
    world.one("Node", "a40-1")["status"]["allocatable"]["example.com/fpga"] = "2"
    assert world.problems() == set()


def quota(key: str, used: dict[str, str] | None = None) -> dict:
    """A quota with one key, as the API server shows it."""
    status = {"hard": {key: "1"}, "used": used or {}}
    return obj("v1", "ResourceQuota", "gpus", "my-project", spec={"hard": {key: "1"}}, status=status)


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("nvidia.com/gpu", "Write requests.nvidia.com/gpu instead."),
        ("limits.nvidia.com/gpu", "Write requests.nvidia.com/gpu instead."),
        ("amd.com/gpu", "Write requests.amd.com/gpu instead."),
    ],
)
def test_a_quota_key_without_requests_limits_nothing(key: str, remedy: str) -> None:
    world = healthy()
    world.add(quota(key))
    assert world.problems() == {("warning", "quota-without-effect", "resourcequota/my-project/gpus")}
    assert world.only("quota-without-effect").remedy == remedy


@pytest.mark.parametrize(
    "key",
    [
        "requests.nvidia.com/mig-1g.10gb",
        "nope.deviceclass.resource.k8s.io/devices",
        "requests.deviceclass.resource.kubernetes.io/nope",
    ],
)
def test_a_quota_on_what_does_not_exist_limits_nothing(key: str) -> None:
    world = healthy()
    world.add(quota(key, {key: "0"}))
    assert world.problems() == {("warning", "quota-without-effect", "resourcequota/my-project/gpus")}


@pytest.mark.parametrize(
    "key",
    [
        "requests.nvidia.com/gpu",
        "requests.nvidia.com/h200",
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices",
        "requests.deviceclass.resource.kubernetes.io/mig.nvidia.com",
        "requests.cpu",
        "limits.memory",
        "count/jobs.batch",
        "requests.example.com/fpga",
        "gold.storageclass.storage.k8s.io/requests.storage",
    ],
)
def test_a_quota_key_with_an_effect_is_left_alone(key: str) -> None:
    world = healthy()
    world.add(quota(key, {key: "0"}))
    assert world.problems() == set()
