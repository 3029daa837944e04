"""The doctor on Kubernetes itself: version, feature gates, known faults."""

import pytest

from berkelium_infra.settings import Settings
from berkelium_lab.doctor.cluster import parse_version
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Severity
from berkelium_lab.doctor.scheduler_faults import SCHEDULER_FAULTS
from tests.unit.doctor_world import healthy


def test_a_healthy_cluster_has_no_finding_but_infos() -> None:
    assert healthy().problems() == set()


def test_a_healthy_cluster_shows_its_version_releases_and_plugins_and_known_faults() -> None:
    ids = {finding.id for finding in healthy().findings()}
    assert ids == {"kubernetes-version", "release", "plugin-ready", "scheduler-fault", "driver-fault"}


def test_the_doctor_creates_nothing_but_by_dry_run() -> None:
    world = healthy()
    list(world.findings())
    assert {obj["kind"] for obj in world.created} == {"DeviceClass", "ResourceSlice", "Pod"}


def test_a_server_that_drops_the_extended_resource_is_found_by_probing() -> None:
    world = healthy()
    world.drops.add("extendedResourceName")
    assert world.problems() == {("error", "gate-extended-resource", "gate/DRAExtendedResource")}


def test_a_server_that_drops_shared_counters_is_found_by_probing() -> None:
    world = healthy()
    world.drops.add("sharedCounters")
    assert world.problems() == {("error", "gate-partitionable-devices", "gate/DRAPartitionableDevices")}


def test_shared_counters_are_not_asked_for_where_nothing_is_partitioned() -> None:
    world = healthy()
    world.drops.add("sharedCounters")
    settings = Settings.model_validate({"projectNamespaces": ["my-project"], "nvidia": {"dynamicMigModels": []}})
    assert world.problems(Expectation(settings)) == set()


def test_before_1_35_counters_are_probed_together_with_devices() -> None:
    world = healthy()
    world.version = "v1.34.3"
    list(world.findings())
    (probe,) = (obj for obj in world.created if obj["kind"] == "ResourceSlice")
    assert {"devices", "sharedCounters"} <= set(probe["spec"])


def test_who_may_not_probe_takes_what_is_stored_as_the_sign() -> None:
    world = healthy()
    world.forbidden |= {("create", "DeviceClass"), ("create", "ResourceSlice")}
    assert world.problems() == set()


def test_without_probe_and_without_anything_stored_the_doctor_says_that_it_cannot_know() -> None:
    world = healthy()
    world.forbidden.add(("create", "DeviceClass"))
    for one in world.objects["DeviceClass"]:
        one["spec"].pop("extendedResourceName", None)
    found = [f for f in world.findings() if f.id == "could-not-look"]
    assert [f.subject for f in found] == ["examination/extended_resource_gate"]
    assert "create on deviceclasss" in found[0].remedy


@pytest.mark.parametrize(("reason", "problems"), [("InitialNamesAccepted", 0), ("Installing", 1)])
def test_a_definition_that_was_accepted_and_is_not_served_is_an_error(reason: str, problems: int) -> None:
    world = healthy()
    condition = {"type": "Established", "status": "False", "reason": reason}
    world.add(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "status": {"conditions": [condition]},
        }
    )
    error = ("error", "definition-not-served", "customresourcedefinition/things.example.com")
    assert list(world.problems()) == [error] * problems


def test_a_cluster_without_the_resource_api_is_too_old() -> None:
    world = healthy()
    world.version = "v1.33.1"
    world.unknown |= {"DeviceClass", "ResourceSlice"}
    assert ("error", "kubernetes-too-old", "kubernetes/v1.33.1") in world.problems()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1.37.2", (1, 37, 2)),
        ("v1.35.4-gke.1200", (1, 35, 4)),
        ("v1.34.3+k3s1", (1, 34, 3)),
        ("1.38.0-beta.0", (1, 38, 0)),
    ],
)
def test_versions_of_vendors_are_understood(text: str, version: tuple[int, int, int]) -> None:
    assert parse_version(text) == version


# The releases that were compared in Kubernetes' source.
@pytest.mark.parametrize(
    ("issue", "affected", "good"),
    [
        ("#138882", ["v1.36.2"], ["v1.36.3", "v1.37.2", "v1.35.4"]),
        ("PR #140431", ["v1.36.2", "v1.37.1"], ["v1.36.3", "v1.37.2"]),
        ("PR #138917", ["v1.36.3"], ["v1.37.2"]),
        ("#133488", ["v1.34.3"], ["v1.35.4", "v1.37.2"]),
        ("#141103", ["v1.37.2", "v1.36.3"], ["v1.38.0"]),
    ],
)
def test_a_fault_of_the_scheduler_is_told_for_the_releases_that_have_it(
    issue: str, affected: list[str], good: list[str]
) -> None:
    (fault,) = (fault for fault in SCHEDULER_FAULTS if fault.issue == issue)
    told = [text for text in (*affected, *good) if fault.affects(parse_version(text))]
    assert told == affected


def test_a_fault_that_an_upgrade_of_the_patch_mends_is_a_warning() -> None:
    world = healthy()
    world.version = "v1.37.1"
    found = [f for f in world.findings() if f.id == "scheduler-fault" and f.severity is Severity.WARNING]
    assert [f.summary for f in found] == [
        "A leaked counter reservation keeps a pod pending although its devices are free. (kubernetes PR #140431)"
    ]
