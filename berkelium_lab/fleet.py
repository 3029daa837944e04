"""The simulated fleet of a laboratory: node groups, read from YAML and checked before any process starts.

A fleet file is one mapping (see `fleet/berkelium.yaml`): `nodeGroups`, `nvlinkDomainAttribute` and, optionally,
`extends` with the name or path of another fleet, whose other keys it then takes over. GPU facts are not in the file:
a group names a model of the catalog.
"""

import re
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from berkelium_infra import catalog
from berkelium_infra.errors import UserError

_DNS_LABEL = r"^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$"
_QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i)?$"
_PCIE_ROOT = r"^pci[0-9a-f]{4}:([0-9a-e][0-9a-f]|f[0-9a-e])$"

Quantity = Annotated[str, StringConstraints(pattern=_QUANTITY)]
PcieRoot = Annotated[str, StringConstraints(pattern=_PCIE_ROOT)]


class FleetError(UserError):
    """A fleet file is missing or wrong; the text names the file, the key and what to write."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class Taint(_Section):
    """A taint of every node of a group."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class NodeGroup(_Section):
    """Equal nodes, named `<name>-1` to `<name>-<count>`.

    `model` is a key of the catalog, absent for nodes without GPUs. `pcie_roots` are the host bridges of a node's GPUs
    in the order of the GPUs (`pci<domain>:<bus>`), by default those of the model's NVLink domains, or else one of its
    own for each GPU. `mig_mode` is the MIG mode that the GPUs of the nodes boot with.
    """

    name: Annotated[str, StringConstraints(pattern=_DNS_LABEL)]
    count: int = Field(ge=1, le=10_000)
    model: str | None = None
    gpus_per_node: int = Field(default=0, ge=0, le=16)
    cpu: Quantity
    memory: Quantity
    pods: int = Field(default=110, ge=1)
    labels: dict[str, str] = Field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    pcie_roots: tuple[PcieRoot, ...] | None = None
    mig_mode: bool = False

    @model_validator(mode="after")
    def _hardware_is_consistent(self) -> "NodeGroup":
        if self.model is None:
            if self.gpus_per_node or self.pcie_roots or self.mig_mode:
                raise ValueError("gpusPerNode, pcieRoots and migMode need a model; add model: <key of the catalog>")
            return self
        try:
            model = catalog.model(self.model)
        except KeyError as error:
            raise ValueError(f"model: {error.args[0]}") from None
        if self.gpus_per_node == 0:
            raise ValueError(f"gpusPerNode is missing; write how many {model.title} each node has")
        if self.pcie_roots is not None and len(self.pcie_roots) != self.gpus_per_node:
            raise ValueError(
                f"pcieRoots has {len(self.pcie_roots)} entries for {self.gpus_per_node} GPUs; write one for each GPU"
            )
        if self.mig_mode and not model.mig_capable:
            raise ValueError(f"migMode is true, but {model.title} has no MIG; remove migMode")
        return self

    @property
    def gpu_model(self) -> catalog.GpuModel | None:
        """The catalog's entry of `model`."""
        return None if self.model is None else catalog.model(self.model)

    @property
    def node_names(self) -> tuple[str, ...]:
        """The names of the group's nodes."""
        return tuple(f"{self.name}-{number}" for number in range(1, self.count + 1))


class Fleet(_Section):
    """All nodes of a laboratory.

    With `nvlink_domain_attribute`, a GPU in an NVLink domain carries the domain's name in
    `catalog.NVLINK_DOMAIN_ATTRIBUTE` beside what the upstream driver publishes.
    """

    nvlink_domain_attribute: bool
    node_groups: tuple[NodeGroup, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _node_names_are_unique(self) -> "Fleet":
        seen: set[str] = set()
        for group in self.node_groups:
            for name in group.node_names:
                if name in seen:
                    raise ValueError(f"nodeGroups: two nodes would be named {name}; rename a group")
                seen.add(name)
        return self


def load(fleet: Path | str) -> Fleet:
    """The fleet of that name (a file packaged with the laboratory) or path. Raises `FleetError`."""
    path = _path(fleet)
    values = _merged(path, ())
    try:
        return Fleet.model_validate(values)
    except ValidationError as error:
        raise FleetError(_explain(path, error)) from None


def packaged() -> tuple[str, ...]:
    """The names of the fleets that come with the laboratory."""
    return tuple(sorted(path.stem for path in _directory().glob("*.yaml")))


def nodes(fleet: Fleet) -> list[dict[str, Any]]:
    """The Node manifests of the fleet, to be created (not applied: server-side apply would drop the status).

    They carry no GPU label and no GPU in their allocatable resources: both are for the deployment to bring about.
    """
    return [_node(group, name) for group in fleet.node_groups for name in group.node_names]


def _node(group: NodeGroup, name: str) -> dict[str, Any]:
    resources_of_node = {
        "cpu": group.cpu,
        "memory": group.memory,
        "pods": str(group.pods),
        "ephemeral-storage": "1Ti",
    }
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, **group.labels}},
        "spec": {},
        "status": {"capacity": resources_of_node, "allocatable": dict(resources_of_node)},
    }
    if group.taints:
        manifest["spec"]["taints"] = [taint.model_dump(exclude_defaults=True) for taint in group.taints]
    return manifest


def _directory() -> Path:
    return Path(str(resources.files("berkelium_lab") / "fleet"))


def _path(fleet: Path | str, relative_to: Path | None = None) -> Path:
    """A packaged fleet by its name, anything else by its path."""
    text = str(fleet)
    if re.fullmatch(r"[A-Za-z0-9_-]+", text):
        candidate = _directory() / f"{text}.yaml"
        if candidate.is_file():
            return candidate
    path = Path(text).expanduser()
    if relative_to is not None:
        path = relative_to / path
    if not path.is_file():
        raise FleetError(f"{text}: no such fleet; write a path to a fleet file or one of {', '.join(packaged())}")
    return path.resolve()


def _merged(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    if path in below:
        raise FleetError(f"{path}: extends: the file extends itself; remove extends")
    values = _read(path)
    base = values.pop("extends", None)
    if base is None:
        return values
    if not isinstance(base, str):
        raise FleetError(f"{path}: extends: write the name or path of one fleet, not {base!r}")
    return {**_merged(_path(base, path.parent), (*below, path)), **values}


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise FleetError(f"{path}: cannot be read as YAML: {error}") from None
    if not isinstance(values, dict):
        raise FleetError(f"{path}: expected a mapping with nodeGroups and nvlinkDomainAttribute")
    return values


def _explain(path: Path, error: ValidationError) -> str:
    faults = []
    for fault in error.errors():
        key = ".".join(f"[{part}]" if isinstance(part, int) else str(part) for part in fault["loc"]).replace(".[", "[")
        text = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            text = "unknown key; remove it or mend its spelling"
        elif fault["type"] == "missing":
            text = "is missing"
        elif fault["type"] != "value_error":
            text = f"{text}, not {fault['input']!r}"
        faults.append(f"{path}: {key}: {text}" if key else f"{path}: {text}")
    return "\n".join(faults)
