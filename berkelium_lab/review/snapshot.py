"""Every object of a lab, without what is generated: two snapshots of the same declarations are equal."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from berkelium_lab.api import Api, ApiError, Object
from berkelium_lab.review import pools
from berkelium_lab.review.pools import Pool

_CONSEQUENCES = {
    "CertificateSigningRequest",
    "ClusterTrustBundle",
    "ComponentStatus",
    "ControllerRevision",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "IPAddress",
    "Lease",
    "NodeFeature",
    "Pod",
    "PodCertificateRequest",
    "ReplicaSet",
    "ResourceClaim",
    "ResourceSlice",
    "ServiceCIDR",
}
"""Kinds that components write by themselves. Pods and slices appear as `PODS` and as pools, in a form that compares."""

PODS = "Pods of DaemonSet"
"""Kind of the entry that says on which nodes a DaemonSet's pods are."""

_HELM_RECORD = "helm.sh/release.v1"
_RELEASE = "meta.helm.sh/release-name"
_GENERATED_METADATA = (
    "uid",
    "resourceVersion",
    "generation",
    "generateName",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
_GENERATED_ANNOTATIONS = (
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/last-applied-configuration",
    "nfd.node.kubernetes.io/",
    "node.alpha.kubernetes.io/ttl",
)
_OWN_ACCORD = ("kube-controller-manager", "kube-apiserver")
_SALT = secrets.token_bytes(16)


class Key(NamedTuple):
    """What makes two objects the same one; the version is left out, since a change of it replaces nothing."""

    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Snapshot:
    """The objects and the device pools (by driver and pool name) of a lab at one moment."""

    objects: dict[Key, Object]
    pools: dict[tuple[str, str], Pool]

    @property
    def devices(self) -> int:
        """How many devices are published."""
        return sum(len(pool.devices) for pool in self.pools.values())


def take(api: Api) -> Snapshot:
    """Read everything that the API server lists."""
    objects: dict[Key, Object] = {}
    for api_version, kind in listed_kinds(api):
        if kind in _CONSEQUENCES:
            continue
        found = [obj for obj in api.list(api_version, kind) if not is_by_itself(obj)]
        for name, obj in _named(found):
            namespace = obj["metadata"].get("namespace") or ""
            objects[Key(api_version.rpartition("/")[0], kind, namespace, name)] = stripped(obj)
    objects |= _daemon_pods(api.list("v1", "Pod"))
    return Snapshot(objects, pools.of(api.list("resource.k8s.io/v1", "ResourceSlice")))


def listed_kinds(api: Api) -> Iterator[tuple[str, str]]:
    """Every kind that can be listed, in its group's preferred version."""
    groups = [group["preferredVersion"]["groupVersion"] for group in api.raw("GET", "/apis")["groups"]]
    for api_version in ("v1", *groups):
        path = f"/api/{api_version}" if api_version == "v1" else f"/apis/{api_version}"
        try:
            resources = api.raw("GET", path)["resources"]
        except ApiError as error:
            # The group of a definition that has just been removed.
            if error.status != 404:
                raise
            continue
        for resource in resources:
            if "/" not in resource["name"] and "list" in resource["verbs"]:
                yield api_version, resource["kind"]


def is_by_itself(obj: Object) -> bool:
    """Whether the object says nothing about what was declared: Kubernetes or Helm made it for their own use."""
    metadata, kind = obj["metadata"], obj["kind"]
    if kind == "Secret":
        return obj.get("type") == _HELM_RECORD
    if kind == "APIService":
        return "kube-aggregator.kubernetes.io/automanaged" in metadata.get("labels", {})
    if kind in ("ServiceAccount", "ConfigMap"):
        # Those that controllers keep in every namespace, or make for themselves when they first need them.
        managers = {entry.get("manager") for entry in metadata.get("managedFields", [])}
        # An account in which nothing is set has no managers.
        bare = metadata.get("name") == "default" or metadata.get("namespace") == "kube-system"
        return managers <= set(_OWN_ACCORD) if managers else kind == "ServiceAccount" and bare
    return False


def release_of(obj: Object) -> str | None:
    """The Helm release that the object is part of."""
    return (obj["metadata"].get("annotations") or {}).get(_RELEASE)


def stripped(obj: Object) -> Object:
    """The object without what the API server, controllers and chance put into it; secrets are made unreadable."""
    kept = {key: value for key, value in obj.items() if key != "status"}
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _GENERATED_METADATA}
    annotations = {
        key: value
        for key, value in (metadata.pop("annotations", None) or {}).items()
        if not key.startswith(_GENERATED_ANNOTATIONS)
    }
    if annotations:
        metadata["annotations"] = annotations
    if owners := metadata.get("ownerReferences"):
        metadata["ownerReferences"] = [{key: value for key, value in each.items() if key != "uid"} for each in owners]
    kept["metadata"] = metadata
    if obj["kind"] == "Secret":
        for part in ("data", "stringData"):
            if part in kept:
                kept[part] = {key: _unreadable(value) for key, value in (kept[part] or {}).items()}
    if obj["kind"] == "Namespace":
        # Both are the same for every namespace, and set by the API server.
        metadata["labels"] = {k: v for k, v in metadata.get("labels", {}).items() if k != "kubernetes.io/metadata.name"}
        kept.pop("spec", None)
    if obj["kind"] == "Service":
        kept["spec"] = _service(kept["spec"])
    return _without_bundles(kept)


def _unreadable(value: object) -> str:
    """Equal for equal values within this process, and of no use beyond it."""
    return f"(secret {blake2b(str(value).encode(), key=_SALT, digest_size=4).hexdigest()})"


def _service(spec: Object) -> Object:
    """A Service's declaration without the addresses and ports that were allotted to it."""
    headless = spec.get("clusterIP") == "None"
    allotted = ("ipFamilies", "healthCheckNodePort") if headless else ("clusterIP", "clusterIPs", "ipFamilies")
    kept = {key: value for key, value in spec.items() if key not in allotted}
    if ports := kept.get("ports"):
        kept["ports"] = [{key: value for key, value in port.items() if key != "nodePort"} for port in ports]
    return kept


def _without_bundles(value: Any) -> Any:
    """Without the certificate authorities that webhooks' charts make anew each time."""
    if isinstance(value, dict):
        return {key: _without_bundles(inner) for key, inner in value.items() if key != "caBundle"}
    if isinstance(value, list):
        return [_without_bundles(inner) for inner in value]
    return value


def _named(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """Each object with its name; the random part of a generated name is replaced by a number."""
    counts: dict[tuple[str, str], int] = {}
    for obj in sorted(objects, key=lambda each: json.dumps(stripped(each).get("spec"), sort_keys=True)):
        metadata = obj["metadata"]
        prefix = metadata.get("generateName")
        if not prefix or not metadata["name"].startswith(prefix):
            yield metadata["name"], obj
            continue
        key = metadata.get("namespace", ""), prefix
        counts[key] = counts.get(key, 0) + 1
        yield f"{prefix}{counts[key]}", {**obj, "metadata": {**metadata, "name": f"{prefix}{counts[key]}"}}


def _daemon_pods(pods: list[Object]) -> dict[Key, Object]:
    """Per DaemonSet, the nodes that its pods are on, which labels and selectors decide."""
    nodes: dict[Key, set[str]] = {}
    for pod in pods:
        for owner in pod["metadata"].get("ownerReferences", []):
            if owner["kind"] == "DaemonSet" and pod["spec"].get("nodeName"):
                key = Key("", PODS, pod["metadata"]["namespace"], owner["name"])
                nodes.setdefault(key, set()).add(pod["spec"]["nodeName"])
    return {
        key: {
            "apiVersion": "v1",
            "kind": PODS,
            "metadata": {"namespace": key.namespace, "name": key.name},
            "nodes": sorted(found),
        }
        for key, found in nodes.items()
    }
