"""How the versions of the NVIDIA DRA driver differ in what they publish, and their feature gates.

A new version is one entry in `DIALECTS`. Sources: cmd/gpu-kubelet-plugin and pkg/featuregates of
NVIDIA/k8s-dra-driver-gpu v25.12.0 and kubernetes-sigs/dra-driver-nvidia-gpu v0.4.0 and v0.4.1.
"""

import logging
from dataclasses import dataclass

log = logging.getLogger(__name__)

DYNAMIC_MIG = "DynamicMIG"

_GATES = {
    "ComputeDomainCliques": True,
    "CrashOnNVLinkFabricErrors": True,
    DYNAMIC_MIG: False,
    "IMEXDaemonsWithDNSNames": True,
    "MPSSupport": False,
    "NVMLDeviceHealthCheck": False,
    "PassthroughSupport": False,
    "TimeSlicingSettings": False,
    "ContextualLogging": True,
    "LoggingAlphaOptions": False,
    "LoggingBetaOptions": True,
    "AllAlpha": False,
    "AllBeta": False,
}
_REQUIRED = (("ComputeDomainCliques", "IMEXDaemonsWithDNSNames"),)
_EXCLUSIVE = (
    (DYNAMIC_MIG, "PassthroughSupport"),
    (DYNAMIC_MIG, "NVMLDeviceHealthCheck"),
    (DYNAMIC_MIG, "MPSSupport"),
)


@dataclass(frozen=True)
class Dialect:
    """What one version of the driver does.

    `indexed_names`: slices are named `<index>-<driver>-<node>-…` instead of `<node>-<driver>-…`.
    `full_dynamic_attributes`: with DynamicMIG, whole GPUs keep `addressingMode`, and MIG devices have it and the PCIe
    root too.
    `whole_gpu_without_mig`: with DynamicMIG, a GPU that cannot do MIG is published whole; otherwise its empty counter
    set makes the API server refuse what the node publishes.
    `fixed_mig_mode`: architectures whose MIG mode needs a GPU reset to change, so that the mode at boot decides
    between whole GPUs and MIG devices.
    `gates`: the known feature gates with their defaults.
    """

    version: str
    indexed_names: bool
    full_dynamic_attributes: bool
    whole_gpu_without_mig: bool
    fixed_mig_mode: tuple[str, ...]
    gates: dict[str, bool]
    required_gates: tuple[tuple[str, str], ...]
    exclusive_gates: tuple[tuple[str, str], ...]


_V25_12_0 = Dialect(
    version="25.12.0",
    indexed_names=False,
    full_dynamic_attributes=False,
    whole_gpu_without_mig=False,
    fixed_mig_mode=(),
    gates=_GATES,
    required_gates=_REQUIRED,
    exclusive_gates=_EXCLUSIVE,
)


def _v0_4(version: str) -> Dialect:
    return Dialect(
        version=version,
        indexed_names=True,
        full_dynamic_attributes=True,
        whole_gpu_without_mig=True,
        fixed_mig_mode=("Ampere",),
        gates={**_GATES, "DeviceMetadata": False},
        required_gates=(*_REQUIRED, ("DeviceMetadata", "PassthroughSupport")),
        exclusive_gates=(*_EXCLUSIVE, ("PassthroughSupport", "NVMLDeviceHealthCheck")),
    )


DIALECTS = (_V25_12_0, _v0_4("0.4.0"), _v0_4("0.4.1"))
"""Oldest first. The numbering restarted: 0.4.0 is newer than 25.12.0."""


class GateError(Exception):
    """The driver's binary ends at start because of its feature gates; the text is what it prints."""


def dialect(tag: str) -> Dialect:
    """The dialect of an image tag (`v25.12.0`, a digest suffix is ignored).

    An unknown version speaks like the nearest known one of its numbering, and the log says so.
    """
    number = tag.removeprefix("v").split("@")[0]
    for candidate in DIALECTS:
        if candidate.version == number:
            return candidate
    nearest = DIALECTS[0] if number.startswith("25.") else DIALECTS[-1]
    log.warning("NVIDIA driver %s is unknown here; it publishes what %s does", tag or "without a tag", nearest.version)
    return nearest


def feature_gates(text: str, dialect: Dialect) -> dict[str, bool]:
    """Every gate of the dialect with its value under `text`, the `FEATURE_GATES` of the container.

    Raises `GateError` where the driver's binary would end: an unknown gate, a value that is no boolean, gates that
    exclude or need each other.
    """
    gates = dict(dialect.gates)
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, setting = item.partition("=")
        if not equals:
            raise GateError(f"missing bool value for {name}")
        if name not in gates:
            raise GateError(f"unrecognized feature gate: {name}")
        gates[name] = _boolean(name, setting.strip())
    for first, second in dialect.exclusive_gates:
        if gates[first] and gates[second]:
            raise GateError(f"feature gate {first} is currently mutually exclusive with {second}")
    for dependent, needed in dialect.required_gates:
        if gates[dependent] and not gates[needed]:
            raise GateError(f"feature gate {dependent} requires {needed} to also be enabled")
    return gates


def _boolean(name: str, setting: str) -> bool:
    # The spellings of Go's strconv.ParseBool.
    if setting in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if setting in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise GateError(f"invalid value of {name}={setting}: not a boolean")
