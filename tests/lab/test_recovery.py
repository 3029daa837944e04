"""Recovery: kills at seeded points, a wiped cluster, a wrong one, and one that does not answer."""

import gzip
import json
import shutil
import socket
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berkelium_lab import workspace
from berkelium_lab.api import ApiError, connect
from berkelium_lab.engine_home import Home
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from berkelium_lab.project_copy import PROJECT
from tests.lab import etcd
from tests.lab.labs import LabFactory
from tests.lab.test_drift import berkelium
from tests.soak import killing, world
from tests.soak.kill_matrix import NEW

ANSWER_SECONDS = 15
SEED = 20


@pytest.fixture(scope="module")
def undisturbed(labs: LabFactory) -> Lab:
    """A lab to which the program was applied without any disturbance."""
    labs.deployed("operations", settle=False)
    return labs.named("operations")


@pytest.fixture(scope="module")
def expected(undisturbed: Lab) -> world.World:
    """State and objects of the undisturbed run."""
    return {**world.recorded(undisturbed), **world.live(connect(undisturbed.kubeconfig))}


@pytest.fixture
def struck(labs: LabFactory) -> Lab:
    """A lab of these tests' own with the program applied; a test damages it and mends it again."""
    return labs.applied("struck")


def unlike(lab: Lab, expected: world.World, settings: killing.Settings | None = None) -> list[str]:
    """How the lab differs from the undisturbed run."""
    return killing.compared(lab, settings or {}, PROJECT, expected)


def test_a_first_deployment_that_was_killed_recovers_to_what_an_undisturbed_one_makes(
    labs: LabFactory, expected: world.World
) -> None:
    struck = labs.up("begun")
    (point,) = killing.points(SEED, "everything", 1, 24)
    outcome = killing.trial(struck, point, {}, PROJECT, expected)
    assert outcome.struck, f"{point} came too late: {outcome.deployment}"
    assert any("lock" in line for line in outcome.recovery), outcome.recovery
    assert not outcome.differences, f"{point}: {outcome.differences}"


def test_objects_and_a_release_that_the_state_does_not_know_are_taken_in_and_nothing_is_made_twice(
    struck: Lab, expected: world.World
) -> None:
    api = connect(struck.kubeconfig)
    before = api.get("resource.k8s.io/v1", "DeviceClass", "nvidia-h200")
    forget(struck, "DeviceClass::nvidia-h200", "Release::nvidia-dra-driver-gpu")
    lines: list[str] = []
    result = workspace.recover(struck, report=lines.append)
    told = [line for line in lines if line.startswith("taking in what was created but not recorded: ")]
    assert {line.rpartition(": ")[2] for line in told} == {
        "DeviceClass nvidia-h200",
        "Release nvidia-dra-driver-gpu/nvidia-dra-driver-gpu",
    }
    assert "create" not in result.changes, result.changes
    after = api.get("resource.k8s.io/v1", "DeviceClass", "nvidia-h200")
    assert before
    assert after
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    assert not unlike(struck, expected)


def test_a_first_installation_that_died_with_the_provider_is_begun_again(struck: Lab, expected: world.World) -> None:
    """The engine saw it fail and recorded nothing; what is left is Helm's record of an installation in progress."""
    forget(struck, "Release::amd-gpu-operator", "DeviceConfig::berkelium-amd")
    api = connect(struck.kubeconfig)
    (record,) = api.list("v1", "Secret", "kube-amd-gpu", label_selector="owner=helm,status=deployed")
    unfinished = json.loads(gzip.decompress(b64decode(b64decode(record["data"]["release"]))))
    unfinished["info"]["status"] = "pending-install"
    packed = b64encode(b64encode(gzip.compress(json.dumps(unfinished).encode()))).decode()
    change = {"metadata": {"labels": {"status": "pending-install"}}, "data": {"release": packed}}
    api.patch("v1", "Secret", record["metadata"]["name"], change, "kube-amd-gpu")
    lines: list[str] = []
    workspace.recover(struck, report=lines.append)
    told = "forgot an unfinished Helm revision: kube-amd-gpu/amd-gpu-operator revision 1 (pending-install)"
    assert told in lines, lines
    assert world.revisions(api)["amd-gpu-operator"] == ["deployed"]
    assert not unlike(struck, expected)


def test_a_definition_that_the_api_server_died_over_is_served_again(struck: Lab, expected: world.World) -> None:
    etcd.cut_off(struck, "deviceconfigs.amd.com")
    with pytest.raises(ApiError, match="serves no kind 'DeviceConfig'"):
        connect(struck.kubeconfig).list("amd.com/v1alpha1", "DeviceConfig")
    lines: list[str] = []
    workspace.recover(struck, report=lines.append)
    assert "had the API server serve what it was killed over: deviceconfigs.amd.com" in lines, lines
    assert not unlike(struck, expected)


@pytest.mark.parametrize("target", ["engine", pytest.param("kube-apiserver", marks=pytest.mark.long)])
def test_an_upgrade_that_was_killed_recovers_to_what_was_asked_for(struck: Lab, target: str) -> None:
    settings = NEW if target == "engine" else {}
    (point,) = killing.points(SEED, target, 1, 3)
    struck_there, ended = killing.strike(struck, point, settings, PROJECT)
    assert struck_there, f"{point} came too late: {ended}"
    killing.recovered(struck, settings, PROJECT, lambda _: None)
    api = connect(struck.kubeconfig)
    (release,) = [each for each in world.revisions(api) if each == "nvidia-dra-driver-gpu"]
    assert world.revisions(api)[release].count("deployed") == 1
    assert not any(status.startswith("pending") for status in world.revisions(api)[release])
    assert (api.get("resource.k8s.io/v1", "DeviceClass", "extra") is not None) is (settings == NEW)
    preview = workspace.preview(struck, settings, refresh=True)
    assert preview.unchanged, preview.changes


def test_the_stack_of_another_cluster_is_refused_before_the_first_change(wiped: Lab) -> None:
    api = connect(wiped.kubeconfig)
    state, held = resources(wiped), world.live(api)
    for operation in (workspace.preview, workspace.deploy, workspace.recover):
        with pytest.raises(LabError, match="another cluster") as caught:
            operation(wiped)
        assert len(str(caught.value).splitlines()) == 2, caught.value
    with pytest.raises(LabError, match="another cluster"):
        workspace.deploy(wiped, refresh=True)
    with pytest.raises(LabError, match="another cluster"):
        workspace.destroy(wiped)
    assert resources(wiped) == state
    assert not world.differences(held, world.live(api))


def test_a_wiped_cluster_is_built_again_from_the_old_state_by_one_command(wiped: Lab, expected: world.World) -> None:
    done = berkelium("recover", "--name", wiped.name, "--rebuilt")
    assert done.returncode == 0, done.stderr
    assert "the stack belongs to the rebuilt cluster" in done.stderr
    assert not unlike(wiped, expected)
    assert workspace.deploy(wiped).unchanged


@pytest.fixture
def wiped(labs: LabFactory, undisturbed: Lab) -> Lab:
    """A new, empty cluster with another address and other certificates, and the state of the old one."""
    labs.named("wiped").down()
    lab = labs.up("wiped")
    for part in ("pulumi", "project"):
        shutil.copytree(undisturbed.directory / part, lab.directory / part, symlinks=True)
    return lab


@pytest.fixture(params=["nothing listens", "nothing answers"])
def dead_end(request: pytest.FixtureRequest, undisturbed: Lab, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig that leads to a port on which nothing listens, or to one that never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if request.param == "nothing answers":
            listener.listen()
        content = yaml.safe_load(undisturbed.kubeconfig.read_text())
        content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{listener.getsockname()[1]}"
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(content))
        if request.param == "nothing listens":
            listener.close()
        yield path


@pytest.mark.parametrize("operation", ["preview", "deploy", "destroy"])
def test_a_cluster_that_does_not_answer_is_one_line_within_15_seconds_and_the_state_stays(
    undisturbed: Lab, dead_end: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = resources(undisturbed)
    environment = Home.environment
    monkeypatch.setattr(Home, "environment", lambda home: {**environment(home), "KUBECONFIG": str(dead_end)})
    started = time.monotonic()
    with pytest.raises(LabError, match=r"does not answer: .*; nothing was changed") as caught:
        getattr(workspace, operation)(undisturbed)
    seconds = time.monotonic() - started
    assert len(str(caught.value).splitlines()) == 2, caught.value
    assert seconds < ANSWER_SECONDS, f"{seconds:.1f} s"
    assert resources(undisturbed) == state


def forget(lab: Lab, *endings: str) -> None:
    """Take resources out of the state, as a kill between a creation and its record does."""
    path = lab.directory / "pulumi/state/.pulumi/stacks/berkelium-infra/lab.json"
    state = json.loads(path.read_text())
    latest = state["checkpoint"]["latest"]
    gone = {each["urn"] for each in latest["resources"] if each["urn"].endswith(endings)}
    assert len(gone) == len(endings), gone
    latest["resources"] = [_without(each, gone) for each in latest["resources"] if each["urn"] not in gone]
    path.write_text(json.dumps(state))


def _without(resource: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    kept = [urn for urn in resource.get("dependencies") or () if urn not in gone]
    by_property = {
        name: [urn for urn in urns or () if urn not in gone]
        for name, urns in (resource.get("propertyDependencies") or {}).items()
    }
    return {**resource, "dependencies": kept, "propertyDependencies": by_property}


def resources(lab: Lab) -> dict[str, Any]:
    """The resources of the state by URN, without encrypted values: each writing encrypts them anew."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key != "ciphertext"}
        return value

    return {each["urn"]: plain(each) for each in workspace.state(lab)["resources"]}
