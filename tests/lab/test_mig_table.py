"""The MIG table of the user documentation: which profiles exist on which model, and how many fit on one GPU."""

import pytest

from berkelium_lab.api import Api
from berkelium_lab.placement import Inventory, Placement
from tests.lab import workloads
from tests.lab.labs import fresh_namespace

# The documentation's MIG table: the profiles of each model, and the number of instances that one GPU holds.
PROFILES = {
    "NVIDIA B300 SXM6 AC": "1g.34gb 1g.34gb+me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    "NVIDIA H200 NVL": "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    "NVIDIA H100 80GB HBM3": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "NVIDIA A100 80GB PCIe": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
}
INSTANCES = (7, 1, 4, 3, 2, 1, 1)
ROWS = [
    (product, profile, instances)
    for product, names in PROFILES.items()
    for profile, instances in zip(names.split(), INSTANCES, strict=True)
]
IDS = [f"{product} {profile}" for product, profile, _ in ROWS]


def on_one_gpu(namespace: str, name: str, product: str, profile: str, count: int) -> list[dict]:
    """A pod that asks for `count` instances of a profile, all of one GPU of that product."""
    selector = (
        f'device.attributes["gpu.nvidia.com"].profile == "{profile}" && '
        f'device.attributes["gpu.nvidia.com"].productName == "{product}"'
    )
    return workloads.claiming(
        namespace,
        name,
        "mig.nvidia.com",
        count=count,
        selectors=[selector],
        match_attribute="gpu.nvidia.com/parentUUID",
    )


@pytest.fixture(scope="module")
def refusals(deployed: Api) -> list[str]:
    """Per row, the scheduler's answer to one instance more than documented, asked while every GPU is free."""
    with fresh_namespace(deployed) as namespace:
        for index, (product, profile, instances) in enumerate(ROWS):
            workloads.create(deployed, on_one_gpu(namespace, f"row-{index}", product, profile, instances + 1))
        return [workloads.unschedulable(deployed, namespace, f"row-{index}", 120) for index in range(len(ROWS))]


@pytest.fixture(scope="module")
def placements(deployed: Api, refusals: list[str]) -> list[Placement]:
    """Per row, what the documented number of instances was given; all rows are held at once."""
    assert len(refusals) == len(ROWS)
    with fresh_namespace(deployed) as namespace:
        for index, (product, profile, instances) in enumerate(ROWS):
            workloads.create(deployed, on_one_gpu(namespace, f"row-{index}", product, profile, instances))
        return [workloads.running(deployed, namespace, f"row-{index}", 120) for index in range(len(ROWS))]


def test_each_model_publishes_the_documented_profiles_and_no_other(deployed: Api) -> None:
    published: dict[str, set[str]] = {}
    for device in Inventory.read(deployed).devices.values():
        if device.profile:
            assert device.model
            published.setdefault(device.model.title, set()).add(device.profile)
    assert published == {product: set(names.split()) for product, names in PROFILES.items()}


@pytest.mark.parametrize("row", range(len(ROWS)), ids=IDS)
def test_the_documented_number_of_instances_fits_on_one_gpu(row: int, placements: list[Placement]) -> None:
    product, profile, instances = ROWS[row]
    devices = placements[row].devices
    assert [device.profile for device in devices] == [profile] * instances
    assert {device.model.product_name for device in devices if device.model} == {product}
    assert len({device.parent for device in devices}) == 1


@pytest.mark.parametrize("row", range(len(ROWS)), ids=IDS)
def test_one_instance_more_than_documented_does_not_fit(row: int, refusals: list[str]) -> None:
    assert "cannot allocate all claims" in refusals[row]
