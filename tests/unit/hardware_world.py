"""A cluster for the simulator's controllers that holds what a test puts there and remembers what was written."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from berkelium_lab.api import Api, ApiError
from berkelium_lab.hardware import slices
from berkelium_lab.hardware.cluster import Cluster, Node
from berkelium_lab.hardware.informer import Informer
from berkelium_lab.hardware.pods import Container, Pod, Role
from berkelium_lab.hardware.publisher import Publisher
from berkelium_lab.hardware.slices import PublishedSlice


class World:
    """Nodes, pods and ResourceSlices in memory, behind the interfaces that controllers use.

    `refuse` makes the API server refuse slices for which it returns true. `log` has every write in order.
    """

    def __init__(self, *nodes: str) -> None:
        self.pods: list[Pod] = []
        self.nodes = list(nodes)
        self.log: list[tuple[str, Any]] = []
        self.refuse: Callable[[Any], bool] = lambda _: False
        self._number = 0
        self.slices: Informer[PublishedSlice] = Informer(
            self.api, "resource.k8s.io/v1", "ResourceSlice", slices.published, lambda: None
        )
        self.publisher = Publisher(self.api, self.slices)

    @property
    def api(self) -> Api:
        return cast(Api, self)

    @property
    def cluster(self) -> Cluster:
        nodes = {name: Node(name, f"uid-{name}", {}) for name in self.nodes}
        return cast(
            Cluster,
            SimpleNamespace(
                running=lambda role: [pod for pod in self.pods if pod.role is role and pod.running],
                node_uids=lambda: {name: node.uid for name, node in nodes.items()},
                nodes=SimpleNamespace(items=lambda: list(nodes.values()), put=lambda _: None),
            ),
        )

    def plugin(
        self, node: str, name: str = "plugin", gates: str = "", tag: str = "v25.12.0", created: str = "1"
    ) -> Pod:
        """Adds a running NVIDIA plugin pod."""
        container = Container("gpus", f"nvcr.io/x/y:{tag}", (), (), {"FEATURE_GATES": gates})
        return self.pod(Role.NVIDIA_PLUGIN, node, name, container, created)

    def pod(self, role: Role, node: str, name: str, container: Container, created: str = "1") -> Pod:
        """Adds a running pod."""
        self._number += 1
        pod = Pod(
            role=role, name=f"{name}-{node}", namespace="drivers", uid=f"pod-{self._number}", node=node,
            phase="Running", deleted=False, created=created, service_account="default", owners=(),
            containers=(container,), config_maps=(),
        )  # fmt: skip
        self.pods.append(pod)
        return pod

    def end(self, pod: Pod) -> None:
        """Marks a pod as being deleted."""
        self.pods[self.pods.index(pod)] = replace(pod, deleted=True)

    def held(self, node: str) -> list[PublishedSlice]:
        """The slices of a node."""
        return [published for published in self.slices.items() if published.node == node]

    # What the controllers call of the Api.

    def raw(self, _method: str, _path: str, _query: object, body: Any, _headers: object) -> Any:
        if self.refuse(body):
            self.log.append(("refused", body))
            raise ApiError(422, "Invalid", "spec.sharedCounters[0].counters: Required value", {})
        self._number += 1
        name = f"{body['metadata']['generateName']}{self._number:05d}"
        self.log.append(("created", body))
        return {"metadata": {**body["metadata"], "name": name, "resourceVersion": str(self._number)}}

    def delete(self, _api_version: str, _kind: str, name: str) -> None:
        self.log.append(("deleted", name))

    def patch(self, _api_version: str, kind: str, name: str, body: Any, *_: Any) -> Any:
        self.log.append(("patched", (kind, name, body)))
        return body

    def create(self, obj: Any) -> Any:
        self.log.append(("created", obj))
        return obj

    def written(self, verb: str) -> list[Any]:
        """What was written with that verb, in order."""
        return [what for did, what in self.log if did == verb]
