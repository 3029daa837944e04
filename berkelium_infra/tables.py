"""The catalog as tables, for the command line and for the documentation.

A table is a heading row and rows of text; it is rendered as Markdown here and by rich on a terminal.
"""

from dataclasses import dataclass

from berkelium_infra.catalog import DEVICE_CLASSES, MIG_MODELS, MODELS, DeviceClass, GpuModel


@dataclass(frozen=True)
class Table:
    """A titled table; every row has as many cells as `columns`."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown, without its title, ending in a newline."""
        lines = [self.columns, tuple("---" for _ in self.columns), *self.rows]
        return "".join("| " + " | ".join(line) + " |\n" for line in lines)

    def records(self) -> list[dict[str, str]]:
        """The rows as objects keyed by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def describe(model: GpuModel) -> str:
    """Memory, architecture and links of a model, as the documentation puts them in brackets."""
    parts = [f"{model.memory_gb} GB {model.memory_kind}", model.architecture]
    parts += ["NVLink"] if model.nvlink else []
    parts += ["ROCm"] if model.vendor.runtime == "ROCm" else []
    return ", ".join(parts)


def models() -> Table:
    """Every GPU model with what tells it apart on a node."""
    rows = tuple(
        (
            model.key,
            model.title,
            describe(model),
            model.product_name or "(empty)",
            ", ".join(f"{model.vendor.pci_id}:{device}" for device in model.pci_devices),
            str(len(model.mig_profiles)) if model.mig_capable else "none",
        )
        for model in MODELS
    )
    return Table(
        "GPU models", ("Label", "GPU model", "Hardware", "Published product name", "PCI ids", "MIG profiles"), rows
    )


def classes() -> Table:
    """The supported device classes, as in the reference table of the user documentation."""
    rows = tuple(
        (
            device_class.name,
            device_class.vendor.driver,
            device_class.extended_resource or "N/A",
            _hardware(device_class),
        )
        for device_class in DEVICE_CLASSES
    )
    return Table("Device classes", ("DeviceClass", "Driver", "Extended resource", "Hardware"), rows)


def _hardware(device_class: DeviceClass) -> str:
    if device_class.device_type == "mig":
        return f"{device_class.note} of {', '.join(model.title for model in device_class.models)}"
    hardware = ", ".join(f"{model.title} ({describe(model)})" for model in device_class.models)
    return f"{hardware}: {device_class.note}" if device_class.note else hardware


def selectors() -> Table:
    """The CEL expression of every device class."""
    rows = tuple((device_class.name, f"`{device_class.selector}`") for device_class in DEVICE_CLASSES)
    return Table("Selectors", ("DeviceClass", "CEL selector"), rows)


def mig_overview() -> Table:
    """The profile names by model and size, as the user documentation lists them."""
    sizes = ((1,), (2,), (3, 4), (7,))
    rows = tuple(
        (model.title, *(", ".join(p.name for p in model.mig_profiles if p.compute_slices in size) for size in sizes))
        for model in MIG_MODELS
    )
    return Table("Dynamic MIG profiles", ("GPU model", "1 slice", "2 slices", "3 or 4 slices", "Full GPU"), rows)


def mig() -> Table:
    """Every MIG profile of every model: how many fit on one GPU and what one instance has."""
    rows = tuple(
        (
            model.title,
            profile.name,
            str(profile.instances),
            f"{profile.memory_mib} MiB",
            str(profile.multiprocessors),
            " ".join(str(start) for start in profile.starts) + f" (size {profile.size})",
        )
        for model in MIG_MODELS
        for profile in model.mig_profiles
    )
    return Table("MIG profiles", ("GPU model", "Profile", "Per GPU", "Memory", "Multiprocessors", "Placements"), rows)


def nvlink() -> Table:
    """The NVLink domains that a model's nodes are divided into, where a node has more than one."""
    rows = tuple(
        (model.title, domain.name, ", ".join(map(str, domain.gpus)), ", ".join(domain.pcie_roots))
        for model in MODELS
        for domain in model.nvlink_domains
    )
    return Table("NVLink domains", ("GPU model", "Domain", "GPUs", "PCIe roots"), rows)
