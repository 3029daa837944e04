"""A stack may have idle GPUs in bare pods warned or refused."""

from collections.abc import Iterator

import pytest

from berkelium_infra.policy_source import bare_pods, compose
from berkelium_lab.wait import until
from tests.lab.policies.conftest import TENANT, Judge
from tests.lab.policies.world import CONTROLLER, container, pod_spec, workload

IDLE = workload("Pod", pod_spec(container(gpu=True, command=["sleep", "infinity"])))
WORKING = workload("Pod", pod_spec(container(gpu=True, command=["python", "train.py"])))


def warnings(judge: Judge, obj: dict) -> list[str]:
    found: list[str] = []
    judge.api.create({**obj, "metadata": {**obj["metadata"], "namespace": TENANT}}, dry_run=True, warnings=found)
    return [text for text in found if bare_pods.NAME in text]


@pytest.fixture
def install(judge: Judge) -> Iterator:
    def apply(mode: str) -> None:
        policy, binding = compose.manifests("no-idle-gpu")
        for manifest in bare_pods.variant(policy, binding, mode):
            judge.api.apply(manifest)

    yield apply
    for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
        judge.api.delete("admissionregistration.k8s.io/v1", kind, bare_pods.NAME)
    until(lambda: judge.policy(IDLE) is None and not warnings(judge, IDLE), "bare pods are left alone again", 30)


def test_a_bare_pod_is_warned(judge: Judge, install) -> None:
    install("warn")
    (text,) = until(lambda: warnings(judge, IDLE), "an idle bare pod is warned", 30)
    assert 'container main runs "sleep infinity"' in text
    assert warnings(judge, WORKING) == []


def test_a_bare_pod_is_refused_without_the_advice_to_use_a_bare_pod(judge: Judge, install) -> None:
    install("deny")
    until(lambda: judge.policy(IDLE) == bare_pods.NAME, "an idle bare pod is refused", 30)
    assert "belongs into a bare pod" not in judge.text(IDLE)
    assert judge.policy(WORKING) is None


def test_a_pod_of_a_controller_is_refused_by_the_policy_itself(judge: Judge, install) -> None:
    install("deny")
    until(lambda: judge.policy(IDLE) == bare_pods.NAME, "an idle bare pod is refused", 30)
    owned = {**IDLE, "metadata": {**IDLE["metadata"], "ownerReferences": [CONTROLLER]}}
    assert judge.policy(owned) == "no-idle-gpu"
