"""Every sample and every command has the verdict that it states, by the API server's own word."""

from pathlib import Path

import pytest

from berkelium_infra.policy_source import compose
from berkelium_lab.policy_trial import Refusal
from tests.lab.policies.conftest import TENANT, Judge
from tests.lab.policies.world import TEMPLATE_KINDS, commands, container, documents, job, pod_spec, samples, workload

ALL_SAMPLES = [
    pytest.param(name, verdict, path, id=f"{name}: {verdict} {path.stem}")
    for name in compose.names()
    for verdict, path in samples(name)
]


def refusals(judge: Judge, path: Path) -> list[Refusal]:
    return [refusal for obj in documents(path) if (refusal := judge.refusal(obj))]


@pytest.mark.parametrize(("policy", "verdict", "path"), ALL_SAMPLES)
def test_a_sample_has_the_verdict_of_its_path(judge: Judge, policy: str, verdict: str, path: Path) -> None:
    assert [r.policy for r in refusals(judge, path)] == ([policy] if verdict == "denied" else [])


@pytest.mark.parametrize("command", commands("idle"), ids=repr)
def test_an_idle_command_is_refused(judge: Judge, command: str | list[str] | dict) -> None:
    assert judge.policy(job(command)) == "no-idle-gpu"


@pytest.mark.parametrize("command", commands("working"), ids=repr)
def test_a_working_command_is_allowed(judge: Judge, command: str | list[str] | dict) -> None:
    assert judge.text(job(command)) == ""


@pytest.mark.parametrize("kind", TEMPLATE_KINDS)
def test_an_idle_gpu_is_refused_in_every_kind_of_object(judge: Judge, kind: str) -> None:
    idle = pod_spec(container(gpu=True, command=["sleep", "infinity"]))
    working = pod_spec(container(gpu=True, command=["python", "train.py"]))
    assert judge.policy(workload(kind, idle)) == "no-idle-gpu"
    assert judge.policy(workload(kind, working)) is None


@pytest.mark.parametrize("kind", TEMPLATE_KINDS)
def test_limits_alone_do_not_complete_a_template(judge: Judge, kind: str) -> None:
    limits = container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})
    assert judge.policy(workload(kind, pod_spec(limits))) == "require-resources"
    assert judge.policy(workload(kind, pod_spec(container()))) is None


def test_one_message_lists_every_container_with_its_missing_and_its_zero_fields(judge: Judge) -> None:
    bare = container("bare", resources={})
    half = container("half", resources={"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}})
    zero = container(
        "zero", resources={"limits": {"cpu": "0", "memory": "1Gi"}, "requests": {"cpu": 0, "memory": "1Gi"}}
    )
    text = judge.text(
        workload("Deployment", pod_spec(bare, half, zero, initContainers=[container("wait", resources={})]))
    )
    assert "container wait lacks requests.cpu, requests.memory, limits.cpu, limits.memory" in text
    assert "container bare lacks requests.cpu, requests.memory, limits.cpu, limits.memory" in text
    assert "container half lacks requests.cpu, limits.cpu;" in text
    assert "container zero sets requests.cpu, limits.cpu to zero, which means unlimited" in text


def test_the_message_says_that_resources_of_the_pod_are_not_those_of_its_containers(judge: Judge) -> None:
    spec = pod_spec(container(resources={}), resources={"limits": {"cpu": "1", "memory": "1Gi"}})
    assert "Pod-level spec.resources does not replace container values" in judge.text(workload("Pod", spec))


def test_the_message_quotes_the_culprit_and_says_what_to_do(judge: Judge) -> None:
    script = "./setup.sh && nvidia-smi -L\ntrap 'exit 0' TERM\nwhile true; do\n  sleep 60\ndone\n"
    text = judge.text(job(script))
    assert 'container main runs "while true; do sleep 60; done"' in text
    for advice in ("checkpoint", "PVC", "exit", "activeDeadlineSeconds", "bare pod", "policies/no-idle-gpu/README.md"):
        assert advice in text


def test_the_message_names_every_idle_container(judge: Judge) -> None:
    one, two = (container(name, gpu=True, command=["sleep", seconds]) for name, seconds in (("a", "1d"), ("b", "2d")))
    text = judge.text(workload("Job", pod_spec(one, two)))
    assert 'container a runs "sleep 1d"; container b runs "sleep 2d"' in text


def test_a_message_about_a_hundred_containers_stays_within_what_the_server_shows(judge: Judge) -> None:
    text = judge.text(workload("Pod", pod_spec(*(container(f"container-{n}", resources={}) for n in range(100)))))
    assert "container container-0 lacks" in text
    assert " ..." in text
    assert len(text) < 5120


def test_an_exempt_namespace_is_left_alone(judge: Judge) -> None:
    incomplete = workload("Deployment", pod_spec(container(resources={})))
    assert judge.policy(incomplete, "kube-system") is None
    assert judge.policy(job("sleep infinity"), "kube-public") is None
    assert judge.policy(incomplete, TENANT) == "require-resources"


def test_no_label_or_annotation_exempts_a_tenant(judge: Judge) -> None:
    pod = workload("Pod", pod_spec(container(resources={}), nodeName="h200-1"))
    pod["metadata"] |= {
        "labels": {"kubernetes.io/metadata.name": "kube-system", "admission.berkelium.io/ignore": "true"},
        "annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"},
    }
    assert judge.policy(pod) == "require-resources"
    forged = {"kubernetes.io/metadata.name": "kube-system"}
    judge.api.patch("v1", "Namespace", TENANT, {"metadata": {"labels": forged}})
    assert judge.policy(workload("Pod", pod_spec(container(resources={})))) == "require-resources"
