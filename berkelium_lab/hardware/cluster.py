"""What the simulator watches of the cluster."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from berkelium_lab.api import Api
from berkelium_lab.hardware import pods, slices
from berkelium_lab.hardware.informer import Informer
from berkelium_lab.hardware.pods import Pod, Role
from berkelium_lab.hardware.slices import PublishedSlice

HOOKS = (Role.NFD_PRUNE, Role.AMD_HOOK)
ENDED = ("Succeeded", "Failed")
NODE_FEATURES = "nodefeatures.nfd.k8s-sigs.io"
DEVICE_CONFIGS = "deviceconfigs.amd.com"


@dataclass(frozen=True)
class Node:
    """A node's identity and labels."""

    name: str
    uid: str
    labels: dict[str, str]


@dataclass(frozen=True)
class Crd:
    """A CustomResourceDefinition that is served."""

    name: str
    uid: str


@dataclass(frozen=True)
class NodeFeature:
    """A NodeFeature object: where it is and what it says."""

    name: str
    namespace: str
    node: str
    owners: tuple[dict[str, Any], ...]
    annotations: dict[str, str]
    spec: dict[str, Any]


class Cluster:
    """Local copies of the pods, nodes, slices and custom resources; `changed` is called whenever one changes."""

    def __init__(self, api: Api, changed: Callable[[], None]) -> None:
        self.hooks: deque[Pod] = deque()
        """Pods of a chart's hooks, each once: they end so soon that the copy may never show them."""
        self._hooks_seen: set[str] = set()
        self.pods: Informer[Pod] = Informer(api, "v1", "Pod", self._pod, changed)
        self.nodes: Informer[Node] = Informer(api, "v1", "Node", _node, changed)
        self.slices: Informer[PublishedSlice] = Informer(
            api, "resource.k8s.io/v1", "ResourceSlice", slices.published, changed
        )
        self.crds: Informer[Crd] = Informer(api, "apiextensions.k8s.io/v1", "CustomResourceDefinition", _crd, changed)
        self.node_features: Informer[NodeFeature] = Informer(
            api, "nfd.k8s-sigs.io/v1alpha1", "NodeFeature", _node_feature, changed, lambda: self.served(NODE_FEATURES)
        )
        self.device_configs: Informer[dict[str, Any]] = Informer(
            api, "amd.com/v1alpha1", "DeviceConfig", lambda obj: obj, changed, lambda: self.served(DEVICE_CONFIGS)
        )
        self._informers = (
            self.pods, self.nodes, self.slices, self.crds, self.node_features, self.device_configs,
        )  # fmt: skip

    def start(self) -> None:
        """Begin to watch."""
        for informer in self._informers:
            informer.start()

    def stop(self) -> None:
        """Take in no more changes."""
        for informer in self._informers:
            informer.stop()

    @property
    def synced(self) -> bool:
        """Whether every kind has been listed once: before that, absence means nothing."""
        return all(informer.synced for informer in self._informers)

    def running(self, role: Role) -> list[Pod]:
        """The running pods of a role that are on a node."""
        return [pod for pod in self.pods.items() if pod.role is role and pod.running and pod.node]

    def served(self, crd: str) -> bool:
        """Whether the CustomResourceDefinition of that name exists and is established."""
        return self.crds.get(crd) is not None

    def _pod(self, obj: dict[str, Any]) -> Pod | None:
        pod = pods.pod(obj)
        if pod is not None and pod.role in HOOKS and pod.phase not in ENDED and pod.uid not in self._hooks_seen:
            self._hooks_seen.add(pod.uid)
            self.hooks.append(pod)
        return pod

    def node_uids(self) -> dict[str, str]:
        """The UID of every node."""
        return {node.name: node.uid for node in self.nodes.items()}


def _node(obj: dict[str, Any]) -> Node:
    metadata = obj["metadata"]
    return Node(metadata["name"], metadata["uid"], metadata.get("labels") or {})


def _crd(obj: dict[str, Any]) -> Crd | None:
    conditions = (obj.get("status") or {}).get("conditions") or []
    established = any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)
    if not established or "deletionTimestamp" in obj["metadata"]:
        return None
    return Crd(obj["metadata"]["name"], obj["metadata"]["uid"])


def _node_feature(obj: dict[str, Any]) -> NodeFeature:
    metadata = obj["metadata"]
    return NodeFeature(
        name=metadata["name"],
        namespace=metadata["namespace"],
        node=(metadata.get("labels") or {}).get("nfd.node.kubernetes.io/node-name", ""),
        owners=tuple(metadata.get("ownerReferences") or ()),
        annotations=metadata.get("annotations") or {},
        spec=obj.get("spec") or {},
    )
