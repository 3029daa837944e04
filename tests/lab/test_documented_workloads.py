"""Every manifest of the user documentation is admitted, scheduled and given the right devices."""

import pytest

from berkelium_infra import catalog
from berkelium_lab import examples
from berkelium_lab.api import Api
from tests.lab import workloads

LOADED = examples.load()


def test_every_example_is_given_what_the_documentation_promises(deployed: Api) -> None:
    chosen = [*LOADED.documented, *LOADED.further]
    seen: list[str] = []
    try:
        outcomes = examples.run(deployed, chosen, seconds=60, report=seen.append)
    finally:
        examples.delete(deployed, chosen)
    wrong = {outcome.placement.pod: outcome.faults for outcome in outcomes if outcome.faults}
    assert wrong == {}, seen
    assert len(outcomes) == 11


@pytest.mark.parametrize(
    "device_class", [c for c in catalog.DEVICE_CLASSES if c.extended_resource], ids=lambda c: c.extended_resource
)
def test_an_extended_resource_gives_its_model(device_class: catalog.DeviceClass, deployed: Api, namespace: str) -> None:
    assert device_class.extended_resource
    workloads.create(deployed, [workloads.pod(namespace, "by-limit", limits={device_class.extended_resource: "1"})])
    found = workloads.running(deployed, namespace, "by-limit")
    assert found.models == set(device_class.models)
    assert [device.kind for device in found.devices] == [device_class.vendor.gpu_type]
    assert found.routes == (device_class.extended_resource,)


@pytest.mark.parametrize("device_class", catalog.DEVICE_CLASSES, ids=lambda c: c.name)
def test_a_device_class_gives_devices_of_its_models_alone(
    device_class: catalog.DeviceClass, deployed: Api, namespace: str
) -> None:
    workloads.create(deployed, workloads.claiming(namespace, "by-claim", device_class.name))
    found = workloads.running(deployed, namespace, "by-claim")
    assert found.models <= set(device_class.models)
    assert [device.kind for device in found.devices] == [device_class.device_type]
    assert found.requests == (f"claim {device_class.name}",)


@pytest.mark.parametrize("domain", catalog.model("h200").nvlink_domains, ids=lambda d: d.name)
def test_a_targeted_nvlink_domain_is_the_one_given(domain: catalog.NvlinkDomain, deployed: Api, namespace: str) -> None:
    selector = f'device.attributes["gpu.nvidia.com"].pcieRoot == "{domain.name}"'
    workloads.create(deployed, workloads.claiming(namespace, "targeted", "nvidia-h200", count=2, selectors=[selector]))
    found = workloads.running(deployed, namespace, "targeted")
    assert found.nvlink_domains == {domain}
    assert len(found.devices) == 2
