"""A fleet whose driver publishes only what upstream does: which forms of an NVLink claim hold there."""

import pytest

from berkelium_infra.catalog import model
from berkelium_lab.api import Api
from berkelium_lab.examples import Example, load
from tests.lab import workloads
from tests.lab.labs import LabFactory, fresh_namespace

H200 = model("h200")


@pytest.fixture(scope="module")
def upstream(labs: LabFactory) -> Api:
    """A lab with the upstream fleet and the program applied."""
    return labs.deployed("upstream", fleet="upstream")


def example(pod: str) -> list[dict]:
    """The objects of the example that has this pod."""
    found: list[Example] = [e for e in (*load().documented, *load().further) if pod in e.pods]
    return found[0].objects()


def in_namespace(objects: list[dict], namespace: str) -> list[dict]:
    """The same objects in another namespace."""
    return [{**obj, "metadata": {**obj["metadata"], "namespace": namespace}} for obj in objects]


def test_no_attribute_of_the_upstream_driver_names_the_domain(upstream: Api) -> None:
    domain_names = {domain.name for domain in H200.nvlink_domains}
    for piece in upstream.list("resource.k8s.io/v1", "ResourceSlice"):
        for device in piece["spec"].get("devices", []):
            assert "pcieRoot" not in device["attributes"]
            values = {str(next(iter(value.values()))) for value in device["attributes"].values()}
            assert not values & domain_names


def test_the_documented_selector_is_an_error_on_the_upstream_fleet(upstream: Api) -> None:
    with fresh_namespace(upstream) as namespace:
        workloads.create(upstream, in_namespace(example("h200-nvlink-pod"), namespace))
        message = workloads.unschedulable(upstream, namespace, "h200-nvlink-pod")
    assert "no such key: pcieRoot" in message


def test_one_root_for_four_gpus_can_never_be_met_with_one_root_per_gpu(upstream: Api) -> None:
    with fresh_namespace(upstream) as namespace:
        workloads.create(
            upstream,
            workloads.claiming(
                namespace, "matched", "nvidia-h200", count=4, match_attribute="resource.kubernetes.io/pcieRoot"
            ),
        )
        assert "cannot allocate all claims" in workloads.unschedulable(upstream, namespace, "matched")


def test_the_any_fleet_form_gives_one_domain_on_the_upstream_fleet(upstream: Api) -> None:
    with fresh_namespace(upstream) as namespace:
        workloads.create(upstream, in_namespace(example("h200-nvlink-any-fleet-pod"), namespace))
        found = workloads.running(upstream, namespace, "h200-nvlink-any-fleet-pod")
    assert len(found.devices) == 4
    assert len(found.nvlink_domains) == 1


def test_the_any_fleet_form_gives_one_domain_on_the_berkelium_fleet(deployed: Api, namespace: str) -> None:
    workloads.create(deployed, in_namespace(example("h200-nvlink-any-fleet-pod"), namespace))
    found = workloads.running(deployed, namespace, "h200-nvlink-any-fleet-pod")
    assert len(found.devices) == 4
    assert len(found.nvlink_domains) == 1
