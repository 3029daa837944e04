"""The doctor on Helm releases, by the records that Helm keeps."""

import pytest

from tests.unit.doctor_world import healthy, helm_secret

SPACE = NAME = "node-feature-discovery"
SUBJECT = f"release/{SPACE}/{NAME}"


def test_a_missing_release_is_an_error() -> None:
    world = healthy()
    world.remove("Secret", f"sh.helm.release.v1.{NAME}.v1")
    assert world.problems() == {("error", "release-missing", SUBJECT)}


@pytest.mark.parametrize("status", ["pending-install", "pending-upgrade", "pending-rollback"])
def test_a_release_that_is_pending_is_an_error_with_the_way_out(status: str) -> None:
    world = healthy()
    world.add(helm_secret(SPACE, NAME, NAME, "0.18.3", status, revision=2))
    assert world.problems() == {("error", "release-pending", SUBJECT)}
    found = world.only("release-pending")
    assert f"kubectl -n {SPACE} delete secret -l 'owner=helm,name={NAME},status in (pending-install," in found.remedy
    assert found.evidence == (f"revision 2, status {status} since 2026-11-01T00:00:00Z: what happened",)


@pytest.mark.parametrize(("status", "id"), [("failed", "release-failed"), ("uninstalling", "release-not-deployed")])
def test_a_release_that_is_not_deployed_is_an_error(status: str, id: str) -> None:
    world = healthy()
    world.add(helm_secret(SPACE, NAME, NAME, "0.18.3", status, revision=10))
    assert world.problems() == {("error", id, SUBJECT)}


def test_the_newest_revision_counts_by_number_not_by_name() -> None:
    world = healthy()
    world.add(helm_secret(SPACE, NAME, NAME, "0.18.3", "failed", revision=9))
    world.add(helm_secret(SPACE, NAME, NAME, "0.18.3", "deployed", revision=10))
    assert world.problems() == set()


def test_another_version_than_the_configured_one_is_an_error_and_an_unlisted_one_a_warning() -> None:
    world = healthy()
    world.add(helm_secret(SPACE, NAME, NAME, "0.17.0", revision=2))
    assert world.problems() == {("error", "release-version", SUBJECT), ("warning", "release-version-unknown", SUBJECT)}
    assert "0.17.0" in world.only("release-version").summary


def test_a_second_release_of_the_same_chart_is_an_error() -> None:
    world = healthy()
    world.add(helm_secret("kube-system", "nfd", NAME, "0.18.3"))
    assert world.problems() == {("error", "release-duplicate", SUBJECT)}
    assert world.only("release-duplicate").evidence == ("release nfd in namespace kube-system",)


def test_releases_of_other_charts_are_no_concern() -> None:
    world = healthy()
    world.add(helm_secret("monitoring", "prometheus", "prometheus", "1.2.3", "failed"))
    assert world.problems() == set()


@pytest.mark.parametrize("data", [{}, {"release": "bm90IGhlbG0="}, {"release": "!"}, {"release": "SDRzSUFBQUE="}])
def test_a_record_that_is_no_release_is_a_warning(data: dict[str, str]) -> None:
    world = healthy()
    secret = helm_secret("default", "odd", "odd", "1")
    secret["data"] = data
    world.add(secret)
    assert world.problems() == {("warning", "release-unreadable", "secret/default/sh.helm.release.v1.odd.v1")}


def test_a_known_fault_of_the_driver_is_told_with_the_nodes_that_meet_it() -> None:
    found = healthy().only("driver-fault")
    assert found.severity == "info"
    assert found.evidence == ("nodes: a100-1",)


def test_a_fault_that_no_node_meets_is_not_told() -> None:
    world = healthy()
    world.one("Node", "a100-1")["metadata"]["labels"]["berkelium.io/dynamic-mig"] = "false"
    assert [f for f in world.findings() if f.id == "driver-fault"] == []


def test_who_may_read_secrets_nowhere_is_told_the_permission() -> None:
    world = healthy()
    world.forbidden.add(("list", "Secret"))
    found = [f for f in world.findings() if f.id == "could-not-look"]
    assert {f.subject for f in found} == {"examination/helm_releases", "examination/driver_faults"}
    assert all(f.remedy == "Grant this identity: list on secrets; or run the doctor with another one." for f in found)
