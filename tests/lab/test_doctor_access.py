"""The doctor through a read-only identity, on an API server with gates switched off, and as a command."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from berkelium_cli.doctor import doctor as command
from berkelium_cli.main import cli
from berkelium_lab.api import Api, connect
from berkelium_lab.doctor import COULD_NOT_LOOK, from_defaults
from berkelium_lab.lab import Lab
from berkelium_lab.wait import NotYet, until
from tests.lab.api_servers import another_api_server, kubeconfig_of
from tests.lab.doctor_faults import Doctor, added, device_class, on
from tests.lab.labs import LabFactory
from tests.lab.workloads import pod

PAGE = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"
READER = "doctor-reader"


@pytest.fixture(scope="module")
def doctor(lab: Lab, deployed: Api) -> Iterator[Doctor]:
    """The doctor on the main lab, which is healthy before and after."""
    with on(lab, deployed) as doctor:
        yield doctor


@contextmanager
def reader(lab: Lab, api: Api, rules: list[dict], directory: Path) -> Iterator[Path]:
    """The kubeconfig of a service account with these rights."""
    subject = {"kind": "ServiceAccount", "name": READER, "namespace": "default"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": READER, "namespace": "default"}}
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": READER}, "rules": rules}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": READER}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": READER},
        "roleRef": reference,
        "subjects": [subject],
    }
    with added(api, account, role, binding):
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/default/serviceaccounts/{READER}/token"
        token = api.raw("POST", path, body=request)["status"]["token"]
        yield kubeconfig_of(lab, directory / "reader", user={"token": token})


def rule(verbs: list[str], groups: list[str], resources: list[str]) -> dict:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def lacks_only(doctor: Doctor, missing: dict[str, str]) -> None:
    """Wait until exactly these examinations are not possible, each for want of that permission."""

    def probe() -> bool:
        found = {
            finding.subject.removeprefix("examination/"): finding.remedy.partition(": ")[2].partition(";")[0]
            for finding in doctor.findings()
            if finding.id == COULD_NOT_LOOK
        }
        if found != missing:
            raise NotYet(str(found))
        return True

    until(probe, "the doctor names what is missing, and nothing else", 30)


def test_who_may_only_read_sees_all_but_what_needs_a_dry_run(
    lab: Lab, doctor: Doctor, namespace: str, tmp_path: Path
) -> None:
    everything = [rule(["get", "list"], ["*"], ["*"])]
    with added(doctor.api, pod(namespace, "works")), reader(lab, doctor.api, everything, tmp_path) as kubeconfig:
        limited = Doctor(connect(kubeconfig), doctor.expectation)
        dry_runs = {
            "policies_refuse": "create on pods in namespace my-project",
            "running_workloads": f"create on pods in namespace {namespace}",
        }
        lacks_only(limited, dry_runs)


DEFINED = ("amd.com", "nfd.k8s-sigs.io", "apiextensions.k8s.io")
"""API groups of custom resources, and of their definitions."""


def test_who_may_not_read_secrets_and_policies_is_told_so_and_the_rest_is_examined(
    lab: Lab, doctor: Doctor, tmp_path: Path
) -> None:
    view = [
        rule(["get", "list"], [""], ["pods", "nodes", "namespaces", "resourcequotas", "replicationcontrollers"]),
        rule(["get", "list"], ["apps", "batch", *DEFINED, "resource.k8s.io"], ["*"]),
    ]
    with reader(lab, doctor.api, view, tmp_path) as kubeconfig:
        limited = Doctor(connect(kubeconfig), doctor.expectation)
        policies = "list on validatingadmissionpolicies.admissionregistration.k8s.io"
        missing = {
            "admission_policies": policies,
            "policies_refuse": policies,
            "running_workloads": policies,
            "helm_releases": "list on secrets in namespace kube-amd-gpu",
            "driver_faults": "list on secrets in namespace kube-amd-gpu",
        }
        lacks_only(limited, missing)


def test_gates_that_are_off_are_found_by_probing(labs: LabFactory, tmp_path: Path) -> None:
    with another_api_server(labs.up("gates"), tmp_path, "--emulated-version=1.35") as old:
        found = Doctor(old, from_defaults()).problems()
    assert {problem for problem in found if problem[1].startswith("gate-")} == {
        ("error", "gate-partitionable-devices", "gate/DRAPartitionableDevices"),
        ("error", "gate-extended-resource", "gate/DRAExtendedResource"),
    }


def test_the_identity_of_the_page_sees_everything(lab: Lab, doctor: Doctor, namespace: str, tmp_path: Path) -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with (
        added(doctor.api, pod(namespace, "works")),
        reader(lab, doctor.api, yaml.safe_load(block)["rules"], tmp_path) as kubeconfig,
    ):
        lacks_only(Doctor(connect(kubeconfig), doctor.expectation), {})


COMMANDS = re.findall(r"^    berkelium (doctor.*)$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.usefixtures("doctor")
@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_page_work(line: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(lab.kubeconfig))
    context = yaml.safe_load(lab.kubeconfig.read_text())["current-context"]
    words = line.replace("NAME", context).replace("STACK", "lab").split()
    result = CliRunner().invoke(cli, words if "--context" in words else [*words, "--name", lab.name])
    # The deployed policies deny; a page that says otherwise by --mode has to be told so.
    assert result.exit_code == (1 if "--mode" in words else 0), result.output


@pytest.mark.usefixtures("doctor")
def test_the_command_says_of_a_healthy_lab_that_it_is_healthy(lab: Lab) -> None:
    result = CliRunner().invoke(command, ["--name", lab.name, "--json", "--quiet"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["findings"] == []


def test_the_command_fails_on_a_lab_with_a_fault(lab: Lab, doctor: Doctor) -> None:
    with added(doctor.api, device_class("odd", "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'")):
        result = CliRunner().invoke(command, ["--name", lab.name, "--quiet"])
    assert result.exit_code == 1
    assert result.stdout.startswith("error    class-stumbles  deviceclass/odd\n")


def test_the_command_says_in_one_line_that_there_is_no_such_lab() -> None:
    result = CliRunner().invoke(command, ["--name", "no-such-lab"])
    assert result.exit_code == 2
    assert (
        result.stderr == "Error: there is no lab 'no-such-lab'; start it with `berkelium lab up --name no-such-lab`\n"
    )
