"""The pods that stand for programs which the simulator plays, told apart as the charts and operators make them."""

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Role(Enum):
    """What a pod would run."""

    NFD_WORKER = "nfd-worker"
    NFD_MASTER = "nfd-master"
    NFD_PRUNE = "nfd-prune"
    NVIDIA_PLUGIN = "NVIDIA kubelet plugin"
    AMD_OPERATOR = "AMD GPU operator"
    AMD_PLUGIN = "AMD kubelet plugin"
    AMD_LABELLER = "AMD node labeller"
    AMD_HOOK = "hook of the AMD GPU operator's chart"


@dataclass(frozen=True)
class Container:
    """One container, its environment reduced to plain values."""

    name: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: dict[str, str]

    @property
    def tag(self) -> str:
        """The tag of the image, a digest left out; empty without a tag."""
        return self.image.split("@")[0].rpartition("/")[2].partition(":")[2]

    @property
    def repository(self) -> str:
        """The last part of the image's name."""
        return self.image.split("@")[0].rpartition("/")[2].partition(":")[0]


@dataclass(frozen=True)
class Pod:
    """A pod with a role."""

    role: Role
    name: str
    namespace: str
    uid: str
    node: str
    phase: str
    deleted: bool
    created: str
    service_account: str
    owners: tuple[dict[str, Any], ...]
    containers: tuple[Container, ...]
    config_maps: tuple[str, ...]

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def running(self) -> bool:
        """Whether its programs run."""
        return self.phase == "Running" and not self.deleted

    def container(self, name: str) -> Container | None:
        """The container of that name."""
        return next((container for container in self.containers if container.name == name), None)


def pod(obj: dict[str, Any]) -> Pod | None:
    """Reads a Pod; None for one that no part of the simulator plays."""
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    containers = tuple(_container(entry) for entry in spec["containers"])
    role = _role(metadata.get("labels") or {}, containers)
    if role is None:
        return None
    return Pod(
        role=role,
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        node=spec.get("nodeName", ""),
        phase=status.get("phase", "Pending"),
        deleted="deletionTimestamp" in metadata,
        created=metadata["creationTimestamp"],
        service_account=spec.get("serviceAccountName", "default"),
        owners=tuple(metadata.get("ownerReferences") or ()),
        containers=containers,
        config_maps=tuple(v["configMap"]["name"] for v in spec.get("volumes") or () if "configMap" in v),
    )


def _container(entry: dict[str, Any]) -> Container:
    return Container(
        name=entry["name"],
        image=entry["image"],
        command=tuple(entry.get("command") or ()),
        args=tuple(entry.get("args") or ()),
        env={variable["name"]: variable.get("value", "") for variable in entry.get("env") or ()},
    )


_NFD_ROLES = {"worker": Role.NFD_WORKER, "master": Role.NFD_MASTER, "prune": Role.NFD_PRUNE}
# The label's key follows the chart's name, which changed with v0.4.0.
_NVIDIA_LABELS = ("nvidia-dra-driver-gpu-component", "dra-driver-nvidia-gpu-component")
_AMD_HOOKS = ("delete-custom-resource-definitions", "delete-leftover-deviceconfigs")


def _role(labels: dict[str, str], containers: tuple[Container, ...]) -> Role | None:
    if labels.get("app.kubernetes.io/name") == "node-feature-discovery":
        return _NFD_ROLES.get(labels.get("role", ""))
    names = {container.name for container in containers}
    if any(key in labels for key in _NVIDIA_LABELS) and names & {"gpus", "compute-domains"}:
        return Role.NVIDIA_PLUGIN
    first = containers[0]
    if first.name == "manager" and first.repository == "gpu-operator":
        return Role.AMD_OPERATOR
    if "gpu-kubeletplugin" in first.command:
        return Role.AMD_PLUGIN
    if first.name == "node-labeller-container":
        return Role.AMD_LABELLER
    return Role.AMD_HOOK if first.name in _AMD_HOOKS else None
