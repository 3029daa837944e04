"""Witnesses of a change to a running cluster: one sees every event of a kind, one keeps asking for GPUs."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from berkelium_lab.api import Api
from berkelium_lab.wait import until
from tests.lab import workloads

CLASS = ("resource.k8s.io/v1", "DeviceClass")
_LAST = "last-event"


@dataclass
class Classes:
    """What happened to the device classes: UIDs at the beginning, then every event as type, name and UID."""

    before: dict[str, str]
    events: list[tuple[str, str, str]] = field(default_factory=list)

    def missing(self) -> dict[str, str]:
        """Classes that were there at the beginning and for any moment were not, with what happened to them."""
        return {
            name: f"{kind} {uid}"
            for kind, name, uid in self.events
            if name in self.before and (kind == "DELETED" or uid != self.before[name])
        }


@contextmanager
def watched_classes(api: Api) -> Iterator[Classes]:
    """Watch every device class without a gap from now until the end of the block."""
    existing, version = api.list_with_version(*CLASS)
    seen = Classes({each["metadata"]["name"]: each["metadata"]["uid"] for each in existing})

    def watch() -> None:
        for kind, obj in api.watch(*CLASS, resource_version=version, seconds=600):
            if kind == "BOOKMARK":
                continue
            if obj["metadata"]["name"] == _LAST:
                return
            seen.events.append((kind, obj["metadata"]["name"], obj["metadata"]["uid"]))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        # When the watch has seen this one, it has seen everything before it.
        selector = {"cel": {"expression": "false"}}
        api.create(
            {"apiVersion": CLASS[0], "kind": CLASS[1], "metadata": {"name": _LAST}, "spec": {"selectors": [selector]}}
        )
        thread.join(30)
        api.delete(*CLASS, _LAST)
        assert not thread.is_alive(), "the watch on the device classes has ended early or hangs"


@dataclass
class Demand:
    """Pods that asked for a GPU one after the other: seconds until each ran, and what went wrong."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@contextmanager
def steady_demand(api: Api, namespace: str) -> Iterator[Demand]:
    """Until the end of the block a pod after the other asks for a GPU, by claim and by extended resource in turn."""
    demand, stop = Demand(), threading.Event()
    routes = itertools.cycle(
        [
            {"device_class": "gpu.nvidia.com"},
            {"resource": "nvidia.com/gpu"},
            {"device_class": "nvidia-h100"},
            {"resource": "nvidia.com/h100"},
        ]
    )

    def ask() -> None:
        for number, route in enumerate(routes):
            if stop.is_set():
                return
            name, started = f"demand-{number}", time.monotonic()
            try:
                workloads.create(api, _objects(namespace, name, **route))
                workloads.running(api, namespace, name, 60)
                demand.seconds.append(time.monotonic() - started)
                workloads.remove(api, namespace, name)
            except Exception as error:
                demand.failures.append(f"{name} {route}: {error}")
                return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        until(lambda: demand.seconds or demand.failures, "the first pod of the steady demand runs", 60)
        yield demand
    finally:
        stop.set()
        thread.join(120)
        assert not thread.is_alive(), "the steady demand hangs"


def _objects(namespace: str, name: str, device_class: str = "", resource: str = "") -> list[dict]:
    if device_class:
        return workloads.claiming(namespace, name, device_class)
    return [workloads.pod(namespace, name, limits={resource: "1"})]
