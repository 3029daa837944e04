"""What the NVIDIA DRA driver publishes for a node: pure functions from hardware, version and gates to slices.

Sources: cmd/gpu-kubelet-plugin/{driver,partitions,mig,deviceinfo}.go of the versions in `nvidia_dialects.DIALECTS`;
attribute values as in ResourceSlices of real nodes with GPU driver 580.126.20.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

from berkelium_infra import catalog
from berkelium_infra.catalog import GpuModel
from berkelium_infra.gpu import MigProfile
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
from berkelium_lab.hardware.nvidia_dialects import DYNAMIC_MIG, Dialect

DRIVER = catalog.NVIDIA.driver
COMPUTE_DOMAIN_DRIVER = "compute-domain.nvidia.com"

GPU_DRIVER_VERSION = "580.126.20"
CUDA_DRIVER_VERSION = "13.0.0"
ADDRESSING_MODE = "HMM"

_SPLIT_SINCE = (1, 35)

_CAPACITIES = {
    "memory": "memory_mib",
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy_engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpeg_engines",
    "ofaEngines": "ofa_engines",
}


def gpu_slices(
    hardware: NodeHardware,
    dialect: Dialect,
    gates: Mapping[str, bool],
    server: tuple[int, int],
    nvlink_domain_attribute: bool,
) -> list[Slice]:
    """The slices of the node's pool of driver `gpu.nvidia.com`, in order.

    `server` is the API server's (major, minor): from 1.35 on it refuses counters and devices in one slice.
    `nvlink_domain_attribute` adds `catalog.NVLINK_DOMAIN_ATTRIBUTE` to every device of a GPU in an NVLink domain, which
    upstream does not. Raises `NothingPublished`.
    """
    if not hardware.gpus or hardware.model is None or hardware.model.vendor is not catalog.NVIDIA:
        raise NothingPublished("the node has no NVIDIA GPU")
    node = _Node(hardware, hardware.model, dialect, nvlink_domain_attribute)
    if not gates[DYNAMIC_MIG]:
        return node.whole_gpus()
    return node.dynamic_mig(split=server >= _SPLIT_SINCE)


def compute_domain_slices() -> list[Slice]:
    """The slice of driver `compute-domain.nvidia.com`, published by container `compute-domains`."""
    kinds = ("daemon", "channel")
    return [
        {"devices": [{"name": f"{k}-0", "attributes": {"id": integer(0), "type": text(k)}} for k in kinds]},
    ]


def mig_device_name(gpu_index: int, profile: MigProfile, start: int) -> str:
    """For instance `gpu-4-mig-1g18gb-19-0`: GPU, profile, GPU instance profile id, first memory slice."""
    compact = re.sub(r"[^a-z0-9-]", "-", profile.name.lower().replace(".", ""))
    return f"gpu-{gpu_index}-mig-{compact}-{profile.gi_profile_id}-{start}"


class _Node:
    def __init__(
        self, hardware: NodeHardware, model: GpuModel, dialect: Dialect, nvlink_domain_attribute: bool
    ) -> None:
        self._hardware = hardware
        self._model = model
        self._dialect = dialect
        self._nvlink_domain_attribute = nvlink_domain_attribute

    def whole_gpus(self) -> list[Slice]:
        """Without DynamicMIG: one slice. A GPU in MIG mode without MIG devices is left out."""
        if self._hardware.mig_mode:
            raise NothingPublished("the GPUs are in MIG mode and have no MIG devices")
        devices = [self._whole(gpu) for gpu in self._hardware.gpus]
        # The driver walks a Go map: it begins anywhere. A node begins at the same place every time.
        first = sha256(self._hardware.node.encode()).digest()[0] % len(devices)
        return [{"devices": devices[first:] + devices[:first]}]

    def dynamic_mig(self, split: bool) -> list[Slice]:
        if not self._model.mig_capable:
            if self._dialect.whole_gpu_without_mig:
                return self._uncounted()
            raise NothingPublished(
                f"{self._model.product_name} cannot do MIG: with DynamicMIG, driver {self._dialect.version} writes an "
                "empty counter set (spec.sharedCounters[0].counters: Required value)"
            )
        fixed = self._model.architecture in self._dialect.fixed_mig_mode
        if fixed and not self._hardware.mig_mode:
            return self._uncounted()
        devices = [self._partitions(gpu, with_whole=not fixed) for gpu in self._hardware.gpus]
        return _sliced(self._hardware.gpus, devices, split)

    def _uncounted(self) -> list[Slice]:
        """With DynamicMIG, GPUs that offer no MIG devices: one slice each."""
        return [{"devices": [self._whole(gpu)]} for gpu in self._hardware.gpus]

    def _whole(self, gpu: Gpu) -> Device:
        """A whole GPU that no MIG device competes with."""
        attributes = {
            "type": text("gpu"),
            "uuid": text(gpu.uuid),
            **self._common(gpu),
            **self._addressing(),
            **_pcie_root(gpu),
        }
        return {
            "name": f"gpu-{gpu.index}",
            "attributes": attributes,
            "capacity": {"memory": value(mebibytes(self._model.memory_mib))},
        }

    def _partitions(self, gpu: Gpu, with_whole: bool) -> list[Device]:
        """Every MIG device that the GPU can be cut into and, with `with_whole`, the GPU itself; sorted by name."""
        devices = [self._mig(gpu, profile, start) for profile in self._model.mig_profiles for start in profile.starts]
        if with_whole:
            devices.append(self._partitionable(gpu))
        return sorted(devices, key=lambda device: device["name"])

    def _partitionable(self, gpu: Gpu) -> Device:
        attributes = {"type": text("gpu"), "uuid": text(gpu.uuid), **self._common(gpu), **_pcie_root(gpu)}
        if self._dialect.full_dynamic_attributes:
            attributes |= self._addressing()
        full = _full_capacity(self._model)
        return _counted(gpu, f"gpu-{gpu.index}", attributes, full, range(_memory_slices(self._model)))

    def _mig(self, gpu: Gpu, profile: MigProfile, start: int) -> Device:
        attributes = {
            "type": text("mig"),
            "parentUUID": text(gpu.uuid),
            "profile": text(profile.name),
            **self._common(gpu),
        }
        if self._dialect.full_dynamic_attributes:
            attributes |= {**self._addressing(), **_pcie_root(gpu)}
        name = mig_device_name(gpu.index, profile, start)
        return _counted(gpu, name, attributes, _capacity(profile), range(start, start + profile.size))

    def _common(self, gpu: Gpu) -> dict[str, dict[str, str]]:
        attributes = {
            "productName": text(self._model.product_name),
            "brand": text("Nvidia"),
            "architecture": text(self._model.architecture),
            "cudaComputeCapability": version(self._model.compute_capability),
            "driverVersion": version(GPU_DRIVER_VERSION),
            "cudaDriverVersion": version(CUDA_DRIVER_VERSION),
            PCI_BUS_ID: text(gpu.pci_bus_id),
        }
        if self._nvlink_domain_attribute and gpu.nvlink_domain is not None:
            attributes[catalog.NVLINK_DOMAIN_ATTRIBUTE] = text(gpu.nvlink_domain)
        return attributes

    def _addressing(self) -> dict[str, dict[str, str]]:
        return {"addressingMode": text(ADDRESSING_MODE)}


def _sliced(gpus: Iterable[Gpu], devices: list[list[Device]], split: bool) -> list[Slice]:
    """Counters first and one slice per GPU; or, for an older API server, both together per GPU."""
    counter_sets = [_counter_set(gpu) for gpu in gpus]
    if split:
        return [{"sharedCounters": counter_sets}, *({"devices": of_gpu} for of_gpu in devices)]
    return [{"sharedCounters": [one], "devices": of_gpu} for one, of_gpu in zip(counter_sets, devices, strict=True)]


def _counter_set(gpu: Gpu) -> dict[str, object]:
    counters = _counters(_full_capacity(gpu.model), range(_memory_slices(gpu.model)))
    return {"name": _counter_set_name(gpu), "counters": counters}


def _counter_set_name(gpu: Gpu) -> str:
    return f"gpu-{gpu.index}-counter-set"


def _counted(
    gpu: Gpu, name: str, attributes: dict[str, dict[str, str]], capacity: dict[str, str], memory_slices: range
) -> Device:
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {key: value(amount) for key, amount in capacity.items()},
        "consumesCounters": [
            {"counterSet": _counter_set_name(gpu), "counters": _counters(capacity, memory_slices)},
        ],
    }


def _counters(capacity: dict[str, str], memory_slices: range) -> dict[str, dict[str, str]]:
    counters = {_kebab(key): value(amount) for key, amount in capacity.items()}
    return counters | {f"memory-slice-{number}": value(1) for number in memory_slices}


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"-\1", name).lower()


def _capacity(profile: MigProfile) -> dict[str, str]:
    return _written({key: getattr(profile, field) for key, field in _CAPACITIES.items()})


def _full_capacity(model: GpuModel) -> dict[str, str]:
    """The maximum over the MIG profiles: less memory than without DynamicMIG."""
    return _written({key: max(getattr(p, field) for p in model.mig_profiles) for key, field in _CAPACITIES.items()})


def _written(amounts: dict[str, int]) -> dict[str, str]:
    return {key: mebibytes(amount) if key == "memory" else str(amount) for key, amount in amounts.items()}


def _memory_slices(model: GpuModel) -> int:
    return max(start + profile.size for profile in model.mig_profiles for start in profile.starts)


def _pcie_root(gpu: Gpu) -> dict[str, dict[str, str]]:
    return {PCIE_ROOT: text(gpu.pcie_root)}
