"""Pods, jobs and commands for the tests of the policies, and where their verdicts stand."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from berkelium_infra.policy_source import compose

Object = dict[str, Any]

COMPLETE: Object = {
    "requests": {"cpu": "1", "memory": "1Gi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}
TEMPLATE_KINDS = (
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "ReplicationController",
    "Job",
    "CronJob",
    "PodTemplate",
)
CONTROLLER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "cluster", "uid": "c-1", "controller": True}


def container(name: str = "main", gpu: bool = False, resources: Object | None = None, **fields: object) -> Object:
    """A container with complete resources unless others are given, and with one GPU where asked."""
    resources = copy.deepcopy(COMPLETE if resources is None else resources)
    if gpu:
        resources.setdefault("limits", {})["nvidia.com/gpu"] = "1"
    return {"name": name, "image": "registry.example/app:1", "resources": resources, **fields}


def pod_spec(*containers: Object, **fields: object) -> Object:
    return {"containers": list(containers) or [container()], **fields}


def workload(kind: str, spec: Object, name: str = "sample") -> Object:
    """An object of that kind around a pod spec."""
    labels = {"app": name}
    metadata: Object = {"name": name}
    template: Object = {"metadata": {"labels": labels}, "spec": copy.deepcopy(spec)}
    if kind in ("Job", "CronJob"):
        template["spec"].setdefault("restartPolicy", "Never")
    match kind:
        case "Pod":
            return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": template["spec"]}
        case "PodTemplate":
            return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "template": template}
        case "ReplicationController":
            body = {"replicas": 0, "selector": labels, "template": template}
            return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": body}
        case "Job":
            body = {"suspend": True, "template": template}
            return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": body}
        case "CronJob":
            body = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": template}}}
            return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": body}
    body = {"selector": {"matchLabels": labels}, "template": template}
    if kind == "StatefulSet":
        body["serviceName"] = name
    if kind != "DaemonSet":
        body["replicas"] = 0
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": body}


def template_of(obj: Object) -> Object:
    """The pod template inside an object, or the pod itself; changes to it change the object."""
    match obj["kind"]:
        case "Pod":
            return obj
        case "PodTemplate":
            return obj["template"]
        case "CronJob":
            return obj["spec"]["jobTemplate"]["spec"]["template"]
    return obj["spec"]["template"]


def job(command: str | list[str] | Object) -> Object:
    """A Job whose only container holds a GPU and runs a script of bash, a command, or `{command, args}`."""
    if isinstance(command, str):
        command = {"command": ["bash", "-c", command]}
    elif isinstance(command, list):
        command = {"command": command}
    return workload("Job", pod_spec(container(gpu=True, **command)))


def commands(verdict: str) -> list[str | list[str] | Object]:
    """The commands of commands.yaml that are `idle` or `working`."""
    return yaml.safe_load((Path(__file__).parent / "commands.yaml").read_text())[verdict]


def samples(policy: str) -> Iterator[tuple[str, Path]]:
    """Every sample of a policy with the verdict that its path states."""
    for path in sorted((compose.POLICIES / policy / "samples").glob("*/*.yaml")):
        yield path.parent.name, path


def documents(path: Path) -> list[Object]:
    return list(yaml.safe_load_all(path.read_text()))
