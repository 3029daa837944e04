"""The policies on the oldest Kubernetes that the cluster may run: an API server that behaves as 1.34."""

from collections.abc import Iterator

import pytest

from berkelium_infra.policy_source import compose
from berkelium_lab.api import Api
from tests.lab.api_servers import another_api_server
from tests.lab.labs import LabFactory
from tests.lab.policies.conftest import TENANT, Judge
from tests.lab.policies.world import commands, documents, job, samples

OLDEST = "1.34"


@pytest.fixture(scope="module")
def old_api(labs: LabFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A second API server on the etcd of a lab, limited to what Kubernetes 1.34 has, CEL functions included."""
    directory = tmp_path_factory.mktemp("old")
    with another_api_server(labs.up("gates"), directory, f"--emulated-version={OLDEST}") as api:
        yield api


@pytest.fixture(scope="module")
def old_judge(old_api: Api) -> Iterator[Judge]:
    """The policies, live on the old API server."""
    judge = Judge(old_api)
    old_api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}})
    judge.install()
    yield judge
    judge.suspend()


def test_the_server_behaves_as_the_oldest_version(old_api: Api) -> None:
    version = old_api.raw("GET", "/version")
    assert f"{version['emulationMajor']}.{version['emulationMinor']}" == OLDEST


@pytest.mark.parametrize("policy", compose.names())
def test_every_sample_has_its_verdict_there(old_judge: Judge, policy: str) -> None:
    wrong = {}
    for verdict, path in samples(policy):
        refused = [refusal.policy for obj in documents(path) if (refusal := old_judge.refusal(obj))]
        if refused != ([policy] if verdict == "denied" else []):
            wrong[f"{verdict}/{path.name}"] = refused
    assert wrong == {}


@pytest.mark.parametrize("verdict", ["idle", "working"])
def test_every_command_has_its_verdict_there(old_judge: Judge, verdict: str) -> None:
    expected = "no-idle-gpu" if verdict == "idle" else None
    found = {str(command): old_judge.policy(job(command)) for command in commands(verdict)}
    assert {command: policy for command, policy in found.items() if policy != expected} == {}
