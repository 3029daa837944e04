"""Pods made by hand for the simulated hardware, and what is to be seen of its devices.

No chart and no program stands between cause and effect in the tests that use them.
"""

from pathlib import Path
from typing import Any

import yaml

from berkelium_lab import fleet as fleets
from berkelium_lab.api import Api, ApiError
from berkelium_lab.hardware.inventory import inventory
from berkelium_lab.wait import NotYet, until

SECONDS = 30
CHARTS = Path(fleets.__file__).parent / "charts"
HARDWARE = inventory(fleets.load("berkelium"))
NODE = "hardware-test"
"""Label by which a test puts its pods on a node."""


def choose(api: Api, node: str, value: str | None) -> None:
    """Labels a node, so that pods with that node selector come or go."""
    api.patch("v1", "Node", node, {"metadata": {"labels": {NODE: value}}})


def daemon_set(namespace: str, name: str, labels: dict[str, str], container: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeSelector": {NODE: name}, "containers": [container]},
            },
        },
    }


def slices(api: Api, node: str) -> list[dict[str, Any]]:
    found = api.list("resource.k8s.io/v1", "ResourceSlice", field_selector=f"spec.nodeName={node}")
    return [each["spec"] for each in found]


def newest(api: Api, node: str) -> list[dict[str, Any]]:
    """The slices of the newest generation of a node's pool, if it is complete and alone."""
    found = slices(api, node)
    seen = [(piece["pool"]["generation"], piece["pool"]["resourceSliceCount"]) for piece in found]
    if not found or len(set(seen)) != 1 or len(found) != seen[0][1]:
        raise NotYet(f"generation and count of the slices of {node}: {seen}")
    return found


def shape(pieces: list[dict[str, Any]]) -> list[int]:
    """Devices per slice."""
    return sorted(len(piece.get("devices", [])) for piece in pieces)


def until_shape(api: Api, node: str, wanted: list[int]) -> list[dict[str, Any]]:
    def probe() -> list[dict[str, Any]]:
        found = newest(api, node)
        if shape(found) != wanted:
            raise NotYet(f"devices per slice of {node}: {shape(found)}")
        return found

    return until(probe, f"slices of {node} with {wanted} devices", SECONDS)


def until_none(api: Api, node: str) -> None:
    def probe() -> bool:
        if found := slices(api, node):
            raise NotYet(f"{len(found)} slices of {node}")
        return True

    until(probe, f"no slices of {node}", SECONDS)


def until_pod(api: Api, namespace: str, node: str) -> dict[str, Any]:
    """The running pod of the namespace on a node."""

    def probe() -> dict[str, Any]:
        pods = api.list("v1", "Pod", namespace, field_selector=f"spec.nodeName={node}")
        for pod in pods:
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
                return pod
        raise NotYet(f"pods: {[(pod['metadata']['name'], pod['status'].get('phase')) for pod in pods]}")

    return until(probe, f"a running pod on {node}", SECONDS)


def crds(api: Api, chart: str) -> None:
    """Installs the CRDs of a stand-in chart, which stay: one that is deleted soon after may take minutes to go."""
    for path in sorted((CHARTS / chart / "crds").glob("*.yaml")):
        for crd in filter(None, yaml.safe_load_all(path.read_text(encoding="utf-8"))):
            api.apply(crd)


def served(api: Api, api_version: str, kind: str) -> None:
    def probe() -> bool:
        try:
            api.list(api_version, kind)
        except ApiError as error:
            raise NotYet(str(error)) from None
        return True

    until(probe, f"{kind} to be served", SECONDS)
