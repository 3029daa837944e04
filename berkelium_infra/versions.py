"""Pinned charts and images, and what each release can and cannot do.

A new release of a chart is one entry in its table; the last entry is the default. The program refuses a version that is
not listed here unless the stack's config says otherwise, since feature gates, object names and known faults differ
between releases.

Sources: the charts' own `Chart.yaml` and `values.yaml`, `pkg/featuregates` of the NVIDIA driver at each tag, and the
issue that is named with a fault.
"""

from dataclasses import dataclass

RECOMMENDED_KUBERNETES = "1.36"
"""First minor in which partitionable devices and extended resources by DRA need no feature gate to be switched on."""


@dataclass(frozen=True)
class Chart:
    """One release of a Helm chart.

    `repository` is the vendor's chart repository. `release` and `namespace` are the names under which the stack
    installs it: fixed, since other objects refer to them.
    """

    name: str
    version: str
    repository: str
    release: str
    namespace: str
    minimum_kubernetes: str


@dataclass(frozen=True)
class DynamicMigFault:
    """A fault of a driver release that some GPU models meet when the `DynamicMIG` gate is on for their nodes.

    `models` are keys of the catalog; `fixed_in` is the first release without the fault.
    """

    models: tuple[str, ...]
    summary: str
    fixed_in: str


@dataclass(frozen=True)
class NvidiaDriver:
    """One release of the NVIDIA DRA driver.

    `feature_gates` are the gates that the driver's binaries accept; at start-up they refuse a pair of `exclusions` that
    is on together, and a gate of `requirements` whose partner is off. `splits_kubelet_plugin` says that a node whose
    GPUs cannot do MIG must run a kubelet plugin without `DynamicMIG`: with it, such a node publishes no ResourceSlice.
    """

    chart: Chart
    feature_gates: tuple[str, ...]
    gates_on_by_default: tuple[str, ...]
    exclusions: tuple[tuple[str, str], ...]
    requirements: tuple[tuple[str, str], ...]
    splits_kubelet_plugin: bool
    dynamic_mig_faults: tuple[DynamicMigFault, ...] = ()


@dataclass(frozen=True)
class AmdOperator:
    """One release of the AMD GPU Operator, with the images that its own release pins.

    The chart's defaults say `latest` for several of them, so all are given explicitly. `driver` is the version of the
    amdgpu kernel module that it installs when asked to.
    """

    chart: Chart
    dra_image: str
    utils_image: str
    init_image: str
    driver: str


@dataclass(frozen=True)
class NodeFeatureDiscovery:
    """One release of node-feature-discovery."""

    chart: Chart


NVIDIA_DRIVERS = (
    NvidiaDriver(
        chart=Chart(
            name="nvidia-dra-driver-gpu",
            version="25.12.0",
            repository="https://helm.ngc.nvidia.com/nvidia",
            release="nvidia-dra-driver-gpu",
            namespace="nvidia-dra-driver-gpu",
            minimum_kubernetes="1.34",
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
    ),
)

AMD_OPERATORS = (
    AmdOperator(
        chart=Chart(
            name="gpu-operator-charts",
            version="v1.5.1",
            repository="https://rocm.github.io/gpu-operator",
            release="amd-gpu-operator",
            namespace="kube-amd-gpu",
            minimum_kubernetes="1.29",
        ),
        dra_image="docker.io/rocm/k8s-gpu-dra-driver:v1.0.1",
        utils_image="docker.io/rocm/gpu-operator-utils:v1.5.1",
        init_image="docker.io/library/busybox:1.36",
        driver="30.20.1",
    ),
)

NODE_FEATURE_DISCOVERIES = (
    NodeFeatureDiscovery(
        chart=Chart(
            name="node-feature-discovery",
            version="0.18.3",
            repository="https://kubernetes-sigs.github.io/node-feature-discovery/charts",
            release="node-feature-discovery",
            namespace="node-feature-discovery",
            minimum_kubernetes="1.24",
        ),
    ),
)


def nvidia_driver(version: str) -> NvidiaDriver:
    """The entry of that version; for one that is not listed, the newest entry (the nearest there is)."""
    return next((driver for driver in NVIDIA_DRIVERS if driver.chart.version == version), NVIDIA_DRIVERS[-1])


def amd_operator(version: str) -> AmdOperator:
    """The entry of that version; for one that is not listed, the newest entry (the nearest there is)."""
    return next((operator for operator in AMD_OPERATORS if operator.chart.version == version), AMD_OPERATORS[-1])


def node_feature_discovery(version: str) -> NodeFeatureDiscovery:
    """The entry of that version; for one that is not listed, the newest entry (the nearest there is)."""
    found = (entry for entry in NODE_FEATURE_DISCOVERIES if entry.chart.version == version)
    return next(found, NODE_FEATURE_DISCOVERIES[-1])
