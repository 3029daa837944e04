"""A stack's whole configuration."""

from typing import Literal

from pydantic import Field

from berkelium_infra import versions
from berkelium_infra.settings.adoption import Adopt
from berkelium_infra.settings.projects import Project
from berkelium_infra.settings.sections import Amd, Charts, Discovery, ExtraDeviceClass, Nvidia, PolicyMode
from berkelium_infra.settings.types import NamespaceName, Section

SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces of Kubernetes itself, which no policy covers."""


class Settings(Section):
    """The stack's configuration; keys of the stack file without the project's prefix.

    `context` and `clusterIdentifier` must be given in every stack file; everything else has a default.
    """

    context: str = Field(
        default="",
        description="Name of the kubeconfig context, so that nobody applies to the wrong cluster; only the stack lab "
        "may leave it empty, which means the kubeconfig's current context.",
    )
    cluster_identifier: str = Field(
        default="",
        description="Constant name of the cluster. Set it once: only a change of it makes Pulumi replace everything, "
        "a new API address or certificate does not.",
    )
    protect: bool = Field(
        default=False,
        description="Protect the device classes and the admission policies: no command deletes them, until this is off "
        "and applied.",
    )
    guard_destroy: bool = Field(
        default=False,
        description="Refuse to remove a driver, or the whole stack, while pods hold devices; pulumi destroy then needs "
        "--run-program, since the engine does not run the program by itself.",
    )
    charts: Charts = Field(default=Charts(), description="Where the Helm charts come from, and their versions.")
    node_feature_discovery: Discovery = Field(
        default=Discovery(), description="node-feature-discovery, which labels the nodes by their GPUs."
    )
    nvidia: Nvidia = Field(default=Nvidia(), description="The NVIDIA DRA driver.")
    amd: Amd = Field(default=Amd(), description="The AMD GPU Operator.")
    policies: dict[str, PolicyMode] = Field(
        default={},
        description="Mode per admission policy: deny, warn, audit or off; a policy that is not listed denies.",
    )
    bare_gpu_pods: Literal["allow", "warn", "deny"] = Field(
        default="allow",
        description="What no-idle-gpu does about a pod without a controller that waits with a GPU; the documentation "
        "speaks of Jobs and Deployments.",
    )
    exempt_namespaces: tuple[NamespaceName, ...] = Field(
        default=(), description="Namespaces that the policies leave alone, beside those of the system and the stack."
    )
    project_namespaces: tuple[NamespaceName, ...] = Field(
        default=(), description="Namespaces of the users, made once the policies are in place."
    )
    projects: dict[NamespaceName, Project] = Field(
        default={},
        description="Namespaces of the users with labels and limits, by name; projectNamespaces is the short form for "
        "those without.",
    )
    extra_device_classes: tuple[ExtraDeviceClass, ...] = Field(
        default=(), description="DeviceClasses beyond the catalog's: name, selector, extendedResource."
    )
    adopt: Adopt = Field(
        default=Adopt(),
        description="What the cluster has already and the next up takes over; berkelium adopt writes and removes it.",
    )

    @property
    def nvidia_driver(self) -> versions.NvidiaDriver:
        """What is known of the chosen NVIDIA driver."""
        return versions.nvidia_driver(self.charts.nvidia.version)

    @property
    def amd_operator(self) -> versions.AmdOperator:
        """What is known of the chosen AMD operator."""
        return versions.amd_operator(self.charts.amd.version)

    @property
    def amd_dra_image(self) -> str:
        """The image of the AMD DRA driver: the configured one, or the one that the operator's release pins."""
        return self.amd.dra_image or self.amd_operator.dra_image

    @property
    def amd_utils_image(self) -> str:
        """The image of the AMD operator's node utilities: the configured one, or that of the operator's release."""
        return self.amd.utils_image or self.amd_operator.utils_image

    @property
    def discovery(self) -> versions.NodeFeatureDiscovery:
        """What is known of the chosen node-feature-discovery."""
        return versions.node_feature_discovery(self.charts.node_feature_discovery.version)

    @property
    def stack_namespaces(self) -> tuple[str, ...]:
        """Namespaces of the parts that this stack installs."""
        parts = (
            (self.node_feature_discovery.enabled, self.discovery.chart),
            (self.nvidia.enabled, self.nvidia_driver.chart),
            (self.amd.enabled, self.amd_operator.chart),
        )
        return tuple(chart.namespace for enabled, chart in parts if enabled)

    @property
    def project_labels(self) -> dict[str, dict[str, str]]:
        """Every namespace of the users, of both forms, with its labels."""
        short = {name: {} for name in self.project_namespaces}
        return short | {name: dict(project.labels) for name, project in self.projects.items()}

    @property
    def policy_exemptions(self) -> tuple[str, ...]:
        """Every namespace that the policies leave alone, each once, sorted."""
        # Namespaces of parts that are switched off stay exempt: the part may still run there, installed by other means.
        own = (self.discovery.chart, self.nvidia_driver.chart, self.amd_operator.chart)
        names = {*SYSTEM_NAMESPACES, *(chart.namespace for chart in own), *self.exempt_namespaces}
        return tuple(sorted(names))

    def policy_mode(self, name: str) -> PolicyMode:
        """The mode of the policy of that name."""
        return self.policies.get(name, PolicyMode.DENY)
