"""A cluster as somebody built it by hand: Helm releases without this project, and objects made with kubectl."""

import json
from dataclasses import dataclass
from pathlib import Path

from berkelium_infra import catalog
from berkelium_lab import paths
from berkelium_lab.api import JSON_PATCH, Api
from berkelium_lab.engine import Request
from berkelium_lab.engine_home import PROVIDER, Home
from berkelium_lab.engine_process import run_engine
from berkelium_lab.fleet import load
from berkelium_lab.lab import DEFAULT_FLEET, Lab
from berkelium_lab.project_copy import PROJECT
from berkelium_lab.toolchain import ensure_tools, status
from berkelium_lab.wait import until
from tests.lab import workloads

NVIDIA = "nvidia-dra-driver-gpu"
AMD = "amd-gpu-operator"
TENANT = "tenant"
"""Namespace of the work that runs there."""

NVIDIA_LABEL = {"feature.node.kubernetes.io/pci-10de.present": "true"}
H100_SELECTOR = 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].productName.matches("H100")'

_PROGRAM = """
import json
import pathlib
import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.helm.v3 import Release

provider = Provider("cluster", kubeconfig="")
for release in json.loads((pathlib.Path(__file__).parent / "releases.json").read_text()):
    Release(release["name"], opts=pulumi.ResourceOptions(provider=provider), **release)
"""


def release(name: str, namespace: str, chart: str, values: dict) -> dict:
    """A Helm release of one of the lab's charts."""
    return {
        "name": name,
        "namespace": namespace,
        "chart": str(PROJECT / "berkelium_lab" / "charts" / chart),
        "values": values,
    }


def install(lab: Lab, releases: list[dict], directory: Path) -> None:
    """Install Helm releases by a Pulumi project of its own, which knows nothing of this one."""
    (directory / "Pulumi.yaml").write_text("name: by-hand\nruntime: python\n")
    (directory / "__main__.py").write_text(_PROGRAM)
    (directory / "releases.json").write_text(json.dumps(releases))
    tools, home = ensure_tools(), Home(lab)
    version = status().version(PROVIDER)
    paths.private_directory(home.root)
    home.prepare(tools.path("pulumi"), tools.path(PROVIDER), version)
    request = Request(
        action="up",
        project=directory,
        project_name="by-hand",
        stack="hand",
        root=home.root,
        provider_version=version,
    )
    messages = []
    result = run_engine(request, home.environment(), home.log, messages.append)
    assert not result.failed, messages


def build(lab: Lab, api: Api, directory: Path) -> None:
    """The cluster: drivers of both vendors by Helm, classes, a policy and namespaces by kubectl."""
    for group in load(DEFAULT_FLEET).node_groups:
        if group.gpu_model and group.gpu_model.vendor is catalog.NVIDIA:
            for name in group.node_names:
                api.patch("v1", "Node", name, {"metadata": {"labels": NVIDIA_LABEL}})
    for name in (NVIDIA, "kube-amd-gpu"):
        kubectl_create(api, namespace(name))
    kubectl_create(api, namespace("my-project", team="vision"))
    install(
        lab,
        [
            release(NVIDIA, NVIDIA, "nvidia-dra-driver-gpu", _NVIDIA_VALUES),
            release(AMD, "kube-amd-gpu", "gpu-operator-charts", _AMD_VALUES),
        ],
        directory,
    )
    _as_helm(api)
    kubectl_create(api, device_class("nvidia-h100", H100_SELECTOR, "nvidia.com/h100"))
    kubectl_create(api, device_class("nvidia-h200", 'device.driver == "gpu.nvidia.com"', "example.com/h200"))
    for obj in _policy():
        kubectl_create(api, obj)


_NVIDIA_VALUES = {
    "gpuResourcesEnabledOverride": True,
    "resources": {"gpus": {"enabled": True}, "computeDomains": {"enabled": False}},
}
_AMD_VALUES = {
    "node-feature-discovery": {"enabled": False},
    "kmm": {"enabled": False},
    "remediation": {"enabled": False, "installCRDs": False},
    "installdefaultNFDRule": False,
    "crds": {"defaultCR": {"install": False}},
}


def _as_helm(api: Api) -> None:
    """Write the name of Helm's own program as the manager of the classes that the releases installed.

    The provider contains Helm as a library, which names the field manager after the program that it is part of.
    """
    for installed in api.list("resource.k8s.io/v1", "DeviceClass"):
        path = "/metadata/managedFields/0/manager"
        rename = [
            {"op": "test", "path": path, "value": PROVIDER},
            {"op": "replace", "path": path, "value": "helm"},
        ]
        name = installed["metadata"]["name"]
        api.patch("resource.k8s.io/v1", "DeviceClass", name, rename, content_type=JSON_PATCH)


def kubectl_create(api: Api, obj: dict) -> None:
    """Create an object as kubectl does, field manager included."""
    namespace = obj["metadata"].get("namespace")
    api.raw("POST", api.collection(obj["apiVersion"], obj["kind"], namespace), {"fieldManager": "kubectl-create"}, obj)


def namespace(name: str, **labels: str) -> dict:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def device_class(name: str, selector: str, extended_resource: str) -> dict:
    """A DeviceClass."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": selector}}], "extendedResourceName": extended_resource},
    }


def _policy() -> list[dict]:
    group = "admissionregistration.k8s.io/v1"
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return [
        {
            "apiVersion": group,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "require-resources"},
            "spec": {
                "matchConstraints": {"resourceRules": [pods]},
                "validations": [{"expression": "object.spec.containers.all(c, has(c.resources))"}],
                "auditAnnotations": [{"key": "by-hand", "valueExpression": "'yes'"}],
            },
        },
        {
            "apiVersion": group,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "require-resources"},
            "spec": {"policyName": "require-resources", "validationActions": ["Warn"]},
        },
    ]


@dataclass
class Running:
    """A pod that held a device before, with everything that must stay as it is."""

    pod_uid: str
    devices: list


def start_work(api: Api) -> dict[str, Running]:
    """Pods that hold devices by both routes, in a namespace that is nobody's."""
    kubectl_create(api, namespace(TENANT))
    until(lambda: every_gpu_is_published(api), "the driver publishes the devices of every node", 60)
    workloads.create(api, workloads.claiming(TENANT, "by-claim", "nvidia-h100", count=2))
    workloads.create(api, [workloads.pod(TENANT, "by-resource", limits={"nvidia.com/gpu": "1"})])
    for name in ("by-claim", "by-resource"):
        workloads.running(api, TENANT, name)
    return held(api)


def every_gpu_is_published(api: Api) -> bool:
    """Whether each node with the label that the NVIDIA chart looks for has a slice."""
    ((key, value),) = NVIDIA_LABEL.items()
    labelled = {node["metadata"]["name"] for node in api.list("v1", "Node", label_selector=f"{key}={value}")}
    return labelled == {each["spec"]["nodeName"] for each in api.list("resource.k8s.io/v1", "ResourceSlice")}


def held(api: Api) -> dict[str, Running]:
    """The pods of `start_work` with the devices that their claims are allocated."""
    claims = api.list("resource.k8s.io/v1", "ResourceClaim", TENANT)
    found = {}
    for pod in api.list("v1", "Pod", TENANT):
        metadata = pod["metadata"]
        own = [c for c in claims if any(o["uid"] == metadata["uid"] for o in c["metadata"].get("ownerReferences", []))]
        if metadata["name"] in ("by-claim", "by-resource"):
            devices = [result for claim in own for result in claim["status"]["allocation"]["devices"]["results"]]
            found[metadata["name"]] = Running(metadata["uid"], devices)
    return found


def identities(api: Api) -> dict[tuple[str, str, str], str]:
    """UIDs of what exists before the adoption, by kind, namespace and name."""
    kinds = (
        ("v1", "Namespace"),
        ("resource.k8s.io/v1", "DeviceClass"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "Deployment"),
    )
    return {
        (kind, each["metadata"].get("namespace", ""), each["metadata"]["name"]): each["metadata"]["uid"]
        for version, kind in kinds
        for each in api.list(version, kind)
    }
