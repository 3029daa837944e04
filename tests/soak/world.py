"""A stack's state and its cluster's objects in a form in which two runs of the same program are equal."""

import json
from collections.abc import Mapping
from typing import Any

from berkelium_lab.api import Api
from berkelium_lab.lab import Lab

Key = tuple[str, ...]
World = dict[Key, Any]

PASSING = {
    # Made by controllers or per revision of a release, with names or numbers of their own each time.
    "ClusterTrustBundle",
    "ComponentStatus",
    "ControllerRevision",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "Job",
    "Lease",
    "Node",
    "Pod",
    "ReplicaSet",
    "ResourceSlice",
    "NodeFeature",
}
STAMPS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "ownerReferences", "selfLink")
OF_ONE_CLUSTER = {("ConfigMap", "kube-root-ca.crt"), ("Service", "kubernetes")}
"""Objects with a certificate or a port of their cluster in them."""

COUNTERS = ("deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation")
IDENTITY = "cluster-identity"


def recorded(lab: Lab) -> World:
    """The resources of the stack's state by URN: their inputs and what they depend on."""
    state = json.loads((lab.directory / "pulumi/state/.pulumi/stacks/berkelium-infra/lab.json").read_text())
    latest = state["checkpoint"]["latest"]
    assert not latest.get("pending_operations"), latest["pending_operations"]
    urns = [resource["urn"] for resource in latest["resources"]]
    assert len(urns) == len(set(urns)), "a resource is recorded twice"
    return {
        ("state", resource["urn"]): (_placed(resource.get("inputs")), sorted(resource.get("dependencies") or ()))
        for resource in latest["resources"]
        if not resource["urn"].endswith(f"::{IDENTITY}")
    }


def live(api: Api) -> World:
    """Every object of every kind that the API server serves, without what differs from one run to the next."""
    found: World = {}
    for version in _versions(api):
        for served in api.raw("GET", _prefix(version))["resources"]:
            if "/" in served["name"] or "list" not in served["verbs"] or served["kind"] in PASSING:
                continue
            for item in api.list(version, served["kind"]):
                metadata = item["metadata"]
                if not _is_of_helm(item) and (served["kind"], metadata["name"]) not in OF_ONE_CLUSTER:
                    key = (version, served["kind"], metadata.get("namespace", ""), metadata["name"])
                    found[key] = _lasting(item)
    return found


def revisions(api: Api) -> dict[str, list[str]]:
    """The status of every revision that Helm has a record of, by release."""
    found: dict[str, list[str]] = {}
    for record in api.list("v1", "Secret", label_selector="owner=helm"):
        labels = record["metadata"]["labels"]
        found.setdefault(labels["name"], []).append(labels["status"])
    return found


def differences(expected: World, seen: World) -> list[str]:
    """What `seen` lacks, has beyond `expected`, or has differently; one line each."""
    lines = [f"missing: {' '.join(key)}" for key in sorted(expected.keys() - seen.keys())]
    lines += [f"too much: {' '.join(key)}" for key in sorted(seen.keys() - expected.keys())]
    for key in sorted(expected.keys() & seen.keys()):
        if expected[key] != seen[key]:
            lines.append(f"differs: {' '.join(key)}: {_excerpt(expected[key], seen[key])}")
    return lines


def _placed(inputs: Any) -> Any:
    """Inputs without the namespace that the provider makes up for a kind that it cannot look up yet."""
    metadata = (inputs or {}).get("metadata")
    if isinstance(metadata, dict) and metadata.get("namespace") == "default":
        return {**inputs, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}
    return inputs


def _versions(api: Api) -> list[str]:
    groups = api.raw("GET", "/apis")["groups"]
    return ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]


def _prefix(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _is_of_helm(item: Mapping[str, Any]) -> bool:
    return item["kind"] == "Secret" and item.get("type") == "helm.sh/release.v1"


def _lasting(item: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in item["metadata"].items() if key not in STAMPS}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {key: value for key, value in annotations.items() if key not in COUNTERS}
    body = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    return json.loads(json.dumps({"metadata": metadata, **body}))


def _excerpt(expected: object, seen: object) -> str:
    left, right = json.dumps(expected, sort_keys=True), json.dumps(seen, sort_keys=True)
    at = next((index for index, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, at - 60)
    return f"…{left[start : at + 80]}… became …{right[start : at + 80]}…"
