"""Manifests for the tests of `berkelium check`, as plain dictionaries, and the check of them in a lab."""

from pathlib import Path
from typing import Any

import yaml

from berkelium_lab.check.findings import Item, Report
from berkelium_lab.check.run import Question, check
from berkelium_lab.check.target import running_lab
from berkelium_lab.lab import Lab

NVIDIA = 'device.attributes["gpu.nvidia.com"]'
AMOUNTS = {"cpu": "1", "memory": "1Gi"}
LIMITS_ONLY = {"limits": AMOUNTS}

Object = dict[str, Any]


def pod_spec(
    limits: dict[str, str] | None = None, claims: str | None = None, command: str = "work", **spec: Any
) -> Object:
    """A pod's spec with one container `main`; `claims` is the claim template that it uses."""
    resources: Object = {"requests": dict(AMOUNTS), "limits": {**AMOUNTS, **(limits or {})}}
    container = {"name": "main", "image": "example.com/work:1", "command": command.split(), "resources": resources}
    if claims:
        resources["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": claims}]
    return {"restartPolicy": "Never", "containers": [container], **spec}


def pod(name: str = "p", resources: Object | None = None, namespace: str = "team", **spec: Any) -> Object:
    """A Pod; `resources` replaces what its container states, the rest is as for `pod_spec`."""
    metadata = {"name": name, "namespace": namespace}
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}
    return _with_resources(obj, obj["spec"], resources)


def workload(kind: str, replicas: int = 1, resources: Object | None = None, **spec: Any) -> Object:
    """A workload named `w`; a Job gets `replicas` as its parallelism."""
    batch = kind in ("Job", "CronJob")
    inner = pod_spec(**spec) | {"restartPolicy": "Never" if batch else "Always"}
    job: Object = {"template": {"metadata": {"labels": {"app": "w"}}, "spec": inner}}
    outer = dict(job)
    if kind == "Job":
        outer |= {"parallelism": replicas, "completions": replicas}
    elif kind == "CronJob":
        outer = {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}}
    else:
        outer |= {"selector": {"matchLabels": {"app": "w"}}}
        outer |= {} if kind == "DaemonSet" else {"replicas": replicas}
        outer |= {"serviceName": "w"} if kind == "StatefulSet" else {}
    version = "batch/v1" if batch else "apps/v1"
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "team"}, "spec": outer}
    return _with_resources(obj, inner, resources)


def _with_resources(obj: Object, spec: Object, resources: Object | None) -> Object:
    if resources is not None:
        spec["containers"][0]["resources"] = resources
    return obj


def template(
    device_class: str = "nvidia-h100",
    *selectors: str,
    name: str = "t",
    count: int = 1,
    match: str | None = None,
    namespace: str = "team",
) -> Object:
    """A ResourceClaimTemplate with one request `gpu`."""
    exactly: Object = {"deviceClassName": device_class, "count": count}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    devices: Object = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if match:
        devices["constraints"] = [{"requests": ["gpu"], "matchAttribute": match}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": devices}},
    }


def claiming(device_class: str = "nvidia-h100", *selectors: str, **request: Any) -> list[Object]:
    """A claim template and a pod that uses it."""
    return [template(device_class, *selectors, **request), pod(claims="t")]


def device_class(name: str, expression: str, extended_resource: str | None = None) -> Object:
    """A DeviceClass."""
    spec: Object = {"selectors": [{"cel": {"expression": expression}}]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def checked(lab: Lab, directory: Path, objects: list[Object], **question: Any) -> Report:
    """The report on the objects, written to one file, by a check in the lab."""
    file = directory / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(objects, sort_keys=False))
    return check(Question([str(file)], **question), running_lab(lab.name, lambda _: None), lambda _: None)


def words(item: Item) -> str:
    """Everything that is said about an object."""
    return "\n".join(f"{finding.message}\n{finding.hint}" for finding in item.findings)


def all_words(report: Report) -> str:
    """Everything that is said about the objects of a report."""
    return "\n".join([words(item) for item in report.items])
