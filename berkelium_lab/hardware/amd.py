"""What the AMD DRA driver publishes for a node, and the labels of AMD's node labeller.

Sources: cmd/gpu-kubeletplugin/deviceinfo.go and docs/driver-attributes.md of ROCm/k8s-gpu-dra-driver (v1.0.x); the node
labeller of ROCm/k8s-device-plugin. No published slice of an MI100 is known: its shape is that of other models, with
what the driver reads on an MI100.
"""

import logging
from dataclasses import dataclass

from berkelium_infra import catalog
from berkelium_infra.catalog import GpuModel
from berkelium_lab.hardware.devices import (
    PCI_BUS_ID,
    PCIE_ROOT,
    Device,
    NothingPublished,
    Slice,
    integer,
    mebibytes,
    text,
    value,
    version,
)
from berkelium_lab.hardware.inventory import Gpu, NodeHardware

log = logging.getLogger(__name__)

DRIVER = catalog.AMD.driver
AMDGPU_VERSION = "6.14.14"

_SIMD_PER_COMPUTE_UNIT = 4
_FIRST_RENDER_NODE = 128


@dataclass(frozen=True)
class AmdDialect:
    """What one version of the AMD DRA driver does.

    `unpartitionable`: GPUs without compute partitions, such as the MI100, are published (v0.1.0 skips them).
    `full_driver_version`: the kernel module's version is published in full beside its first three parts.
    """

    version: str
    unpartitionable: bool
    full_driver_version: bool


AMD_DIALECTS = (
    AmdDialect("0.1.0", unpartitionable=False, full_driver_version=False),
    AmdDialect("1.0.0", unpartitionable=True, full_driver_version=False),
    AmdDialect("1.0.1", unpartitionable=True, full_driver_version=True),
)
"""Oldest first."""


def dialect(tag: str) -> AmdDialect:
    """The dialect of an image tag; an unknown one speaks like the newest, and the log says so."""
    number = tag.removeprefix("v").split("@")[0]
    for candidate in AMD_DIALECTS:
        if candidate.version == number:
            return candidate
    newest = AMD_DIALECTS[-1]
    log.warning("AMD DRA driver %s is unknown here; it publishes what %s does", tag or "without a tag", newest.version)
    return newest


def gpu_slices(hardware: NodeHardware, dialect: AmdDialect) -> list[Slice]:
    """The one slice of the node's pool of driver `gpu.amd.com`. Raises `NothingPublished`."""
    if hardware.model is None or hardware.model.vendor is not catalog.AMD:
        raise NothingPublished("the node has no AMD GPU")
    if not dialect.unpartitionable:
        raise NothingPublished(f"driver {dialect.version} skips GPUs without compute partitions")
    return [{"devices": [_device(gpu, dialect) for gpu in hardware.gpus]}]


def node_labels(model: GpuModel, count: int) -> dict[str, str]:
    """The labels that the node labeller sets with the flags that the operator gives it."""
    properties = {
        "cu-count": str(model.compute_units),
        "device-id": model.pci_devices[0],
        "family": "AI",
        "product-name": model.title.replace(" ", "_"),
        "simd-count": str(model.compute_units * _SIMD_PER_COMPUTE_UNIT),
        "vram": f"{round(model.memory_mib / 1024)}G",
    }
    labels: dict[str, str] = {}
    for name, setting in properties.items():
        labels[f"amd.com/gpu.{name}"] = setting
        labels[f"beta.amd.com/gpu.{name}"] = setting
        labels[f"beta.amd.com/gpu.{name}.{setting}"] = str(count)
    return labels


def _device(gpu: Gpu, dialect: AmdDialect) -> Device:
    attributes = {
        "type": text(gpu.model.vendor.gpu_type),
        "productName": text(gpu.model.product_name),
        "deviceID": text(gpu.model.device_ids[0]),
        "driverVersion": version(AMDGPU_VERSION),
        "numaNode": integer(0),
        PCI_BUS_ID: text(gpu.pci_bus_id),
        PCIE_ROOT: text(gpu.pcie_root),
    }
    if dialect.full_driver_version:
        attributes["driverVersionFull"] = text(AMDGPU_VERSION)
    return {
        "name": f"gpu-{gpu.index}-{_FIRST_RENDER_NODE + gpu.index}",
        "attributes": attributes,
        "capacity": {
            "memory": value(mebibytes(gpu.model.memory_mib)),
            "computeUnits": value(gpu.model.compute_units),
            "simdUnits": value(gpu.model.compute_units * _SIMD_PER_COMPUTE_UNIT),
        },
    }
