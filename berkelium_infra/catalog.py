"""The one source of truth about the cluster's GPUs: models, MIG geometry, device classes.

Pure data (its shapes are in `gpu.py`), and it imports nothing of Pulumi. DeviceClasses, NodeFeatureRules, the tables
of the documentation, the simulated fleet of the laboratory and the tests are derived from it, so that adding a GPU
model is one entry in `MODELS` (and one in `DEVICE_CLASSES` when users may ask for it by name).

Units: memory is in MiB where a name ends in `_mib`, and in the marketing gigabytes of the user documentation where
it ends in `_gb`. Sources are given where a figure is not the vendor's data sheet.
"""

from dataclasses import dataclass

from berkelium_infra.gpu import Engines, GpuModel, NvlinkDomain, Vendor, mig_profiles

NVLINK_DOMAIN_ATTRIBUTE = "pcieRoot"
"""Attribute, in the driver's own domain, by which Berkelium's H200 NVL nodes name a GPU's NVLink domain.

The upstream driver publishes no such attribute; it has `resource.kubernetes.io/pcieRoot`, one value per host bridge.
"""

NVIDIA = Vendor("NVIDIA", driver="gpu.nvidia.com", pci_id="10de", gpu_type="gpu", runtime="CUDA")
AMD = Vendor("AMD", driver="gpu.amd.com", pci_id="1002", gpu_type="amdgpu", runtime="ROCm")
VENDORS = (NVIDIA, AMD)

_AMPERE = Engines((14, 14, 14, 28, 42, 56, 98), (1, 1, 1, 2, 3, 4, 7), (0, 1, 1, 1, 2, 2, 5), (0, 1, 0, 0, 0, 0, 1))
_HOPPER = Engines((16, 16, 26, 32, 60, 64, 132), (1, 1, 1, 2, 3, 4, 8), (1, 1, 1, 2, 3, 4, 7), (1, 1, 1, 2, 3, 4, 7))
# No public print of B300's engines exists: the B200's, which has the same number of multiprocessors.
_BLACKWELL = Engines(
    (18, 18, 30, 36, 70, 72, 148), (2, 2, 2, 4, 6, 8, 16), (1, 1, 1, 2, 3, 4, 7), (1, 1, 1, 2, 3, 4, 7)
)

MODELS = (
    GpuModel(
        key="b300",
        title="NVIDIA B300 SXM6 AC",
        vendor=NVIDIA,
        product_name="NVIDIA B300 SXM6 AC",
        architecture="Blackwell",
        memory_gb=275,
        memory_kind="HBM3e",
        memory_mib=275040,
        pci_devices=("3182",),
        pci_class="0302",
        compute_capability="10.3.0",
        nvlink=True,
        mig_profiles=mig_profiles(
            "1g.34gb 1g.34gb+me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
            (32256, 32256, 68096, 68096, 136960, 136960, 274432),
            _BLACKWELL,
        ),
    ),
    GpuModel(
        key="h200",
        title="NVIDIA H200 NVL",
        vendor=NVIDIA,
        product_name="NVIDIA H200 NVL",
        architecture="Hopper",
        memory_gb=141,
        memory_kind="HBM3e",
        memory_mib=143771,
        pci_devices=("233b",),
        pci_class="0302",
        compute_capability="9.0.0",
        nvlink=True,
        mig_profiles=mig_profiles(
            "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
            (16384, 16384, 33024, 33024, 71168, 71168, 143104),
            _HOPPER,
        ),
        nvlink_domains=(
            NvlinkDomain("pci0000", (0, 1, 2, 3), ("pci0000:15", "pci0000:26", "pci0000:37", "pci0000:48")),
            NvlinkDomain("pci0001", (4, 5, 6, 7), ("pci0000:97", "pci0000:a7", "pci0000:b7", "pci0000:c7")),
        ),
    ),
    GpuModel(
        key="h100",
        title="NVIDIA H100 80GB HBM3",
        vendor=NVIDIA,
        product_name="NVIDIA H100 80GB HBM3",
        architecture="Hopper",
        memory_gb=80,
        memory_kind="HBM3",
        memory_mib=81559,
        pci_devices=("2330",),
        pci_class="0302",
        compute_capability="9.0.0",
        nvlink=True,
        mig_profiles=mig_profiles(
            "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
            (9984, 9984, 20096, 20096, 40448, 40448, 81152),
            _HOPPER,
        ),
    ),
    GpuModel(
        key="a100",
        title="NVIDIA A100 80GB PCIe",
        vendor=NVIDIA,
        product_name="NVIDIA A100 80GB PCIe",
        architecture="Ampere",
        memory_gb=80,
        memory_kind="HBM2e",
        memory_mib=81920,
        pci_devices=("20b5",),
        pci_class="0302",
        compute_capability="8.0.0",
        mig_profiles=mig_profiles(
            "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
            (9728, 9728, 19968, 19968, 40192, 40192, 80640),
            _AMPERE,
        ),
    ),
    GpuModel(
        key="a40",
        title="NVIDIA A40 48GB",
        vendor=NVIDIA,
        product_name="NVIDIA A40",
        architecture="Ampere",
        memory_gb=48,
        memory_kind="GDDR6",
        memory_mib=46068,
        pci_devices=("2235",),
        pci_class="0302",
        compute_capability="8.6.0",
    ),
    GpuModel(
        key="mi100",
        title="AMD Instinct MI100",
        vendor=AMD,
        product_name="",
        architecture="CDNA",
        memory_gb=32,
        memory_kind="HBM2",
        memory_mib=32752,
        pci_devices=("738c", "738e"),
        pci_class="0380",
        compute_units=120,
    ),
)


@dataclass(frozen=True)
class DeviceClass:
    """A cluster-wide DeviceClass that users ask for.

    `models` are the GPU models that it may hand out; `note` stands in the hardware column of the reference table.
    """

    name: str
    vendor: Vendor
    models: tuple[GpuModel, ...]
    extended_resource: str | None
    device_type: str
    note: str = ""

    @property
    def selector(self) -> str:
        """The CEL expression that a device must satisfy.

        It starts with the driver, since a class is evaluated against every driver's devices and an absent attribute
        is an error that stops the whole pod's scheduling, not a non-match.
        """
        driver = self.vendor.driver
        attributes = f'device.attributes["{driver}"]'
        terms = [f'device.driver == "{driver}"', f'{attributes}.type == "{self.device_type}"']
        if self.device_type != "mig":
            terms.append(self._hardware(attributes))
        return " && ".join(terms)

    def _hardware(self, attributes: str) -> str:
        names = [model.product_name for model in self.models]
        if all(names):
            return (
                f'{attributes}.productName == "{names[0]}"'
                if len(names) == 1
                else f"{attributes}.productName in {_cel(names)}"
            )
        # The AMD driver publishes an empty product name for the MI100, so the PCI device id tells the model.
        return f'{attributes}.?deviceID.orValue("") in {_cel([id for model in self.models for id in model.device_ids])}'


def _cel(values: list[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


def model(key: str) -> GpuModel:
    """The model of that key; raises KeyError, naming the known keys, if there is none."""
    for candidate in MODELS:
        if candidate.key == key:
            return candidate
    raise KeyError(f"{key!r} is no GPU model of the catalog; it knows {', '.join(m.key for m in MODELS)}")


def _whole(name: str, key: str, extended_resource: str, note: str = "") -> DeviceClass:
    gpu = model(key)
    return DeviceClass(name, gpu.vendor, (gpu,), extended_resource, gpu.vendor.gpu_type, note)


MIG_MODELS = tuple(candidate for candidate in MODELS if candidate.mig_capable)

DEVICE_CLASSES = (
    _whole("nvidia-b300", "b300", "nvidia.com/b300"),
    _whole("nvidia-h200", "h200", "nvidia.com/h200"),
    _whole("nvidia-h100", "h100", "nvidia.com/h100"),
    _whole("nvidia-a100", "a100", "nvidia.com/a100"),
    _whole("nvidia-a40", "a40", "nvidia.com/a40"),
    _whole("gpu.nvidia.com", "a40", "nvidia.com/gpu", note="default general-purpose NVIDIA GPU class"),
    DeviceClass("mig.nvidia.com", NVIDIA, MIG_MODELS, None, "mig", note="dynamic Multi-Instance GPU (MIG) partitions"),
    _whole("gpu.amd.com", "mi100", "amd.com/gpu"),
)

CHART_DEVICE_CLASSES = ("gpu.nvidia.com", "mig.nvidia.com")
"""Classes that the NVIDIA chart would install under the same names; the stack owns them instead."""
