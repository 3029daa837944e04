"""The verdict of `berkelium check` is what happens when the same objects are really applied."""

import copy
from pathlib import Path

import pytest

from berkelium_lab.api import Api, ApiError
from berkelium_lab.lab import Lab
from berkelium_lab.wait import NotYet, until
from tests.lab.labs import fresh_namespace
from tests.lab.manifests import (
    AMOUNTS,
    LIMITS_ONLY,
    NVIDIA,
    Object,
    all_words,
    checked,
    claiming,
    pod,
    template,
    workload,
)

SIDECAR = {"name": "mesh-proxy", "image": "example.com/p:1", "restartPolicy": "Always"}
H200_MIG = f'{NVIDIA}.profile == "1g.18gb" && {NVIDIA}.productName == "NVIDIA H200 NVL"'
GPU = {"limits": {**AMOUNTS, "nvidia.com/gpu": "1"}, "requests": AMOUNTS}

CASES: dict[str, list[Object]] = {
    "a pod without a GPU": [pod()],
    "a pod with a default GPU": [pod(limits={"nvidia.com/gpu": "1"})],
    "a pod with eight GPUs": [pod(limits={"nvidia.com/h200": "8"})],
    "a pod with nine GPUs": [pod(limits={"nvidia.com/h200": "9"})],
    "an AMD GPU by claim": claiming("gpu.amd.com"),
    "two GPUs by claim": claiming("nvidia-b300", count=2),
    "a class that does not exist": claiming("nvidia-v100"),
    "a MIG device": claiming("mig.nvidia.com", H200_MIG),
    "a MIG device that no card has": claiming("mig.nvidia.com", f'{NVIDIA}.profile == "1g.5gb"'),
    "an unguarded attribute": claiming("mig.nvidia.com", f"{NVIDIA}.numaNode == 0"),
    "an NVLink domain": claiming("nvidia-h200", f'{NVIDIA}.pcieRoot == "pci0001"', count=4),
    "four GPUs behind one host bridge": claiming("nvidia-h100", count=4, match="resource.kubernetes.io/pcieRoot"),
    "a template that is nowhere": [pod(claims="absent")],
    "limits only, in a pod": [pod(resources=LIMITS_ONLY)],
    "limits only, in a deployment": [workload("Deployment", resources=LIMITS_ONLY)],
    "limits only, in a cron job": [workload("CronJob", resources=LIMITS_ONLY)],
    "no resources": [pod(resources={})],
    "an init container without resources": [pod(initContainers=[{"name": "wait-db", "image": "example.com/w:1"}])],
    "a sidecar without resources": [pod(initContainers=[SIDECAR])],
    "half of the amounts": [pod(resources={"limits": {"memory": "1Gi"}})],
    "an idle job with a GPU": [workload("Job", resources=GPU, command="sleep infinity")],
    "an idle deployment with a GPU": [workload("Deployment", resources=GPU, command="tail -f /dev/null")],
    "an idle job without a GPU": [workload("Job", command="sleep infinity")],
    "a working job with a GPU": [workload("Job", resources=GPU, command="python train.py")],
    "a deployment that fits": [workload("Deployment", 3, limits={"nvidia.com/a100": "2"})],
    "a deployment that does not fit": [workload("Deployment", 5, limits={"nvidia.com/a100": "2"})],
    "a stateful set that fits": [workload("StatefulSet", 2, limits={"amd.com/gpu": "4"})],
    "a daemon set where not every node has a GPU": [workload("DaemonSet", limits={"nvidia.com/a40": "1"})],
    "a field that does not exist": [pod(restartPolice="Never")],
    "a name that is none": [pod("No_Name")],
    "more memory than a node has": [pod(resources={"limits": {"cpu": "1", "memory": "9Ti"}})],
    "an old API version": [{**template(), "apiVersion": "resource.k8s.io/v1beta1"}],
    "a priority class that does not exist": [pod(priorityClassName="absent")],
    "a label that no node has": [pod(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-A40"})],
    "the label of a model": [pod(limits={"nvidia.com/gpu": "1"}, nodeSelector={"berkelium.io/gpu-model": "a40"})],
}

WANTED = {"Deployment": "spec.replicas", "StatefulSet": "spec.replicas", "Job": "spec.parallelism"}


def applied(api: Api, objects: list[Object], namespace: str) -> bool:
    """Create the objects in the namespace as they are; whether everything is accepted and every pod gets a node."""
    wanted = 0
    try:
        for obj in copy.deepcopy(objects):
            obj["metadata"]["namespace"] = namespace
            api.create(obj)
            wanted += {"Pod": 1, "DaemonSet": 12}.get(obj["kind"], 0)
            wanted += obj["spec"].get("replicas", 0) + obj["spec"].get("parallelism", 0)
    except ApiError:
        return False
    return until(lambda: _decided(api, namespace, wanted), f"{wanted} pods are decided on", 30) == "all placed"


def _decided(api: Api, namespace: str, wanted: int) -> str:
    pods = api.list("v1", "Pod", namespace)
    placed = [p for p in pods if p["spec"].get("nodeName")]
    refused = [p for p in pods if p not in placed and _conditions(p)]
    waiting = [p for p in pods if p not in placed and _lacks_template(api, namespace, p)]
    if len(placed) >= wanted:
        return "all placed"
    if len(placed) + len({p["metadata"]["name"] for p in [*refused, *waiting]}) >= wanted:
        return "not all placed"
    raise NotYet(f"{len(placed)} placed, {len(refused)} refused")


def _conditions(found: Object) -> list[Object]:
    conditions = found.get("status", {}).get("conditions") or []
    return [c for c in conditions if c.get("reason") in ("Unschedulable", "SchedulerError")]


def _lacks_template(api: Api, namespace: str, found: Object) -> bool:
    """The scheduler says nothing of a pod whose claim cannot be made; the claim controller does."""
    name = found["metadata"]["name"]
    events = api.list("v1", "Event", namespace, field_selector=f"involvedObject.name={name}")
    return any(event.get("reason") == "FailedResourceClaimCreation" for event in events)


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_is_what_happens(case: str, deployed: Api, lab: Lab, tmp_path: Path) -> None:
    report = checked(lab, tmp_path, CASES[case])
    with fresh_namespace(deployed) as namespace:
        happened = applied(deployed, CASES[case], namespace)
    assert (report.exit_code() == 0) == happened, all_words(report)
