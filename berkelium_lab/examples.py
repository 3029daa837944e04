"""The example manifests: apply them to a cluster, wait for their pods, and compare what they were given.

`examples/expected.yaml` says what each pod must be given; the manifests themselves are the user documentation's.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from berkelium_infra.errors import UserError
from berkelium_lab import placement
from berkelium_lab.api import Api, ApiError
from berkelium_lab.placement import Inventory, Placement

DIRECTORY = Path(__file__).resolve().parent.parent / "examples"

Report = Callable[[str], None]


class ExampleError(UserError):
    """An example could not be read or applied."""


class Expected(BaseModel):
    """What one pod must be given; the fields are explained at the top of `examples/expected.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    devices: int
    route: str
    profile: str | None = None
    domains: int | None = None


class Example(BaseModel):
    """One manifest file and its pods."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    manifest: str
    pods: dict[str, Expected]

    def objects(self) -> list[dict]:
        """The documents of the manifest, in the order of the file."""
        return [document for document in yaml.safe_load_all((DIRECTORY / self.manifest).read_text()) if document]


class Examples(BaseModel):
    """`expected.yaml`: the manifests of the user documentation, and further ones of ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    documented: tuple[Example, ...]
    further: tuple[Example, ...]


@dataclass(frozen=True)
class Outcome:
    """One pod of an example: where it is, and every way in which that is not what it must be."""

    manifest: str
    expected: Expected
    placement: Placement
    faults: tuple[str, ...]


def load() -> Examples:
    """The examples of the project."""
    return Examples.model_validate(yaml.safe_load((DIRECTORY / "expected.yaml").read_text()))


def apply(api: Api, examples: Iterable[Example]) -> None:
    """Apply every manifest; raises ExampleError with the server's own words if one is refused."""
    for example in examples:
        for obj in example.objects():
            try:
                api.apply(obj)
            except ApiError as error:
                raise ExampleError(f"examples/{example.manifest}: {error.message}") from None


def delete(api: Api, examples: Iterable[Example]) -> None:
    """Delete every object of the manifests, pods first; what is not there is passed over."""
    for example in examples:
        for obj in reversed(example.objects()):
            meta = obj["metadata"]
            api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"))


def run(api: Api, examples: Iterable[Example], seconds: float, report: Report) -> list[Outcome]:
    """Apply the manifests, wait until their pods run, and compare. A pod that does not run in time is a fault."""
    chosen = list(examples)
    apply(api, chosen)
    wanted = [(example, name, expected) for example in chosen for name, expected in example.pods.items()]
    pods = _await_running(api, [_key(example, name) for example, name, _ in wanted], seconds, report)
    inventory = Inventory.read(api)
    return [
        _compare(api, example.manifest, name, expected, pods[_key(example, name)], inventory)
        for example, name, expected in wanted
    ]


def _key(example: Example, name: str) -> tuple[str, str]:
    for obj in example.objects():
        if obj["kind"] == "Pod" and obj["metadata"]["name"] == name:
            return obj["metadata"].get("namespace", "default"), name
    raise ExampleError(f"examples/expected.yaml names the pod {name}, which examples/{example.manifest} does not have")


def _await_running(
    api: Api, keys: list[tuple[str, str]], seconds: float, report: Report
) -> dict[tuple[str, str], dict | None]:
    deadline = time.monotonic() + seconds
    running = -1
    while True:
        pods = {key: api.get("v1", "Pod", key[1], key[0]) for key in keys}
        count = sum(_phase(pod) in ("Running", "Succeeded") for pod in pods.values())
        if count != running:
            running = count
            report(f"{count} of {len(keys)} pods run")
        if count == len(keys) or time.monotonic() > deadline:
            return pods
        time.sleep(0.2)


def _phase(pod: dict | None) -> str:
    return pod.get("status", {}).get("phase", "") if pod else ""


def _compare(api: Api, manifest: str, name: str, expected: Expected, pod: dict | None, inventory: Inventory) -> Outcome:
    if pod is None or _phase(pod) not in ("Running", "Succeeded"):
        found = placement.read(api, pod, inventory) if pod else Placement(name, None, "absent")
        return Outcome(manifest, expected, found, (f"does not run: {placement.why_not_running(pod)}",))
    found = placement.read(api, pod, inventory)
    return Outcome(manifest, expected, found, tuple(faults(expected, found)))


def faults(expected: Expected, found: Placement) -> Iterator[str]:
    """Every way in which a placement is not the expected one, each as a sentence's rest."""
    keys = sorted(model.key if model else "unknown" for model in found.models)
    if keys != [expected.model]:
        yield f"is on {', '.join(keys) or 'no device'} instead of {expected.model}"
    if len(found.devices) != expected.devices:
        yield f"has {len(found.devices)} devices instead of {expected.devices}"
    if found.routes != (expected.route,):
        yield f"asked by {', '.join(found.routes) or 'nothing'} instead of {expected.route}"
    profiles = {device.profile for device in found.devices}
    if profiles != {expected.profile}:
        yield f"has {_names(profiles)} instead of {expected.profile or 'whole GPUs'}"
    if expected.domains is not None and len(found.nvlink_domains) != expected.domains:
        domains = {domain.name if domain else None for domain in found.nvlink_domains}
        yield f"is spread over the NVLink domains {_names(domains)}; allowed: {expected.domains}"


def _names(values: Iterable[str | None]) -> str:
    return ", ".join(sorted(value or "none" for value in values))
