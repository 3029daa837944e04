"""The GPUs in each node of a fleet, with identities that are the same on every run."""

import uuid
from collections import Counter
from dataclasses import dataclass

from berkelium_infra.catalog import GpuModel
from berkelium_lab.fleet import Fleet, NodeGroup

_UUID_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "gpu.lab.berkelium.io")


@dataclass(frozen=True)
class Gpu:
    """One GPU in one node. `index` is its minor number; `nvlink_domain` the name of its NVLink domain, if any."""

    index: int
    model: GpuModel
    uuid: str
    pci_bus_id: str
    pcie_root: str
    nvlink_domain: str | None


@dataclass(frozen=True)
class NodeHardware:
    """What is built into one node; `mig_mode` is the MIG mode that its GPUs booted with."""

    node: str
    model: GpuModel | None = None
    gpus: tuple[Gpu, ...] = ()
    mig_mode: bool = False


def inventory(fleet: Fleet) -> dict[str, NodeHardware]:
    """The hardware of every node of the fleet, by node name."""
    return {name: _node(group, name) for group in fleet.node_groups for name in group.node_names}


def _node(group: NodeGroup, name: str) -> NodeHardware:
    model = group.gpu_model
    if model is None:
        return NodeHardware(name)
    roots = group.pcie_roots or tuple(_default_root(model, index) for index in range(group.gpus_per_node))
    behind: Counter[str] = Counter()
    gpus = []
    for index, root in enumerate(roots):
        gpus.append(Gpu(index, model, _uuid(name, index), _bus_id(root, behind[root]), root, _domain(model, index)))
        behind[root] += 1
    return NodeHardware(name, model, tuple(gpus), group.mig_mode)


def _default_root(model: GpuModel, index: int) -> str:
    for domain in model.nvlink_domains:
        if index in domain.gpus:
            return domain.pcie_roots[domain.gpus.index(index)]
    # Eight host bridges per PCI domain, spread as on an 8-GPU server.
    return f"pci{index // 8:04x}:{0x15 + 0x11 * (index % 8):02x}"


def _domain(model: GpuModel, index: int) -> str | None:
    return next((domain.name for domain in model.nvlink_domains if index in domain.gpus), None)


def _uuid(node: str, index: int) -> str:
    return f"GPU-{uuid.uuid5(_UUID_NAMESPACE, f'{node}/{index}')}"


def _bus_id(root: str, position: int) -> str:
    """The bus right below the host bridge `root`; GPUs that share the bridge are devices 0, 1, … on that bus."""
    domain, bus = root.removeprefix("pci").split(":")
    return f"{domain}:{int(bus, 16) + 1:02x}:{position:02x}.0"
