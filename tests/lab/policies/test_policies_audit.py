"""`berkelium policies audit` names by owner what runs and would be refused, and leaves the cluster as it was."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from berkelium_cli.policies import policies
from berkelium_infra.policy_source import compose
from berkelium_lab.api import Api
from berkelium_lab.lab import Lab
from berkelium_lab.policy_audit import audit_cluster
from berkelium_lab.policy_trial import MARKER
from berkelium_lab.wait import until
from tests.lab.labs import LabFactory
from tests.lab.policies.conftest import Judge
from tests.lab.policies.world import CONTROLLER, container, pod_spec, workload

TENANT = "before-the-policies"
IDLE = pod_spec(container(gpu=True, command=["sleep", "infinity"]))
INCOMPLETE = pod_spec(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}))


@pytest.fixture(scope="module")
def running(judge: Judge) -> Iterator[Api]:
    """A namespace with good and bad workloads, made while no policy is in force."""
    judge.suspend()
    api = judge.api
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}})
    worker = workload("Pod", IDLE, "worker-0")
    worker["metadata"]["ownerReferences"] = [CONTROLLER]
    objects = (
        workload("Deployment", INCOMPLETE, "limits-only"),
        workload("Job", IDLE, "idle"),
        workload("Deployment", pod_spec(container()), "fine"),
        workload("CronJob", pod_spec(container(gpu=True, resources={}, command=["sleep", "1d"])), "both"),
        worker,
        workload("Pod", IDLE, "interactive"),
    )
    for obj in objects:
        api.create({**obj, "metadata": {**obj["metadata"], "namespace": TENANT}})
    try:
        yield api
    finally:
        api.delete("v1", "Namespace", TENANT)
        judge.install()


def refused(report: dict) -> set[tuple[str, str]]:
    return {(each["owner"], each["policy"]) for each in report["violations"] if each["namespace"] == TENANT}


def test_the_audit_lists_each_owner_with_each_policy_that_would_refuse_it(running: Api) -> None:
    rules = {name: compose.manifests(name)[0] for name in compose.names()}
    report = audit_cluster(running, running, rules, set(compose.exempt_namespaces()))
    assert report.unjudged == []
    assert refused(report.as_json()) == {
        ("Deployment limits-only", "require-resources"),
        ("Job idle", "no-idle-gpu"),
        ("CronJob both", "require-resources"),
        ("CronJob both", "no-idle-gpu"),
        ("RayCluster cluster", "no-idle-gpu"),
    }


def test_the_audit_leaves_no_policy_and_no_namespace_behind(running: Api) -> None:
    rules = {name: compose.manifests(name)[0] for name in compose.names()}
    audit_cluster(running, running, rules, set())
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    left = [
        each["metadata"]["name"] for kind in kinds for each in running.list("admissionregistration.k8s.io/v1", kind)
    ]
    assert [name for name in left if name.startswith(MARKER)] == []
    until(lambda: not _trials(running), "the namespaces of the trial are gone", 60)


def _trials(api: Api) -> list[str]:
    return [n["metadata"]["name"] for n in api.list("v1", "Namespace") if n["metadata"]["name"].startswith(MARKER)]


@pytest.fixture
def lab_name(labs: LabFactory) -> str:
    lab: Lab = labs.up("policies")
    return lab.directory.name


def test_the_command_exits_one_when_something_would_be_refused(running: Api, lab_name: str) -> None:
    assert running
    result = CliRunner().invoke(policies, ["audit", "--name", lab_name, "--json"])
    assert result.exit_code == 1, result.output
    assert ("Job idle", "no-idle-gpu") in refused(json.loads(result.stdout))


def test_the_command_exits_zero_when_nothing_would_be_refused(running: Api, lab_name: str) -> None:
    assert running
    exempt = [argument for name in (TENANT, "team-a", "default") for argument in ("--exempt", name)]
    result = CliRunner().invoke(policies, ["audit", "--name", lab_name, *exempt])
    assert result.exit_code == 0, result.output
    assert "0 refusals." in result.stdout


def test_the_command_exits_two_when_it_cannot_look(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "gone", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    body = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "users": users}
    kubeconfig.write_text(json.dumps(body))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    result = CliRunner().invoke(policies, ["audit", "--context", "gone"])
    assert result.exit_code == 2
    assert "could not be asked" in result.stderr
