"""The program applied by the real engine: idempotent, interruptible, and gone without a trace."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from berkelium_lab import processes, workspace
from berkelium_lab.api import UNKNOWN_KIND, Api, ApiError, connect
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from berkelium_lab.project_copy import PARTS, PROJECT
from berkelium_lab.wait import NotYet, until
from berkelium_lab.workspace import DeployResult
from tests.lab.labs import LabFactory

CLUSTER_KINDS = (
    ("v1", "Namespace"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule"),
    ("amd.com/v1alpha1", "DeviceConfig"),
)


@pytest.fixture(scope="module")
def empty(labs: LabFactory) -> Lab:
    """A lab of this module's own, to which nothing has been applied yet."""
    return labs.up("deploy")


@pytest.fixture(scope="module")
def before(empty: Lab) -> set[tuple[str, str]]:
    """What the cluster held before the program was applied."""
    return held(connect(empty.kubeconfig))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, so that nobody's edit during the run counts as a difference."""
    return copied(PROJECT, tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def first(empty: Lab, project: Path, before: set[tuple[str, str]]) -> DeployResult:  # noqa: ARG001
    """The result of the first deployment."""
    return workspace.deploy(empty, project=project)


@pytest.fixture
def applied(empty: Lab, project: Path, first: DeployResult) -> Lab:  # noqa: ARG001
    """The lab with the program applied, whatever a test before has left of it."""
    if not connect(empty.kubeconfig).get("v1", "Namespace", "my-project"):
        workspace.deploy(empty, project=project)
    return empty


def copied(project: Path, to: Path) -> Path:
    """`to`, with everything of the project in it that is applied."""
    for part in (*PARTS, "Pulumi.lab.yaml"):
        source, target = project / part, to / part
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return to


def held(api: Api) -> set[tuple[str, str]]:
    """Kind and name of every cluster-wide object of the kinds that the program or its charts make."""
    found: set[tuple[str, str]] = set()
    for api_version, kind in CLUSTER_KINDS:
        try:
            found |= {(kind, each["metadata"]["name"]) for each in api.list(api_version, kind)}
        except ApiError as error:
            if error.reason != UNKNOWN_KIND:
                raise
    return found


def test_the_first_deployment_creates_everything_and_tells_what(first: DeployResult) -> None:
    assert set(first.changes) == {"create"}
    assert first.outputs["versions"]["nvidia-dra-driver-gpu"] == "25.12.0"
    assert first.outputs["deviceClasses"]["gpu.nvidia.com"] == "nvidia.com/gpu"
    assert first.outputs["deviceClasses"]["mig.nvidia.com"] is None
    assert first.outputs["policies"] == {"no-idle-gpu": "deny", "require-resources": "deny"}


def test_a_second_deployment_changes_nothing(applied: Lab, project: Path) -> None:
    assert workspace.deploy(applied, project=project).unchanged


def test_a_refresh_finds_nothing_changed_and_so_does_the_deployment_after_it(applied: Lab, project: Path) -> None:
    assert workspace.refresh(applied).unchanged
    assert workspace.preview(applied, refresh=True, project=project).unchanged
    assert workspace.deploy(applied, project=project).unchanged


def test_the_same_project_in_another_directory_changes_nothing(applied: Lab, project: Path, tmp_path: Path) -> None:
    assert workspace.deploy(applied, project=copied(project, tmp_path)).unchanged


def test_the_stack_files_of_the_project_are_not_written(applied: Lab, project: Path) -> None:
    before = {path: path.read_bytes() for path in project.glob("Pulumi*.yaml")}
    workspace.preview(applied, {"charts": {"timeoutSeconds": 500}}, project=project)
    assert {path: path.read_bytes() for path in project.glob("Pulumi*.yaml")} == before
    assert "encryptionsalt" not in (project / "Pulumi.lab.yaml").read_text()


def test_neither_a_kubeconfig_nor_a_credential_of_it_is_in_the_state(applied: Lab) -> None:
    state = "".join(path.read_text() for path in (applied.directory / "pulumi" / "state").rglob("*.json"))
    assert "nvidia-dra-driver-gpu" in state
    assert str(applied.kubeconfig) not in state
    assert "client-key-data" not in state
    assert "client-certificate-data" not in state


def test_a_changed_setting_is_a_difference_that_is_applied_and_taken_back(applied: Lab, project: Path) -> None:
    changed = {"nvidia": {"driverRoot": "/run/nvidia/driver"}}
    assert workspace.preview(applied, changed, project=project).changes["update"] == 1
    assert workspace.deploy(applied, changed, project=project).changes["update"] == 1
    assert workspace.deploy(applied, project=project).changes["update"] == 1


def test_bad_settings_are_one_message_with_every_fault_and_touch_nothing(applied: Lab, project: Path) -> None:
    bad = {"nvidia": {"drverRoot": "/", "featureGates": {"MPSSupport": True}}, "exemptNamespaces": ["kube-*"]}
    with pytest.raises(LabError) as caught:
        workspace.deploy(applied, bad, project=project)
    text = str(caught.value)
    for key in ("nvidia.drverRoot", "nvidia.featureGates.MPSSupport", "exemptNamespaces[0]"):
        assert text.count(f"{key}: ") == 1, text
    assert "Traceback" not in text
    assert workspace.preview(applied, project=project).unchanged


def test_an_error_of_the_api_server_is_shown_without_a_traceback(applied: Lab, project: Path) -> None:
    bad = {"extraDeviceClasses": [{"name": "bad", "selector": 'device.driver == "x" && nonsense(('}]}
    with pytest.raises(LabError) as caught:
        workspace.preview(applied, bad, project=project)
    text = str(caught.value)
    assert "spec.selectors[0].cel.expression" in text
    for noise in ("Traceback", "grpc", "urn:pulumi", "/site-packages/"):
        assert noise not in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_engine_in_order_and_the_next_deployment_goes_on(
    applied: Lab, project: Path, number: signal.Signals
) -> None:
    with RunningDeploy(applied, project, {"nvidia": {"driverRoot": "/interrupted"}}) as (deploy, wait_for):
        wait_for("update Release nvidia-dra-driver-gpu")
        deploy.send_signal(number)
        assert deploy.wait(90) == 1
    assert engine_processes(applied) == []
    workspace.deploy(applied, project=project)


def test_while_one_operation_runs_another_is_refused(applied: Lab, project: Path) -> None:
    with RunningDeploy(applied, project, {}) as (deploy, wait_for):
        wait_for("engine")
        with pytest.raises(LabError, match="another deploy, refresh or destroy"):
            workspace.deploy(applied, project=project)
        assert deploy.wait(120) == 0


def test_a_killed_deployment_is_cleared_up_by_the_next_one(applied: Lab, project: Path) -> None:
    with RunningDeploy(applied, project, {"nvidia": {"driverRoot": "/killed"}}) as (deploy, wait_for):
        wait_for("update Release nvidia-dra-driver-gpu")
        deploy.kill()
        for process in engine_processes(applied):
            process.kill()
        deploy.wait(10)
    lines: list[str] = []
    workspace.deploy(applied, report=lines.append, project=project)
    assert any("an earlier run was killed" in line for line in lines)
    assert engine_processes(applied) == []
    again = workspace.deploy(applied, project=project)
    assert again.unchanged
    assert not any("pending operations" in warning for warning in again.warnings)


def test_a_lab_that_does_not_run_is_told_how_to_start() -> None:
    with pytest.raises(LabError, match="berkelium lab up --name never-started"):
        workspace.deploy(Lab("never-started"))


def test_destroy_leaves_nothing_but_custom_resource_definitions(applied: Lab, before: set[tuple[str, str]]) -> None:
    result = workspace.destroy(applied)
    assert set(result.changes) == {"delete"}
    api = connect(applied.kubeconfig)

    def gone() -> bool:
        if left := held(api) - before:
            raise NotYet(f"still there: {sorted(left)}")
        return True

    until(gone, "nothing of the program is left in the cluster", 30)
    assert before - held(api) == set()
    assert engine_processes(applied) == []


def engine_processes(lab: Lab) -> list[Any]:
    """Processes of the lab that belong to the engine."""
    return [
        p
        for p in processes.belonging_to(lab.directory)
        if "pulumi" in p.name() or "berkelium_lab.engine" in p.cmdline()
    ]


class RunningDeploy:
    """A deployment in a process of its own, for tests that signal it; killed at the end if it still runs.

    Gives the process and a function that waits until its output has a text (or, for "engine", until the engine runs).
    """

    def __init__(self, lab: Lab, project: Path, settings: dict[str, object]) -> None:
        self._lab = lab
        self._code = (
            "import sys\n"
            "from berkelium_lab import workspace\n"
            "from berkelium_lab.lab import Lab\n"
            "from berkelium_infra.errors import UserError\n"
            "from pathlib import Path\n"
            "def say(line): print(line, flush=True)\n"
            f"try: workspace.deploy(Lab({lab.name!r}), {settings!r}, report=say, project=Path({str(project)!r}))\n"
            "except UserError as error: sys.exit(str(error))\n"
        )

    def __enter__(self) -> tuple[subprocess.Popen[str], Callable[[str], None]]:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._code], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        return self._process, self._wait_for

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait(10)

    def _wait_for(self, text: str) -> None:
        if text == "engine":
            until(lambda: engine_processes(self._lab), "the engine runs", 30)
            return
        seen = []
        for line in self._lines():
            seen.append(line)
            if text in line:
                return
        raise AssertionError(f"{text!r} was never said; seen: {seen}")

    def _lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        yield from self._process.stdout
