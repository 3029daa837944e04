"""A small healthy cluster as plain objects, and an API server that answers from them."""

import base64
import copy
import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

from berkelium_infra import policies
from berkelium_infra.catalog import AMD, DEVICE_CLASSES, MODELS, NVIDIA, GpuModel
from berkelium_infra.node_labels import RULES_NAME
from berkelium_infra.settings import Settings
from berkelium_lab.api import UNKNOWN_KIND, ApiError
from berkelium_lab.doctor.cluster import Cluster
from berkelium_lab.doctor.diagnosing import examine
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Finding, Severity

Object = dict[str, Any]

SETTINGS = Settings.model_validate({"projectNamespaces": ["my-project"]})
EXPECTATION = Expectation(SETTINGS)
EXEMPT = SETTINGS.policy_exemptions
DENIED = "ValidatingAdmissionPolicy '{0}' with binding '{0}' denied request: it says so"
WARNED = "Validation failed for ValidatingAdmissionPolicy '{0}' with binding '{0}': it says so"
LABEL_NAMESPACE = "kubernetes.io/metadata.name"


class World:
    """Objects by kind, and how the API server behaves. It has the methods that the doctor calls."""

    def __init__(self) -> None:
        self.objects: dict[str, list[Object]] = {}
        self.version = "v1.37.2"
        self.drops: set[str] = set()
        self.forbidden: set[tuple[str, str]] = set()
        self.unknown: set[str] = set()
        self.admit: Callable[[Object], ApiError | list[str]] = admit
        self.created: list[Object] = []

    def add(self, *objects: Object) -> None:
        """Put objects into the cluster."""
        for obj in objects:
            self.objects.setdefault(obj["kind"], []).append(obj)

    def one(self, kind: str, name: str) -> Object:
        """The object of that name."""
        return next(obj for obj in self.objects[kind] if obj["metadata"]["name"] == name)

    def remove(self, kind: str, name: str) -> None:
        """Take an object away."""
        self.objects[kind].remove(self.one(kind, name))

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> "list[Object]":
        self._check("list", kind)
        if kind in self.unknown:
            raise ApiError(404, UNKNOWN_KIND, f"no kind {kind}", {})
        if field_selector:
            return []
        found = [obj for obj in self.objects.get(kind, []) if namespace in (None, obj["metadata"].get("namespace"))]
        assert all(obj["apiVersion"] == api_version for obj in found)
        if label_selector:
            assert label_selector == "owner=helm,status!=superseded"
        return copy.deepcopy(found)

    def create(
        self, obj: Object, dry_run: bool = False, strict: bool = True, warnings: "list[str] | None" = None
    ) -> Object:
        assert dry_run, f"the doctor must not write, and created {obj}"
        assert isinstance(strict, bool)
        self._check("create", obj["kind"])
        self.created.append(obj)
        answer = self.admit(obj)
        if isinstance(answer, ApiError):
            raise answer
        if warnings is not None:
            warnings.extend(answer)
        spec = {key: value for key, value in obj["spec"].items() if key not in self.drops}
        return {**obj, "spec": spec}

    def raw(self, method: str, path: str) -> Object:
        assert (method, path) == ("GET", "/version")
        return {"gitVersion": self.version}

    def _check(self, verb: str, kind: str) -> None:
        if (verb, kind) in self.forbidden:
            plural = f"{kind.lower()}s"
            message = (
                f'{plural} is forbidden: User "me" cannot {verb} resource "{plural}" in API group "" at the cluster'
            )
            raise ApiError(403, "Forbidden", f"{message} scope", {})

    def findings(self, expectation: Expectation = EXPECTATION) -> Iterator[Finding]:
        """Everything that the doctor finds."""
        yield from examine(Cluster(self), expectation)

    def problems(self, expectation: Expectation = EXPECTATION) -> set[tuple[str, str, str]]:
        """Severity, id and subject of each finding that is more than an info."""
        found = self.findings(expectation)
        return {(str(f.severity), f.id, f.subject) for f in found if f.severity is not Severity.INFO}

    def only(self, id: str, expectation: Expectation = EXPECTATION) -> Finding:
        """The one finding with that id."""
        (finding,) = (finding for finding in self.findings(expectation) if finding.id == id)
        return finding


def admit(obj: Object) -> ApiError | list[str]:
    """The answer of an API server on which both policies work."""
    for container in obj["spec"].get("containers", []):
        if "sleep" in container.get("command", []):
            return denied("no-idle-gpu")
        if not container.get("resources"):
            return denied("require-resources")
    return []


def denied(policy: str) -> ApiError:
    """A refusal by that policy."""
    return ApiError(422, "Invalid", f"pods is forbidden: {DENIED.format(policy)}", {})


def healthy() -> World:
    """One node of each model, everything as the stack declares it."""
    world = World()
    for model in MODELS:
        world.add(node(model), *slices(model), plugin_pod(model))
    world.add(daemon_set("nvidia-plugin", "nvidia-dra-driver-gpu", 5), daemon_set("amd-plugin", "kube-amd-gpu", 1))
    world.add(*(device_class(one.name, one.selector, one.extended_resource) for one in DEVICE_CLASSES))
    world.add(
        *(
            helm_secret(one.chart.namespace, one.chart.release, one.chart.name, one.version)
            for one in EXPECTATION.releases
        )
    )
    world.add(*(namespace(name) for name in (*EXEMPT, "my-project", "default")))
    world.add(obj("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", RULES_NAME))
    for name, mode in EXPECTATION.policies.items():
        policy, binding = policies.load(name, mode, EXEMPT)
        assert binding
        world.add(policy, binding)
    return world


def obj(api_version: str, kind: str, name: str, namespace: str | None = None, **rest: Any) -> Object:
    """An object with a name and a uid."""
    metadata: Object = {"name": name, "uid": f"uid-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def namespace(name: str) -> Object:
    made = obj("v1", "Namespace", name)
    made["metadata"]["labels"] = {LABEL_NAMESPACE: name}
    return made


def node(model: GpuModel) -> Object:
    vendor = "feature.node.kubernetes.io/pci-10de.present"
    labels = {"berkelium.io/gpu-model": model.key}
    labels |= {vendor: "true"} if model.vendor is NVIDIA else {"feature.node.kubernetes.io/amd-gpu": "true"}
    if model.vendor is NVIDIA:
        labels["berkelium.io/dynamic-mig"] = "true" if model.mig_capable else "false"
    made = obj(
        "v1", "Node", f"{model.key}-1", spec={}, status={"conditions": [ready("True")], "allocatable": {"cpu": "8"}}
    )
    made["metadata"]["labels"] = labels
    return made


def ready(status: str) -> Object:
    return {"type": "Ready", "status": status}


def daemon_set(name: str, space: str, wanted: int) -> Object:
    program = "gpu-kubelet-plugin -v 4" if "nvidia" in name else "gpu-kubeletplugin"
    pod = {"containers": [{"name": "gpus", "command": ["bash", "-c", program]}]}
    status = {"desiredNumberScheduled": wanted, "numberReady": wanted}
    return obj("apps/v1", "DaemonSet", name, space, spec={"template": {"spec": pod}}, status=status)


def plugin_pod(model: GpuModel) -> Object:
    nvidia = model.vendor is NVIDIA
    name, space = ("nvidia-plugin", "nvidia-dra-driver-gpu") if nvidia else ("amd-plugin", "kube-amd-gpu")
    spec = {**daemon_set(name, space, 1)["spec"]["template"]["spec"], "nodeName": f"{model.key}-1"}
    pod = obj("v1", "Pod", f"{name}-{model.key}", space, spec=spec, status={"conditions": [ready("True")]})
    pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": name, "uid": f"uid-{name}", "controller": True}]
    return pod


def slices(model: GpuModel) -> list[Object]:
    """A pool with one GPU; with MIG also one MIG device, and the counters of both in a slice of their own."""
    if model.vendor is AMD:
        return [resource_slice(model, 1, devices=[device(model, "gpu-0-128", "amdgpu")])]
    whole = device(model, "gpu-0", "gpu")
    if not model.mig_capable:
        return [resource_slice(model, 1, devices=[whole])]
    partition = device(model, "gpu-0-mig-0", "mig")
    consumed = [{"counterSet": "gpu-0-counters", "counters": {"memory": {"value": "1"}}}]
    whole["consumesCounters"] = partition["consumesCounters"] = consumed
    counters = [{"name": "gpu-0-counters", "counters": {"memory": {"value": "8"}}}]
    return [resource_slice(model, 2, sharedCounters=counters), resource_slice(model, 2, devices=[whole, partition])]


def resource_slice(model: GpuModel, count: int, **content: Any) -> Object:
    pool = {"name": f"{model.key}-1", "generation": 1, "resourceSliceCount": count}
    spec = {"driver": model.vendor.driver, "nodeName": f"{model.key}-1", "pool": pool, **content}
    return obj("resource.k8s.io/v1", "ResourceSlice", f"{model.key}-{next(iter(content))}", spec=spec)


def device(model: GpuModel, name: str, kind: str) -> Object:
    attributes = {"type": {"string": kind}, "productName": {"string": model.product_name}}
    if model.vendor is AMD:
        attributes["deviceID"] = {"string": model.device_ids[0]}
    return {"name": name, "attributes": attributes}


def device_class(name: str, selector: str, extended_resource: str | None) -> Object:
    spec: Object = {"selectors": [{"cel": {"expression": selector}}]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    made = obj("resource.k8s.io/v1", "DeviceClass", name, spec=spec)
    made["metadata"]["creationTimestamp"] = "2026-11-01T00:00:00Z"
    return made


def helm_secret(space: str, name: str, chart: str, version: str, status: str = "deployed", revision: int = 1) -> Object:
    """A record as Helm writes it."""
    about = {"status": status, "last_deployed": "2026-11-01T00:00:00Z", "description": "what happened"}
    metadata = {"name": chart, "version": version}
    record = {"name": name, "namespace": space, "version": revision, "info": about, "chart": {"metadata": metadata}}
    payload = base64.b64encode(gzip.compress(json.dumps(record).encode()))
    data = {"release": base64.b64encode(payload).decode()}
    return obj("v1", "Secret", f"sh.helm.release.v1.{name}.v{revision}", space, type="helm.sh/release.v1", data=data)
