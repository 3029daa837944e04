"""Small builders and waits for the lab tests: claim templates, pods, and what became of them."""

from collections.abc import Sequence

from berkelium_lab import placement
from berkelium_lab.api import Api
from berkelium_lab.placement import Inventory, Placement
from berkelium_lab.wait import NotYet, until

SECONDS = 30
"""How long a pod may take to be decided on; the scheduler needs a fraction of it on an idle machine."""

RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}


def template(
    namespace: str,
    name: str,
    device_class: str,
    count: int = 1,
    selectors: Sequence[str] = (),
    match_attribute: str | None = None,
    mode: str = "ExactCount",
) -> dict:
    """A ResourceClaimTemplate with one request, `gpu`."""
    exactly: dict = {"deviceClassName": device_class, "allocationMode": mode}
    if mode == "ExactCount":
        exactly["count"] = count
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    devices: dict = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if match_attribute:
        devices["constraints"] = [{"requests": ["gpu"], "matchAttribute": match_attribute}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": devices}},
    }


def pod(
    namespace: str,
    name: str,
    claim_template: str | None = None,
    limits: dict[str, str] | None = None,
    node: str | None = None,
) -> dict:
    """A pod that asks by claim template, by extended resource, or for no GPU; `node` pins it by host name."""
    resources: dict = {
        "requests": {**RESOURCES["requests"], **(limits or {})},
        "limits": {**RESOURCES["limits"], **(limits or {})},
    }
    spec: dict = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "example.com/work:1", "command": ["work"], "resources": resources}],
    }
    if claim_template:
        resources["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": claim_template}]
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def claiming(namespace: str, name: str, device_class: str, node: str | None = None, **request) -> list[dict]:
    """A claim template and a pod of the same name that uses it; `request` as for `template`."""
    return [template(namespace, name, device_class, **request), pod(namespace, name, claim_template=name, node=node)]


def create(api: Api, objects: Sequence[dict]) -> None:
    """Create the objects in order."""
    for obj in objects:
        api.create(obj)


def running(api: Api, namespace: str, name: str, seconds: float = SECONDS) -> Placement:
    """Wait until the pod runs; return what it was given."""

    def probe() -> dict | None:
        found = api.get("v1", "Pod", name, namespace)
        if found and found.get("status", {}).get("phase") in ("Running", "Succeeded"):
            return found
        raise NotYet(placement.why_not_running(found))

    return placement.read(api, until(probe, f"pod {name} runs", seconds), Inventory.read(api))


def unschedulable(api: Api, namespace: str, name: str, seconds: float = SECONDS) -> str:
    """Wait until the scheduler says that it finds no place for the pod; return its message."""

    def probe() -> str | None:
        found = api.get("v1", "Pod", name, namespace)
        for condition in (found or {}).get("status", {}).get("conditions", []):
            if condition["type"] == "PodScheduled" and condition.get("reason") in ("Unschedulable", "SchedulerError"):
                return condition.get("message") or condition["reason"]
        raise NotYet(placement.why_not_running(found))

    return until(probe, f"the scheduler finds no place for pod {name}", seconds)


def remove(api: Api, namespace: str, *names: str) -> None:
    """Delete pods and wait until their claims are gone, so that their devices are free."""
    for name in names:
        api.delete("v1", "Pod", name, namespace)

    def probe() -> bool:
        claims = api.list("resource.k8s.io/v1", "ResourceClaim", namespace)
        owners = {owner["name"] for claim in claims for owner in claim["metadata"].get("ownerReferences", [])}
        held = sorted(owners & set(names))
        if held:
            raise NotYet(f"claims of {', '.join(held)} are still there")
        return True

    until(probe, "the claims of deleted pods are gone", SECONDS)
