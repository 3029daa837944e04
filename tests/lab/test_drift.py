"""Drift: what was changed by hand is shown with old and new, and mended by the program, inside Helm releases too."""

import json
import shlex
import subprocess
import sys
from typing import Any

import pytest

from berkelium_lab import workspace
from berkelium_lab.api import JSON_PATCH, Api, connect
from berkelium_lab.drift import Drift
from berkelium_lab.lab import Lab
from tests.lab.labs import LabFactory

DRIVER = "nvidia-dra-driver-gpu"
PLUGIN = "nvidia-dra-driver-gpu-kubelet-plugin"
BINDINGS = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")
CLASSES = ("resource.k8s.io/v1", "DeviceClass")


@pytest.fixture(scope="module")
def stack(labs: LabFactory) -> Lab:
    """A lab with the program applied, which these tests change by hand and mend."""
    labs.deployed("operations", settle=False)
    return labs.named("operations")


@pytest.fixture
def cluster(stack: Lab) -> Api:
    """The API of that lab."""
    return connect(stack.kubeconfig)


def berkelium(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, run as a user runs it."""
    command = [sys.executable, "-c", "from berkelium_cli.main import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def drift(lab: Lab) -> tuple[int, Drift]:
    """Exit code and findings of the command."""
    done = berkelium("drift", "--name", lab.name, "--json")
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, Drift.model_validate_json(done.stdout)


def image(api: Api) -> str:
    """The image that the kubelet plugin's DaemonSet names."""
    return _plugin(api)["spec"]["template"]["spec"]["containers"][0]["image"]


def _plugin(api: Api) -> dict[str, Any]:
    found = api.get("apps/v1", "DaemonSet", PLUGIN, DRIVER)
    assert found, "the kubelet plugin's DaemonSet is gone"
    return found


def test_what_was_just_applied_has_not_drifted(stack: Lab) -> None:
    code, found = drift(stack)
    assert (code, found.findings) == (0, ())
    assert found.compared > 15


def test_each_change_by_hand_is_shown_with_old_and_new_and_all_of_them_are_mended(stack: Lab, cluster: Api) -> None:
    selectors = cluster.get(*CLASSES, "nvidia-h200")["spec"]["selectors"]  # pyright: ignore[reportOptionalSubscript]
    applied = image(cluster)
    cluster.patch(*CLASSES, "nvidia-h200", {"spec": {"selectors": [{"cel": {"expression": "true"}}]}})
    cluster.delete(*BINDINGS, "require-resources")
    edit = [
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.com/other:1"},
        {"op": "add", "path": "/spec/template/spec/nodeSelector/added", "value": "by-hand"},
    ]
    cluster.patch("apps/v1", "DaemonSet", PLUGIN, edit, DRIVER, JSON_PATCH)
    code, found = drift(stack)
    assert code == 1
    seen = {(each.kind, each.name): each for each in found.findings}
    changed = seen.pop(("DeviceClass", "nvidia-h200")).differences
    assert [(each.path, each.declared, each.found) for each in changed] == [
        ("spec.selectors", selectors, [{"cel": {"expression": "true"}}])
    ]
    assert seen.pop(("ValidatingAdmissionPolicyBinding", "require-resources")).gone
    inside = seen.pop(("DaemonSet", PLUGIN))
    assert inside.release == DRIVER
    assert {each.path: (each.declared, each.found) for each in inside.differences} == {
        "spec.template.spec.containers[gpus].image": (applied, "example.com/other:1"),
        "spec.template.spec.nodeSelector.added": (None, "by-hand"),
    }
    assert not seen

    mended = berkelium("lab", "deploy", "--name", stack.name, "--refresh")
    assert mended.returncode == 0, mended.stderr
    assert f"DaemonSet {DRIVER}/{PLUGIN} was edited" in mended.stderr
    assert drift(stack)[1].findings == ()
    assert cluster.get(*CLASSES, "nvidia-h200")["spec"]["selectors"] == selectors  # pyright: ignore[reportOptionalSubscript]
    assert image(cluster) == applied
    assert "added" not in _plugin(cluster)["spec"]["template"]["spec"]["nodeSelector"]
    assert workspace.deploy(stack).unchanged
    assert workspace.preview(stack, refresh=True).unchanged


def test_a_daemonset_of_a_release_that_was_deleted_is_shown_and_comes_back(stack: Lab, cluster: Api) -> None:
    cluster.delete("apps/v1", "DaemonSet", PLUGIN, DRIVER)
    code, found = drift(stack)
    assert code == 1
    assert [(each.kind, each.name, each.release, each.gone) for each in found.findings] == [
        ("DaemonSet", PLUGIN, DRIVER, True)
    ]
    workspace.deploy(stack)
    assert _plugin(cluster)
    assert workspace.deploy(stack).unchanged


def test_a_field_that_was_added_to_a_class_is_shown_with_the_command_that_removes_it(stack: Lab, cluster: Api) -> None:
    cluster.patch(*CLASSES, "mig.nvidia.com", {"spec": {"extendedResourceName": "example.com/by-hand"}})
    code, found = drift(stack)
    assert code == 1
    (finding,) = found.findings
    assert [(each.path, each.declared, each.found) for each in finding.differences] == [
        ("spec.extendedResourceName", None, "example.com/by-hand")
    ]
    assert finding.removal
    *command, operations = shlex.split(finding.removal)
    assert command == ["kubectl", "patch", "deviceclass", "mig.nvidia.com", "--type=json", "-p"]
    cluster.patch(*CLASSES, "mig.nvidia.com", json.loads(operations), content_type=JSON_PATCH)
    assert drift(stack)[1].findings == ()


def test_a_rolling_restart_is_no_drift(stack: Lab, cluster: Api) -> None:
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    cluster.patch(
        "apps/v1", "DaemonSet", PLUGIN, {"spec": {"template": {"metadata": {"annotations": restarted}}}}, DRIVER
    )
    assert drift(stack)[1].findings == ()


def test_a_lab_without_a_stack_cannot_be_compared(labs: LabFactory) -> None:
    name = labs.named("never-deployed").name
    done = berkelium("drift", "--name", name)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert json.dumps(name)[1:-1] in done.stderr
