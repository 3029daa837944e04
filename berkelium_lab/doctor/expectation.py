"""What the cluster should be: the configuration of a stack, or the defaults where there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from berkelium_infra import policies
from berkelium_infra.catalog import DEVICE_CLASSES, VENDORS, DeviceClass, Vendor
from berkelium_infra.errors import UserError
from berkelium_infra.settings import PROJECT, PolicyMode, Settings
from berkelium_infra.versions import Chart
from berkelium_lab import stack_files


class ExpectationError(UserError):
    """What the cluster should be cannot be told; the text names the option."""


@dataclass(frozen=True)
class ExpectedClass:
    """A DeviceClass of the stack; `catalogued` is its entry of the catalog, None for one that the stack adds."""

    name: str
    selector: str
    extended_resource: str | None
    catalogued: DeviceClass | None


@dataclass(frozen=True)
class ExpectedRelease:
    """A Helm release of the stack, with the version that the configuration asks for."""

    chart: Chart
    version: str


@dataclass(frozen=True)
class Expectation:
    """The settings that the cluster is compared with, and where they are from.

    `modes` are modes of policies that differ from the settings'.
    """

    settings: Settings = field(default_factory=Settings)
    modes: Mapping[str, PolicyMode] = field(default_factory=dict)
    project: Path = PROJECT
    origin: str = "the program's defaults"

    @property
    def policies(self) -> dict[str, PolicyMode]:
        """The intended mode of every policy of the project, by name."""
        names = policies.policy_names(self.project)
        return {name: self.modes.get(name, self.settings.policy_mode(name)) for name in names}

    @property
    def classes(self) -> tuple[ExpectedClass, ...]:
        """The device classes of the catalog, and those that the stack adds."""
        catalogued = tuple(ExpectedClass(c.name, c.selector, c.extended_resource, c) for c in DEVICE_CLASSES)
        added = self.settings.extra_device_classes
        return catalogued + tuple(ExpectedClass(c.name, c.selector, c.extended_resource, None) for c in added)

    @property
    def releases(self) -> tuple[ExpectedRelease, ...]:
        """The Helm releases of the parts that are switched on."""
        settings = self.settings
        parts = (
            (settings.node_feature_discovery.enabled, settings.discovery, settings.charts.node_feature_discovery),
            (settings.nvidia.enabled, settings.nvidia_driver, settings.charts.nvidia),
            (settings.amd.enabled, settings.amd_operator, settings.charts.amd),
        )
        return tuple(ExpectedRelease(known.chart, chosen.version) for on, known, chosen in parts if on)

    @property
    def vendors(self) -> tuple[Vendor, ...]:
        """The vendors whose GPUs are handed out by dynamic resource allocation."""
        enabled = {"NVIDIA": self.settings.nvidia.enabled, "AMD": self.settings.amd.enabled}
        enabled["AMD"] &= self.settings.amd.dra_driver
        return tuple(vendor for vendor in VENDORS if enabled[vendor.name])


def from_stack(stack: str, modes: Mapping[str, PolicyMode] | None = None, project: Path = PROJECT) -> Expectation:
    """What the stack file says. Raises `StackFileError` when there is none, `SettingsError` for its faults."""
    settings = stack_files.read(project, stack).settings(project)
    return _checked(Expectation(settings, modes or {}, project, f"stack {stack}"))


def from_defaults(modes: Mapping[str, PolicyMode] | None = None, project: Path = PROJECT) -> Expectation:
    """What the program declares when nothing is configured."""
    return _checked(Expectation(Settings(), modes or {}, project))


def _checked(expectation: Expectation) -> Expectation:
    known = policies.policy_names(expectation.project)
    for name in expectation.modes:
        if name not in known:
            raise ExpectationError(f"--mode: {name!r} is no policy; the policies are {', '.join(known)}")
    return expectation
