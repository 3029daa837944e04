"""What a GPU model is: the shapes of the catalog's entries, and the MIG geometry that all seven-slice cards share.

Pure data types; `catalog.py` holds the entries. Memory is in MiB where a name ends in `_mib`, and in the marketing
gigabytes of the user documentation where it ends in `_gb`.
"""

from dataclasses import dataclass
from functools import cached_property

MEMORY_SLICES = 8
"""Memory slices of every MIG-capable card in the catalog (placements are counted in them)."""


@dataclass(frozen=True)
class Vendor:
    """A GPU vendor and the DRA driver that publishes its devices.

    `gpu_type` is the value of the driver's `type` attribute for a whole GPU: AMD's is not `gpu`.
    """

    name: str
    driver: str
    pci_id: str
    gpu_type: str
    runtime: str


@dataclass(frozen=True)
class MigProfile:
    """One MIG profile of one GPU model.

    `instances` is the number that fits on one GPU, `starts` the memory slices at which an instance may begin and
    `size` the number of memory slices that it covers. The engine counts are what one instance owns.
    """

    name: str
    gi_profile_id: int
    compute_slices: int
    instances: int
    starts: tuple[int, ...]
    size: int
    memory_mib: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int


# Geometry that all seven-slice cards share (A100, H100, H200 and, by analogy, B300), in the order in which the
# documentation lists the profiles: GPU instance profile id, compute slices, instances per GPU, starts, size.
GEOMETRY = (
    (19, 1, 7, (0, 1, 2, 3, 4, 5, 6), 1),
    (20, 1, 1, (0, 1, 2, 3, 4, 5, 6), 1),
    (15, 1, 4, (0, 2, 4, 6), 2),
    (14, 2, 3, (0, 2, 4), 2),
    (9, 3, 2, (0, 4), 4),
    (5, 4, 1, (0,), 4),
    (0, 7, 1, (0,), 8),
)


@dataclass(frozen=True)
class Engines:
    """Engines per profile, in the order of `GEOMETRY`."""

    multiprocessors: tuple[int, ...]
    copy: tuple[int, ...]
    decoders: tuple[int, ...]
    jpeg: tuple[int, ...]
    ofa: tuple[int, ...] = (0, 1, 0, 0, 0, 0, 1)
    encoders: tuple[int, ...] = (0, 0, 0, 0, 0, 0, 0)


def mig_profiles(names: str, memory_mib: tuple[int, ...], engines: Engines) -> tuple[MigProfile, ...]:
    """The seven profiles of a seven-slice card from their names (separated by spaces), memory and engines."""
    rows = zip(names.split(), memory_mib, GEOMETRY, strict=True)
    return tuple(
        MigProfile(
            name=name,
            gi_profile_id=profile_id,
            compute_slices=compute,
            instances=instances,
            starts=starts,
            size=size,
            memory_mib=memory,
            multiprocessors=engines.multiprocessors[row],
            copy_engines=engines.copy[row],
            decoders=engines.decoders[row],
            encoders=engines.encoders[row],
            jpeg_engines=engines.jpeg[row],
            ofa_engines=engines.ofa[row],
        )
        for row, (name, memory, (profile_id, compute, instances, starts, size)) in enumerate(rows)
    )


@dataclass(frozen=True)
class NvlinkDomain:
    """GPUs of one node that are joined by an NVLink bridge.

    `name` is what Berkelium's nodes publish in `NVLINK_DOMAIN_ATTRIBUTE`; `gpus` are the indices on the node;
    `pcie_roots` are the host bridges of those GPUs, which is all that the upstream driver tells about them.
    """

    name: str
    gpus: tuple[int, ...]
    pcie_roots: tuple[str, ...]


@dataclass(frozen=True)
class GpuModel:
    """One GPU model as the hardware and its DRA driver present it.

    `key` is the value of the node label `berkelium.io/gpu-model`. `product_name` is the driver's `productName`
    attribute, letter by letter (the MI100 publishes an empty one). `memory_mib` is the published capacity of a
    whole GPU without Dynamic MIG; with it, the driver publishes the memory of the largest profile instead.
    `compute_units` is AMD's measure, of four SIMD units each.
    """

    key: str
    title: str
    vendor: Vendor
    product_name: str
    architecture: str
    memory_gb: int
    memory_kind: str
    memory_mib: int
    pci_devices: tuple[str, ...]
    pci_class: str
    compute_capability: str = ""
    compute_units: int = 0
    nvlink: bool = False
    mig_profiles: tuple[MigProfile, ...] = ()
    nvlink_domains: tuple[NvlinkDomain, ...] = ()

    @property
    def mig_capable(self) -> bool:
        """Whether the hardware can be partitioned; whether it is, is the stack's decision."""
        return bool(self.mig_profiles)

    @cached_property
    def device_ids(self) -> tuple[str, ...]:
        """PCI device ids in the form of the AMD driver's `deviceID` attribute."""
        return tuple(f"0x{device}" for device in self.pci_devices)
