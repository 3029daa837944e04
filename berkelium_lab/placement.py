"""What a pod was given: its node, its devices and the route by which it asked, read from a cluster.

Nothing is computed here that the scheduler decides; the claims' allocations and the ResourceSlices are read back.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from berkelium_infra.catalog import MODELS, GpuModel, NvlinkDomain
from berkelium_lab.api import Api

RESOURCE_API = "resource.k8s.io/v1"
CLAIM_ROUTE = "claim"


@dataclass(frozen=True)
class Device:
    """One allocated device. `model` is None where no entry of the catalog publishes such attributes."""

    name: str
    pool: str
    driver: str
    kind: str
    model: GpuModel | None = None
    profile: str | None = None
    parent: str | None = None

    @property
    def nvlink_domain(self) -> NvlinkDomain | None:
        """The NVLink domain that the GPU belongs to, where its model's nodes have more than one."""
        index = re.match(r"gpu-(\d+)", self.name)
        domains = self.model.nvlink_domains if self.model and index else ()
        return next((domain for domain in domains if index and int(index[1]) in domain.gpus), None)


@dataclass(frozen=True)
class Placement:
    """Where a pod is and what it holds. `routes` are `claim` or names of extended resources, one per request."""

    pod: str
    node: str | None
    phase: str
    devices: tuple[Device, ...] = ()
    routes: tuple[str, ...] = ()
    requests: tuple[str, ...] = field(default=(), compare=False)

    @property
    def models(self) -> frozenset[GpuModel | None]:
        """The distinct models among the devices."""
        return frozenset(device.model for device in self.devices)

    @property
    def nvlink_domains(self) -> frozenset[NvlinkDomain | None]:
        """The distinct NVLink domains among the devices."""
        return frozenset(device.nvlink_domain for device in self.devices)


class Inventory:
    """The devices that the drivers publish, by driver, pool and name."""

    def __init__(self, slices: Iterable[dict]) -> None:
        self.devices = {
            (spec["driver"], spec["pool"]["name"], device["name"]): _device(spec, device)
            for spec in (piece["spec"] for piece in slices)
            for device in spec.get("devices", [])
        }

    @classmethod
    def read(cls, api: Api) -> "Inventory":
        """The inventory of a cluster as it is now."""
        return cls(api.list(RESOURCE_API, "ResourceSlice"))

    def find(self, result: dict) -> Device:
        """The device of one allocation result; a device that is no longer published keeps its name alone."""
        key = (result["driver"], result["pool"], result["device"])
        return self.devices.get(key) or Device(result["device"], result["pool"], result["driver"], kind="unknown")


def _device(spec: dict, device: dict) -> Device:
    driver = spec["driver"]
    attributes = {name: _value(value) for name, value in device.get("attributes", {}).items()}
    return Device(
        name=device["name"],
        pool=spec["pool"]["name"],
        driver=driver,
        kind=str(attributes.get("type", "unknown")),
        model=_model(driver, attributes),
        profile=attributes.get("profile"),
        parent=attributes.get("parentUUID"),
    )


def _value(attribute: dict) -> str:
    return str(next(iter(attribute.values())))


def _model(driver: str, attributes: dict[str, str]) -> GpuModel | None:
    for model in MODELS:
        named = model.product_name and attributes.get("productName") == model.product_name
        if model.vendor.driver == driver and (named or attributes.get("deviceID") in model.device_ids):
            return model
    return None


def read(api: Api, pod: dict, inventory: Inventory) -> Placement:
    """The placement of a pod; without devices as long as the scheduler has given it none."""
    devices, routes, requests = [], [], []
    for name, resources in _claims(pod):
        claim = api.get(RESOURCE_API, "ResourceClaim", name, pod["metadata"]["namespace"])
        for result in _results(claim):
            route = resources.get(result["request"], CLAIM_ROUTE)
            devices.append(inventory.find(result))
            routes.append(route)
            requests.append(_described(claim, result, route))
    return Placement(
        pod=pod["metadata"]["name"],
        node=pod["spec"].get("nodeName"),
        phase=pod.get("status", {}).get("phase", "Unknown"),
        devices=tuple(sorted(devices, key=lambda device: (device.pool, device.name))),
        routes=tuple(dict.fromkeys(routes)),
        requests=tuple(dict.fromkeys(requests)),
    )


def _claims(pod: dict) -> Iterator[tuple[str, dict[str, str]]]:
    """The names of a pod's claims, each with the extended resources that its requests stand for."""
    for entry in pod["spec"].get("resourceClaims", []):
        if "resourceClaimName" in entry:
            yield entry["resourceClaimName"], {}
    status = pod.get("status", {})
    for entry in status.get("resourceClaimStatuses", []):
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"], {}
    extended = status.get("extendedResourceClaimStatus")
    if extended:
        resources = {mapping["requestName"]: mapping["resourceName"] for mapping in extended["requestMappings"]}
        yield extended["resourceClaimName"], resources


def _results(claim: dict | None) -> list[dict]:
    if claim is None:
        return []
    return claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])


def _described(claim: dict | None, result: dict, route: str) -> str:
    """`claim nvidia-h100`, or the limit that was written in the container."""
    if route != CLAIM_ROUTE:
        return f"limit {route}"
    name, _, alternative = result["request"].partition("/")
    for request in claim["spec"]["devices"]["requests"] if claim else []:
        if request["name"] != name:
            continue
        choices = request.get("firstAvailable", [])
        chosen = next((choice for choice in choices if choice["name"] == alternative), request.get("exactly", {}))
        suffix = f" ({alternative})" if alternative else ""
        return f"claim {chosen.get('deviceClassName', '?')}{suffix}"
    return CLAIM_ROUTE


def why_not_running(pod: dict | None) -> str:
    """The cluster's own words on why a pod does not run."""
    if pod is None:
        return "the pod does not exist"
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("message") or condition.get("reason", "not scheduled")
    return f"phase {pod.get('status', {}).get('phase', 'unknown')}, no word from the scheduler"
