"""The sections of a stack's configuration, with their defaults. Every field's description is its documentation."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from berkelium_infra import versions
from berkelium_infra.catalog import MIG_MODELS
from berkelium_infra.settings.types import (
    REPOSITORY,
    ExtendedResource,
    Image,
    MaxUnavailable,
    NodeSelector,
    ObjectName,
    Resources,
    Section,
    Toleration,
    refuse,
    resources,
)

_NVIDIA = versions.nvidia_driver(versions.NVIDIA_DRIVER)
_AMD = versions.amd_operator(versions.AMD_OPERATOR)
_DISCOVERY = versions.node_feature_discovery(versions.NODE_FEATURE_DISCOVERY)

OFFICIAL = "official"
"""Chart source that means the vendor's own chart repository."""


class PolicyMode(StrEnum):
    """What happens to an object that a policy finds fault with."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"
    OFF = "off"


def _source(value: str) -> str:
    if value == OFFICIAL or (value.startswith("oci://") and len(value) > len("oci://")):
        return value.rstrip("/")
    if "://" in value or not value or value.startswith(("/", "~")):
        raise refuse(
            f"{value!r} is no chart source.",
            "Write official, an OCI registry such as oci://registry.example.com/charts, or a directory relative to the "
            "project such as ../charts (an absolute path would differ from machine to machine).",
        )
    return value.rstrip("/")


ChartSource = Annotated[str, AfterValidator(_source)]
_SOURCE = (
    "official (the vendor's repository), an OCI registry (oci://…), or a directory relative to the project that holds "
    "the charts, unpacked as <chart> or <chart>-<version>, or as <chart>-<version>.tgz."
)


class ChartSettings(Section):
    """One chart's version and source."""

    version: str = Field(description="Chart version, one that berkelium_infra/versions.py lists.")
    allow_unknown_version: bool = Field(
        default=False,
        description="Accept a version that versions.py does not list, treating it as the nearest older one.",
    )
    source: ChartSource | None = Field(default=None, description=f"Source of this chart alone: {_SOURCE}")


class NvidiaChart(ChartSettings):
    """The NVIDIA driver's chart."""

    version: str = Field(default=_NVIDIA.chart.version, description=ChartSettings.model_fields["version"].description)


class AmdChart(ChartSettings):
    """The AMD operator's chart."""

    version: str = Field(default=_AMD.chart.version, description=ChartSettings.model_fields["version"].description)


class DiscoveryChart(ChartSettings):
    """The chart of node-feature-discovery."""

    version: str = Field(
        default=_DISCOVERY.chart.version, description=ChartSettings.model_fields["version"].description
    )


class Charts(Section):
    """Where charts come from, and which release of each is installed."""

    source: ChartSource = Field(default=OFFICIAL, description=f"Source of all charts: {_SOURCE}")
    timeout_seconds: int = Field(
        default=600, ge=30, le=3600, description="How long Helm waits for one release to become ready."
    )
    nvidia: NvidiaChart = Field(
        default=NvidiaChart(),
        description=f"Chart {_NVIDIA.chart.name}, from 0.4 on {versions.NVIDIA_DRIVERS[-1].chart.name}.",
    )
    amd: AmdChart = Field(default=AmdChart(), description=f"Chart {_AMD.chart.name}.")
    node_feature_discovery: DiscoveryChart = Field(
        default=DiscoveryChart(), description=f"Chart {_DISCOVERY.chart.name}."
    )


class NvidiaResources(Section):
    """Resources of the NVIDIA driver's containers."""

    init: Resources = Field(
        default=resources("10m", "32Mi", "500m", "256Mi"), description="Kubelet plugin, init container."
    )
    gpus: Resources = Field(
        default=resources("50m", "128Mi", "1", "512Mi"), description="Kubelet plugin, container gpus."
    )
    compute_domains: Resources = Field(
        default=resources("50m", "128Mi", "1", "512Mi"), description="Kubelet plugin, container compute-domains."
    )
    controller: Resources = Field(
        default=resources("50m", "128Mi", "1", "512Mi"), description="Controller (with computeDomains)."
    )


class Nvidia(Section):
    """The NVIDIA DRA driver."""

    enabled: bool = Field(default=True, description="Install the driver.")
    driver_root: str = Field(
        default="/",
        pattern=r"^/",
        description="Where the NVIDIA kernel driver's files are on the nodes: / when it is installed on the host, "
        "/run/nvidia/driver when the GPU Operator's driver container provides it.",
    )
    dynamic_mig_models: tuple[str, ...] = Field(
        default=tuple(model.key for model in MIG_MODELS),
        description="GPU models that are partitioned on demand; the others hand out whole GPUs only.",
    )
    split_kubelet_plugin: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Run the kubelet plugin as two DaemonSets, DynamicMIG on for the nodes of dynamicMigModels and off "
        "for the others; auto does so where the driver's version or the models need it.",
    )
    feature_gates: dict[str, bool] = Field(
        default={}, description="Further feature gates of the driver; DynamicMIG follows from dynamicMigModels."
    )
    compute_domains: bool = Field(
        default=False, description="Also run the compute domain plugin and controller (multi-node NVLink)."
    )
    image: Image | None = Field(default=None, description="Driver image, where a mirror replaces the chart's.")
    max_unavailable: MaxUnavailable = Field(
        default="10%",
        description="How many nodes an upgrade takes at once, a number or a share; a node does not prepare devices of "
        "new pods while its kubelet plugin is replaced.",
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),),
        description="Taints that the kubelet plugin's pods tolerate.",
    )
    node_selector: NodeSelector = Field(default={}, description="Labels of the nodes that run the kubelet plugin.")
    resources: NvidiaResources = Field(default=NvidiaResources(), description="Resources of the containers.")


class RegistryCredentials(Section):
    """A login at the registry that the operator's driver images come from."""

    server: str = Field(pattern=r"^[a-z0-9.-]+(:[0-9]+)?$", description="Host of the registry.")
    username: str = Field(min_length=1, description="User name at the registry.")
    password: SecretStr = Field(min_length=1, description="Password or token, set with pulumi config set --secret.")


class AmdDriver(Section):
    """Installation of the amdgpu kernel module by the operator (it needs cert-manager in the cluster)."""

    install: bool = Field(default=False, description="Build and load the amdgpu kernel module on the nodes.")
    registry: str = Field(
        default="",
        pattern=rf"^({REPOSITORY})?$",
        description="Registry and project that keep the built driver images, such as registry.example/amd.",
    )
    image: str = Field(
        default="amdgpu-driver", pattern=r"^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$", description="Image name in that registry."
    )
    version: str = Field(default=_AMD.driver, description="Driver version.")
    registry_secret: ObjectName | None = Field(
        default=None, description="Secret in the operator's namespace with the registry's credentials."
    )


class AmdResources(Section):
    """Resources of the AMD operator's containers."""

    manager: Resources = Field(default=resources("100m", "256Mi", "1", "1Gi"), description="Operator.")
    kmm_controller: Resources = Field(
        default=resources("50m", "128Mi", "500m", "512Mi"), description="Kernel module controller (driver.install)."
    )
    kmm_webhook: Resources = Field(
        default=resources("50m", "128Mi", "500m", "512Mi"), description="Kernel module webhook (driver.install)."
    )


class Amd(Section):
    """The AMD GPU Operator and its DeviceConfig."""

    enabled: bool = Field(default=True, description="Install the operator.")
    dra_driver: bool = Field(default=True, description="Hand out GPUs by dynamic resource allocation.")
    device_plugin: bool = Field(
        default=False, description="Hand out GPUs by the older device plugin instead; never together with draDriver."
    )
    dra_image: Image | None = Field(
        default=None, description="Image of the DRA driver, where it is not the one that the operator's release pins."
    )
    device_plugin_image: Image | None = Field(default=None, description="Image of the device plugin, needed with it.")
    operator_image: Image | None = Field(default=None, description="Operator image, where a mirror replaces it.")
    utils_image: Image | None = Field(
        default=None, description="Image of the operator's node utilities, where a mirror replaces it."
    )
    init_image: Image = Field(default=_AMD.init_image, description="Image of the init containers.")
    registry_credentials: RegistryCredentials | None = Field(
        default=None,
        description="Login at the registry of the driver images: server, username and password, the latter only ever "
        "set with pulumi config set --path amd.registryCredentials.password --secret. The stack makes a Secret of it.",
    )
    driver: AmdDriver = Field(default=AmdDriver(), description="Kernel module installation.")
    tolerations: tuple[Toleration, ...] = Field(
        default=(Toleration(key="amd.com/gpu", operator="Exists", effect="NoSchedule"),),
        description="Taints that the driver's pods tolerate.",
    )
    node_selector: NodeSelector = Field(
        default={}, description="Further labels of the nodes that the DeviceConfig covers."
    )
    resources: AmdResources = Field(default=AmdResources(), description="Resources of the containers.")


class DiscoveryResources(Section):
    """Resources of node-feature-discovery's containers."""

    master: Resources = Field(default=resources("100m", "128Mi", "1", "4Gi"), description="Master.")
    worker: Resources = Field(default=resources("5m", "64Mi", "200m", "512Mi"), description="Worker, on every node.")
    gc: Resources = Field(default=resources("10m", "128Mi", "200m", "1Gi"), description="Garbage collector.")


class Discovery(Section):
    """node-feature-discovery, which labels the nodes by their PCI devices."""

    enabled: bool = Field(
        default=True, description="Install it; off where the cluster already runs one (the rules are kept)."
    )
    image: Image | None = Field(default=None, description="Image, where a mirror replaces the chart's.")
    tolerations: tuple[Toleration, ...] = Field(
        default=(Toleration(operator="Exists"),),
        description="Taints that the workers tolerate; GPU nodes are usually tainted.",
    )
    node_selector: NodeSelector = Field(default={}, description="Labels of the nodes that run a worker.")
    resources: DiscoveryResources = Field(default=DiscoveryResources(), description="Resources of the containers.")


class ExtraDeviceClass(Section):
    """A DeviceClass beyond the catalog's."""

    name: ObjectName = Field(description="Name of the class.")
    selector: str = Field(description='CEL expression; it begins with the driver, device.driver == "…" && ….')
    extended_resource: ExtendedResource | None = Field(
        default=None, description="Extended resource that stands for the class; no two classes may share one."
    )
