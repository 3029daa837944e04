"""Pinned charts and images, and what each release can and cannot do.

A new release of a chart is one entry in its table, which goes from the oldest to the newest. The program refuses a
version that is not listed here unless the stack's config says otherwise, since chart names, feature gates, object names
and known faults differ between releases. What a release asks of a cluster that ran an older one stands in `MOVES`.

Sources: the charts' own `Chart.yaml` and `values.yaml`, `pkg/featuregates` of the NVIDIA driver at each tag,
`docs/upgrade.md` of kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, the image lists and release notes of
ROCm/gpu-operator, and the issue that is named with a fault.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

RECOMMENDED_KUBERNETES = "1.36"
"""First minor in which partitionable devices and extended resources by DRA need no feature gate to be switched on."""


@dataclass(frozen=True)
class Chart:
    """One release of a Helm chart.

    `repository` is the vendor's chart repository. `release` and `namespace` are the names under which the stack
    installs it: fixed, since other objects refer to them. `values` names the file in `values/`, which a renamed chart
    shares with the one that it succeeds.
    """

    name: str
    version: str
    repository: str
    release: str
    namespace: str
    minimum_kubernetes: str
    values: str


@dataclass(frozen=True)
class DynamicMigFault:
    """A fault of a driver release that some GPU models meet when the `DynamicMIG` gate is on for their nodes.

    `models` are keys of the catalog; `fixed_in` is the first release without the fault, None where there is none.
    """

    models: tuple[str, ...]
    summary: str
    fixed_in: str | None

    @property
    def remedy(self) -> str:
        """What to do about it, a sentence."""
        models = ", ".join(self.models)
        if self.fixed_in is None:
            return f"Leave {models} out of nvidia.dynamicMigModels where it is to be handed out whole."
        return f"Fixed in {self.fixed_in}; until then leave {models} out of nvidia.dynamicMigModels."


@dataclass(frozen=True)
class NvidiaDriver:
    """One release of the NVIDIA DRA driver.

    `feature_gates` are the gates that the driver's binaries accept; at start-up they refuse a pair of `exclusions` that
    is on together, and a gate of `requirements` whose partner is off. `splits_kubelet_plugin` says that a node whose
    GPUs cannot do MIG must run a kubelet plugin without `DynamicMIG`: with it, such a node publishes no ResourceSlice.
    `name_override` is the chart's value `nameOverride`, which keeps the names and selectors that the objects of an
    older chart have. `crds` is a directory of `berkelium_infra/crds/`: CRDs that must be there before the release,
    since Helm installs those of a chart once and never changes them; None where Helm's own doing is enough.
    """

    chart: Chart
    feature_gates: tuple[str, ...]
    gates_on_by_default: tuple[str, ...]
    exclusions: tuple[tuple[str, str], ...]
    requirements: tuple[tuple[str, str], ...]
    splits_kubelet_plugin: bool
    dynamic_mig_faults: tuple[DynamicMigFault, ...] = ()
    name_override: str | None = None
    crds: str | None = None


@dataclass(frozen=True)
class AmdOperator:
    """One release of the AMD GPU Operator, with the images that its own release pins.

    The chart's defaults say `latest` for several of them, so all are given explicitly. `driver` is the version of the
    amdgpu kernel module that it installs when asked to. `faults` are known ones of what it deploys, each a sentence.
    """

    chart: Chart
    dra_image: str
    utils_image: str
    init_image: str
    driver: str
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeFeatureDiscovery:
    """One release of node-feature-discovery."""

    chart: Chart


@dataclass(frozen=True)
class Move:
    """What happens to a cluster that passes from a release before `to` to `to` or a later one.

    `part` is the key below `charts`. `changes` are sentences for whoever applies it. `no_way_back` says why nothing
    leads back across `to`, and how to do without; None where upstream does not forbid it.
    """

    part: str
    to: str
    changes: tuple[str, ...]
    no_way_back: str | None = None


_NVIDIA_25_12_0 = NvidiaDriver(
    chart=Chart(
        name="nvidia-dra-driver-gpu",
        version="25.12.0",
        repository="https://helm.ngc.nvidia.com/nvidia",
        release="nvidia-dra-driver-gpu",
        namespace="nvidia-dra-driver-gpu",
        minimum_kubernetes="1.34",
        values="nvidia-dra-driver-gpu",
    ),
    feature_gates=(
        "ComputeDomainCliques",
        "ContextualLogging",
        "CrashOnNVLinkFabricErrors",
        "DynamicMIG",
        "IMEXDaemonsWithDNSNames",
        "LoggingAlphaOptions",
        "LoggingBetaOptions",
        "MPSSupport",
        "NVMLDeviceHealthCheck",
        "PassthroughSupport",
        "TimeSlicingSettings",
    ),
    gates_on_by_default=(
        "ComputeDomainCliques",
        "ContextualLogging",
        "CrashOnNVLinkFabricErrors",
        "IMEXDaemonsWithDNSNames",
        "LoggingBetaOptions",
    ),
    exclusions=(
        ("DynamicMIG", "MPSSupport"),
        ("DynamicMIG", "PassthroughSupport"),
        ("DynamicMIG", "NVMLDeviceHealthCheck"),
    ),
    requirements=(("ComputeDomainCliques", "IMEXDaemonsWithDNSNames"),),
    splits_kubelet_plugin=True,
    dynamic_mig_faults=(
        DynamicMigFault(
            models=("a100",),
            summary=(
                "an A100 needs a GPU reset to change its MIG mode, which the driver does not do "
                "(kubernetes-sigs/dra-driver-nvidia-gpu#883): MIG claims on it may never become ready"
            ),
            fixed_in="0.4.0",
        ),
    ),
)

NVIDIA_DRIVERS = (
    _NVIDIA_25_12_0,
    replace(
        _NVIDIA_25_12_0,
        chart=replace(_NVIDIA_25_12_0.chart, name="dra-driver-nvidia-gpu", version="0.4.1"),
        feature_gates=tuple(sorted((*_NVIDIA_25_12_0.feature_gates, "DeviceMetadata"))),
        exclusions=(*_NVIDIA_25_12_0.exclusions, ("PassthroughSupport", "NVMLDeviceHealthCheck")),
        requirements=(*_NVIDIA_25_12_0.requirements, ("DeviceMetadata", "PassthroughSupport")),
        splits_kubelet_plugin=False,
        dynamic_mig_faults=(
            DynamicMigFault(
                models=("a100",),
                summary=(
                    "an A100 keeps the MIG mode that it booted with "
                    "(kubernetes-sigs/dra-driver-nvidia-gpu#1018): with the mode off it is handed out whole only, with "
                    "the mode on in MIG devices only, and the mode is set on the node"
                ),
                fixed_in=None,
            ),
        ),
        name_override="nvidia-dra-driver-gpu",
        crds="dra-driver-nvidia-gpu-0.4.1",
    ),
)
"""The numbering restarted: 0.4.0 succeeds 25.12.0. `order` knows."""

NVIDIA_DRIVER = "25.12.0"
"""The version that a stack has which does not name one. Nothing leads back from 0.4.0 and later, so that nobody should
get there by an update of this project; a stack that wants it says so."""

_AMD_1_5_1 = AmdOperator(
    chart=Chart(
        name="gpu-operator-charts",
        version="v1.5.1",
        repository="https://rocm.github.io/gpu-operator",
        release="amd-gpu-operator",
        namespace="kube-amd-gpu",
        minimum_kubernetes="1.29",
        values="gpu-operator-charts",
    ),
    dra_image="docker.io/rocm/k8s-gpu-dra-driver:v1.0.1",
    utils_image="docker.io/rocm/gpu-operator-utils:v1.5.1",
    init_image="docker.io/library/busybox:1.36",
    driver="30.20.1",
)

AMD_OPERATORS = (
    replace(
        _AMD_1_5_1,
        chart=replace(_AMD_1_5_1.chart, version="v1.5.0"),
        dra_image="docker.io/rocm/k8s-gpu-dra-driver:v1.0.0",
        utils_image="docker.io/rocm/gpu-operator-utils:v1.5.0",
        faults=(
            "its DRA driver v1.0.0 publishes no GPU of a node whose amdgpu module is 6.19.14 (release 31.40) or later, "
            "fixed in v1.5.1",
        ),
    ),
    _AMD_1_5_1,
)

AMD_OPERATOR = "v1.5.1"
"""The version that a stack has which does not name one."""

AMD_FIRST_WITH_DRA = "v1.5.0"
"""The DeviceConfig of an older operator has no `draDriver`."""

MOVES = (
    Move(
        part="nvidia",
        to="0.4.0",
        changes=(
            "the chart is called dra-driver-nvidia-gpu and its image comes from registry.k8s.io; release and objects "
            "keep their names",
            "the CRDs of compute domains are brought up to date first, since Helm never does so",
            "a GPU that cannot do MIG is published also where DynamicMIG is on: one DaemonSet serves every node, "
            "nvidia-dra-driver-gpu-kubelet-plugin-whole-gpu goes",
            "an A100 keeps the MIG mode that it booted with, instead of being switched for each claim",
            "on a node that ever said 'device cannot be reprepared after host reboot', remove the kubelet plugin's "
            "checkpoint file before",
        ),
        no_way_back=(
            "0.4.0 and later leave checkpoints on the nodes that an older driver cannot read, and their ComputeDomain "
            "has an optional field that was required before (docs/upgrade.md of the driver)"
        ),
    ),
    Move(
        part="amd",
        to="v1.5.1",
        changes=("the DRA driver becomes v1.0.1, which also publishes GPUs of amdgpu 6.19.14 and later",),
    ),
)
"""Upgrades that are more than another number; in the order of the releases."""

NODE_FEATURE_DISCOVERIES = (
    NodeFeatureDiscovery(
        chart=Chart(
            name="node-feature-discovery",
            version="0.18.3",
            repository="https://kubernetes-sigs.github.io/node-feature-discovery/charts",
            release="node-feature-discovery",
            namespace="node-feature-discovery",
            minimum_kubernetes="1.24",
            values="node-feature-discovery",
        ),
    ),
)


NODE_FEATURE_DISCOVERY = "0.18.3"
"""The version that a stack has which does not name one."""


class Entry(Protocol):
    """A release in one of the tables."""

    @property
    def chart(self) -> Chart:
        """Its chart."""
        ...


E = TypeVar("E", bound=Entry)

_YEARS_SINCE = 20
"""A first number from here on is a year: the NVIDIA driver was numbered by the calendar before its 0.4.0."""


def order(version: str) -> tuple[int, ...]:
    """A key that sorts versions (`25.12.0`, `0.4.1`, `v1.5.1`) from older to newer by their numbers alone."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", re.split(r"[-+]", version)[0]))
    return (0 if numbers and numbers[0] >= _YEARS_SINCE else 1, *numbers)


def nvidia_driver(version: str) -> NvidiaDriver:
    """The entry of that version; for one that is not listed, the nearest older of its numbering, else the oldest."""
    return _nearest(NVIDIA_DRIVERS, version)


def amd_operator(version: str) -> AmdOperator:
    """The entry of that version; for one that is not listed, the nearest older one, else the oldest."""
    return _nearest(AMD_OPERATORS, version)


def node_feature_discovery(version: str) -> NodeFeatureDiscovery:
    """The entry of that version; for one that is not listed, the nearest older one, else the oldest."""
    return _nearest(NODE_FEATURE_DISCOVERIES, version)


def _nearest(entries: Sequence[E], version: str) -> E:
    # Another numbering is another chart by another name, so that the nearest is looked for on this side of it.
    wanted = order(version)
    comparable = [each for each in entries if order(each.chart.version)[0] == wanted[0]] or list(entries)
    older = [each for each in comparable if order(each.chart.version) <= wanted]
    return older[-1] if older else comparable[0]
