"""The commands of the admin's guides for a real cluster, by the `pulumi` command line, on an admin's own stack."""

import os
import re
import signal
from pathlib import Path

import pytest

from berkelium_infra.catalog import DEVICE_CLASSES
from berkelium_lab.api import connect
from berkelium_lab.lab import Lab
from berkelium_lab.project_copy import PROJECT
from berkelium_lab.wait import until
from tests.lab import guides
from tests.lab.admin import Admin
from tests.lab.labs import LabFactory
from tests.lab.test_drift import BINDINGS, CLASSES, DRIVER, PLUGIN
from tests.lab.test_teardown import claims_in_use, holder

GUIDE = PROJECT / "docs" / "operations.md"
NO_CHANGES = "pulumi preview --refresh --run-program --expect-no-changes"


@pytest.fixture(scope="module")
def cluster(labs: LabFactory) -> Lab:
    """The staging cluster."""
    return labs.up("staging")


@pytest.fixture(scope="module")
def staging(cluster: Lab, tmp_path_factory: pytest.TempPathFactory) -> Admin:
    """Whoever looks after it; the stack has not been applied yet."""
    return Admin.of(cluster, tmp_path_factory.mktemp("staging"), "staging")


@pytest.fixture
def applied(staging: Admin) -> Admin:
    """The stack, applied."""
    staging.run("pulumi up --skip-preview")
    return staging


def test_the_everyday_commands_find_nothing_to_do(applied: Admin) -> None:
    for command in guides.commands(PROJECT / "docs" / "admins.md", "Everyday"):
        applied.run(command)


def test_drift_is_shown_and_mended(applied: Admin, cluster: Lab) -> None:
    show, mend = guides.commands(GUIDE, "Drift")
    api = connect(cluster.kubeconfig)
    assert "no objects have drifted" in applied.run(show)
    api.patch(*CLASSES, "nvidia-h200", {"spec": {"selectors": [{"cel": {"expression": "true"}}]}})
    api.delete(*BINDINGS, "require-resources")
    api.delete("apps/v1", "DaemonSet", PLUGIN, DRIVER)
    printed = applied.run(show, code=1)
    assert "DeviceClass nvidia-h200 was changed" in printed
    assert "ValidatingAdmissionPolicyBinding require-resources is gone" in printed
    assert f"DaemonSet {DRIVER}/{PLUGIN} of release {DRIVER} is gone" in printed
    applied.run(mend)
    assert "no objects have drifted" in applied.run(show)
    applied.run(NO_CHANGES)


def test_a_run_that_was_killed_is_recovered_by_one_command(applied: Admin) -> None:
    (command,) = guides.commands(GUIDE, "An interrupted run")
    applied.run("pulumi config set --path nvidia.driverRoot /run/nvidia/driver")
    running = applied.start("pulumi up --skip-preview")
    assert running.stdout
    for line in running.stdout:
        if re.search(r"Release.* updating", line):
            break
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(30)
    assert "is currently locked" in applied.run(command.removesuffix(" --break-lock"), code=1)
    applied.run(command)
    applied.run(NO_CHANGES)
    applied.run("pulumi config rm --path nvidia.driverRoot")


def test_a_state_that_a_kill_made_unreadable_is_told_how_to_be_read_again(cluster: Lab, tmp_path: Path) -> None:
    admin = Admin.of(cluster, tmp_path, "staging")
    admin.environment["PULUMI_BACKEND_URL"] = f"file://{tmp_path}"
    attributes = tmp_path / ".pulumi/stacks/berkelium-infra/staging.json.attrs"
    attributes.touch()
    refusal = admin.run("berkelium drift --stack staging", code=2)
    assert refusal.startswith("Error: stack 'staging' cannot be used: failed to load checkpoint: EOF. With a state in")
    remedy = re.search(r"\((find .*)\)", refusal)
    assert remedy
    admin.run(remedy[1].replace("DIRECTORY", str(tmp_path)))
    assert not attributes.exists()
    assert "the stack's state is empty" in admin.run("berkelium drift --stack staging", code=2)


def test_a_rebuilt_cluster_is_refused_until_it_is_named_and_then_built_again(labs: LabFactory, tmp_path: Path) -> None:
    (command,) = guides.commands(GUIDE, "A rebuilt cluster")
    lab = labs.up("wiped")
    applied = Admin.of(lab, tmp_path, "staging")
    applied.run("pulumi up --skip-preview")
    lab.down()
    rebuilt = labs.up("rebuilt")
    applied.use(rebuilt)
    for operation in ("pulumi preview", "pulumi up --skip-preview", "pulumi destroy --run-program"):
        refusal = applied.run(operation, code=1)
        assert "leads to another cluster" in refusal
        assert "Traceback" not in refusal
    api = connect(rebuilt.kubeconfig)
    assert api.list(*CLASSES) == []
    printed = applied.run(command)
    assert "the stack belongs to the rebuilt cluster" in printed
    assert {each.name for each in DEVICE_CLASSES} <= {each["metadata"]["name"] for each in api.list(*CLASSES)}
    applied.run(NO_CHANGES)


def test_a_guarded_stack_is_destroyed_by_the_program_once_nothing_is_held(labs: LabFactory, tmp_path: Path) -> None:
    (command,) = guides.commands(GUIDE, "Teardown")
    lab = labs.up("prod")
    prod = Admin.of(lab, tmp_path, "prod", protect=False)
    prod.run("pulumi up --skip-preview")
    api = connect(lab.kubeconfig)
    api.create(holder())
    until(lambda: claims_in_use(api), "the pod holds a claim", 60)
    assert "--run-program" in prod.run(command.removesuffix(" --run-program"), code=1)
    assert "my-project/" in prod.run(command, code=1)
    api.delete("v1", "Pod", "holder", "my-project")
    until(lambda: not claims_in_use(api), "the claim is given back", 60)
    prod.run(command)
    assert api.list(*CLASSES) == []
    prod.run("pulumi config set guardDestroy false")
    prod.run("pulumi up --skip-preview")
    prod.run(command.removesuffix(" --run-program"))
    assert api.list(*CLASSES) == []


def test_a_password_is_set_encrypted(tmp_path: Path, cluster: Lab) -> None:
    *plain, secret = guides.commands(GUIDE, "Secrets")
    admin = Admin.of(cluster, tmp_path, "staging")
    for command in plain:
        admin.run(command)
    admin.run(f"echo Hidden1 | {secret}")
    file = (admin.project / "Pulumi.staging.yaml").read_text()
    assert "secure:" in file
    assert "Hidden1" not in file
    assert "Hidden1" not in admin.run("pulumi config")
    assert "is right" in admin.run("berkelium config check staging")
