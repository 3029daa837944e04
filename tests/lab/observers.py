"""What is seen of a cluster while something is done to it: claims that are made, plugin pods, ResourceSlices."""

import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Set
from pathlib import Path
from typing import Any, Self

from berkelium_lab.api import Api, connect
from tests.lab import workloads

Object = dict[str, Any]


class _Thread:
    """Something that runs beside the test until the `with` ends; what it raises is raised then."""

    def __init__(self, kubeconfig: Path) -> None:
        self.api: Api = connect(kubeconfig)
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(60)
        if self._error is not None:
            raise self._error

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._error = error

    def _run(self) -> None:
        raise NotImplementedError


class Customers(_Thread):
    """Users who take a GPU of each model in turn, use it for a moment, and take the next.

    `served` counts by model, `during` all until the last round; `longest` is the longest wait in seconds, that of
    `slowest`.
    """

    def __init__(self, kubeconfig: Path, namespace: str, classes: dict[str, str]) -> None:
        super().__init__(kubeconfig)
        self._namespace, self._classes = namespace, classes
        self._name = f"customer-{secrets.token_hex(2)}"
        self.served: dict[str, int] = defaultdict(int)
        self.during = 0
        self.longest, self.slowest = 0.0, ""

    def serve_once_more(self) -> None:
        """End the round that is on, and serve one more by what is deployed now, which `during` does not count."""
        self._done.set()
        self._thread.join(60)
        self.during = sum(self.served.values())
        for model in self._classes:
            self._serve(model)

    def _run(self) -> None:
        while not self._done.is_set():
            for model in self._classes:
                self._serve(model)

    def _serve(self, model: str) -> None:
        name = f"{self._name}-{model}-{self.served[model]}"
        workloads.create(self.api, workloads.claiming(self._namespace, name, self._classes[model]))
        started = time.monotonic()
        placed = workloads.running(self.api, self._namespace, name)
        waited = time.monotonic() - started
        assert [device.model.key for device in placed.devices if device.model] == [model]
        if waited > self.longest:
            self.longest, self.slowest = waited, name
        self.served[model] += 1
        workloads.remove(self.api, self._namespace, name)


class PluginWatch(_Thread):
    """The plugin pods of a namespace that have the label, from a watch that misses no change.

    `nodes` had one at the beginning; `replaced_on` are those where another pod runs since; `doubled` those where two
    ran at the same time.
    """

    def __init__(self, kubeconfig: Path, namespace: str, label: str) -> None:
        super().__init__(kubeconfig)
        self._where = ("v1", "Pod", namespace, label)
        pods, self._version = self.api.list_with_version("v1", "Pod", namespace, label_selector=label)
        self._running: dict[str, set[str]] = defaultdict(set)
        for pod in pods:
            self._note("ADDED", pod)
        self.nodes = {node for node, names in self._running.items() if names}
        self.replaced_on: set[str] = set()
        self.doubled: set[str] = set()
        self._without: list[frozenset[str]] = []

    def at_once(self, without: Set[str] = frozenset()) -> int:
        """On how many nodes, `without` left out, no plugin ran at the same time, at most."""
        return max((len(nodes - without) for nodes in self._without), default=0)

    def _run(self) -> None:
        api_version, kind, namespace, label = self._where
        while not self._done.is_set():
            events = self.api.watch(
                api_version, kind, namespace, label_selector=label, resource_version=self._version, seconds=1
            )
            for event, pod in events:
                self._version = pod["metadata"]["resourceVersion"]
                self._note(event, pod)
                self._without.append(frozenset(node for node in self.nodes if not self._running[node]))

    def _note(self, event: str, pod: Object) -> None:
        node, name = pod["spec"].get("nodeName", ""), pod["metadata"]["name"]
        runs = event != "DELETED" and (pod.get("status") or {}).get("phase") == "Running"
        if not runs:
            self._running[node].discard(name)
        elif name not in self._running[node]:
            self._running[node].add(name)
            if hasattr(self, "nodes"):
                self.replaced_on.add(node)
                if len(self._running[node]) > 1:
                    self.doubled.add(node)


class SliceWatch(_Thread):
    """ResourceSlices by node and driver, from a watch: `emptied` tells how long which had none."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(kubeconfig)
        slices, self._version = self.api.list_with_version("resource.k8s.io/v1", "ResourceSlice")
        self._held: dict[tuple[str, str], set[str]] = defaultdict(set)
        for piece in slices:
            self._held[self._key(piece)].add(piece["metadata"]["name"])
        self._since: dict[tuple[str, str], float] = {}
        self.emptied: dict[tuple[str, str], float] = {}

    @staticmethod
    def _key(piece: Object) -> tuple[str, str]:
        return piece["spec"].get("nodeName", ""), piece["spec"]["driver"]

    def _run(self) -> None:
        while not self._done.is_set():
            events = self.api.watch("resource.k8s.io/v1", "ResourceSlice", resource_version=self._version, seconds=1)
            for event, piece in events:
                self._version = piece["metadata"]["resourceVersion"]
                key, now = self._key(piece), time.monotonic()
                if event == "DELETED":
                    self._held[key].discard(piece["metadata"]["name"])
                else:
                    self._held[key].add(piece["metadata"]["name"])
                if not self._held[key]:
                    self._since.setdefault(key, now)
                elif key in self._since:
                    gap = now - self._since.pop(key)
                    self.emptied[key] = max(gap, self.emptied.get(key, 0.0))
