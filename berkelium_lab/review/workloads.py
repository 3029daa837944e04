"""The documented workloads, tried in a lab: which run and on what, which find no place, which are refused."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from berkelium_lab import placement
from berkelium_lab.api import Api, ApiError, Object
from berkelium_lab.placement import Inventory
from berkelium_lab.review.errors import ReviewError
from berkelium_lab.review.model import Outcome, State, WorkloadChange
from berkelium_lab.review.trees import EXAMPLES
from berkelium_lab.wait import NotYet, until

SECONDS = 60
"""How long a pod may take until it runs or the scheduler's refusal has lasted."""

LASTING_SECONDS = 3.0
"""How long the scheduler must go on finding no place: at first it also waits for the pod's claims to be made."""

_NOT_A_MANIFEST = ("expected.yaml",)


@dataclass(frozen=True)
class Manifest:
    """One file of the examples; `name` is relative to the project."""

    name: str
    objects: tuple[Object, ...]

    @property
    def pods(self) -> list[Object]:
        """The pods that it makes directly."""
        return [obj for obj in self.objects if obj["kind"] == "Pod"]

    @property
    def subjects(self) -> list[str]:
        """What its outcomes are about: the pods, or everything where there is none."""
        names = [pod["metadata"]["name"] for pod in self.pods]
        return names or [", ".join(f"{obj['kind']} {obj['metadata']['name']}" for obj in self.objects)]


def read(directory: Path) -> dict[str, Manifest]:
    """The manifests below `examples/` of a tree, by name; none where there are no examples."""
    found = {}
    for path in sorted((directory / EXAMPLES).rglob("*.yaml")):
        if path.name in _NOT_A_MANIFEST:
            continue
        name = path.relative_to(directory).as_posix()
        try:
            documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
        except yaml.YAMLError as error:
            raise ReviewError(f"{name} is no YAML: {error}") from None
        if all(_is_object(document) for document in documents):
            found[name] = Manifest(name, tuple(documents))
    return found


def rounds(before: dict[str, Manifest], after: dict[str, Manifest]) -> list[list[Manifest]]:
    """What to try in either state, one round after the other: the manifests as users have them from the base revision,
    then those that the change adds or edits.
    """
    edited = [
        Manifest(f"{name} (as edited)" if name in before else name, manifest.objects)
        for name, manifest in after.items()
        if before.get(name) is None or before[name].objects != manifest.objects
    ]
    return [each for each in (list(before.values()), edited) if each]


def _is_object(document: object) -> bool:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    return isinstance(document, dict) and "kind" in document and isinstance(metadata, dict) and "name" in metadata


def try_all(api: Api, manifests: list[Manifest]) -> list[Outcome]:
    """Apply the manifests together, wait until every pod's fate is decided, and take all of it away again."""
    outcomes: list[Outcome] = []
    waiting: list[tuple[Manifest, str, str, list[str]]] = []
    try:
        for manifest in manifests:
            warnings: list[str] = []
            refusal = _apply(api, manifest, warnings)
            if refusal or not manifest.pods:
                state: State = "refused" if refusal else "admitted"
                fate = {"state": state, "message": refusal, "warnings": warnings}
                outcomes += [Outcome(manifest=manifest.name, pod=subject, **fate) for subject in manifest.subjects]
                continue
            for pod in manifest.pods:
                waiting.append((manifest, pod["metadata"]["name"], _namespace(pod), warnings))
        decided = _await(api, [(namespace, name) for _, name, namespace, _ in waiting])
        inventory = Inventory.read(api)
        for manifest, name, namespace, warnings in waiting:
            state, pod = decided[namespace, name]
            outcomes.append(_outcome(api, manifest, state, name, pod, inventory, warnings))
    finally:
        _remove(api, manifests)
    return sorted(outcomes, key=lambda outcome: (outcome.manifest, outcome.pod))


def changes(before: list[Outcome], after: list[Outcome]) -> list[WorkloadChange]:
    """The workloads whose outcome differs, whatever the nodes and the words."""
    old, new = ({(each.manifest, each.pod): each for each in outcomes} for outcomes in (before, after))
    found = []
    for key in sorted({*old, *new}):
        one, other = old.get(key), new.get(key)
        if one is None or other is None or one.result() != other.result():
            found.append(
                WorkloadChange(manifest=key[0], pod=key[1], verdict=_verdict(one, other), before=one, after=other)
            )
    return found


def _verdict(before: Outcome | None, after: Outcome | None) -> str:
    if before is None or after is None:
        return "new" if before is None else "no longer documented"
    if before.state != after.state:
        return "newly runs" if after.state == "runs" else f"newly {after.state}"
    if before.warnings != after.warnings and before.devices == after.devices and before.routes == after.routes:
        return "other warnings"
    return "runs differently"


def _apply(api: Api, manifest: Manifest, warnings: list[str]) -> str:
    """Apply the objects; the server's own words when it refuses one, else nothing."""
    for obj in manifest.objects:
        try:
            api.apply(obj, warnings=warnings)
        except ApiError as error:
            return error.message
    return ""


def _await(api: Api, keys: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[State, Object | None]]:
    """The fate of every pod: it runs, or the scheduler's refusal has lasted, or time is up."""
    refused_since: dict[tuple[str, str], float] = {}
    fates: dict[tuple[str, str], tuple[State, Object | None]] = {}

    def probe() -> bool:
        for key in keys:
            pod = api.get("v1", "Pod", key[1], key[0])
            fates[key] = _fate(pod), pod
            if fates[key][0] == "unschedulable":
                refused_since.setdefault(key, time.monotonic())
            else:
                refused_since.pop(key, None)
        lasting = [time.monotonic() - refused_since[key] >= LASTING_SECONDS for key in refused_since]
        open_ = [key for key in keys if fates[key][0] == "undecided"]
        if open_ or not all(lasting):
            raise NotYet(f"{len(open_)} of {len(keys)} pods are undecided")
        return True

    # What is undecided by then stays so in the outcome.
    with suppress(TimeoutError):
        until(probe, "every pod's fate is decided", SECONDS, interval=0.2)
    return fates


def _fate(pod: Object | None) -> State:
    if pod and pod.get("status", {}).get("phase") in ("Running", "Succeeded"):
        return "runs"
    for condition in (pod or {}).get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") in ("Unschedulable", "SchedulerError"):
            return "unschedulable"
    return "undecided"


def _outcome(
    api: Api,
    manifest: Manifest,
    state: State,
    name: str,
    pod: Object | None,
    inventory: Inventory,
    warnings: list[str],
) -> Outcome:
    if state != "runs" or pod is None:
        # What the scheduler adds on preemption says the same for every pod.
        message = placement.why_not_running(pod).partition(" preemption:")[0]
        return Outcome(manifest=manifest.name, pod=name, state=state, message=message, warnings=warnings)
    given = placement.read(api, pod, inventory)
    sorts = Counter(_sort(device) for device in given.devices)
    return Outcome(
        manifest=manifest.name,
        pod=name,
        state=state,
        devices=dict(sorted(sorts.items())),
        # Without the alternative that was chosen, which depends on what else was running.
        routes=sorted({request.partition(" (")[0] for request in given.requests}),
        warnings=warnings,
    )


def _sort(device: placement.Device) -> str:
    title = device.model.title if device.model else "unknown model"
    return f"{title} {device.profile}" if device.profile else title


def _namespace(obj: Object) -> str:
    return obj["metadata"].get("namespace", "default")


def _remove(api: Api, manifests: list[Manifest]) -> None:
    """Delete the objects and wait until the devices of the pods are free again."""
    for manifest in reversed(manifests):
        for obj in reversed(manifest.objects):
            grace = 0 if obj["kind"] == "Pod" else None
            arguments: tuple[Any, ...] = (obj["apiVersion"], obj["kind"], obj["metadata"]["name"], _namespace(obj))
            try:
                api.delete(*arguments, grace_seconds=grace)
            except ApiError as error:
                # A kind that this state of the program does not install.
                if error.status != 404:
                    raise
    pods = {(_namespace(pod), pod["metadata"]["name"]) for manifest in manifests for pod in manifest.pods}
    until(_gone(api, pods), "the tried pods and their claims are gone", SECONDS)


def _gone(api: Api, pods: set[tuple[str, str]]) -> Callable[[], bool]:
    def probe() -> bool:
        left = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in api.list("v1", "Pod")} & pods
        claims = api.list("resource.k8s.io/v1", "ResourceClaim")
        if left or claims:
            names = [name for _, name in sorted(left)] + [claim["metadata"]["name"] for claim in claims]
            raise NotYet(f"still there: {', '.join(names)}")
        return True

    return probe
