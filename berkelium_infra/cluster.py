"""The cluster's accelerator setup: its parts, in the order in which they depend on each other.

Independent parts are applied at the same time: the two vendors' releases wait neither for each other nor for labels.
"""

import pulumi
from pulumi_kubernetes import Provider

from berkelium_infra import live
from berkelium_infra.catalog import AMD, NVIDIA
from berkelium_infra.components.admission_policies import AdmissionPolicies
from berkelium_infra.components.adopted import adopt_existing
from berkelium_infra.components.amd_gpu_operator import AmdGpuOperator
from berkelium_infra.components.cluster_identity import ClusterIdentity
from berkelium_infra.components.device_classes import DeviceClasses
from berkelium_infra.components.namespaces import PRIVILEGED, Namespaces
from berkelium_infra.components.node_feature_discovery import NodeFeatureDiscovery
from berkelium_infra.components.nvidia_dra_driver import NvidiaDraDriver
from berkelium_infra.components.projects import ProjectLimits
from berkelium_infra.components.taken_in import take_in_unrecorded
from berkelium_infra.components.teardown import Teardown
from berkelium_infra.settings import Settings, warnings
from berkelium_infra.upgrades import Upgrades


class Cluster:
    """Declares everything. `outputs` are the stack's outputs."""

    def __init__(self, settings: Settings) -> None:
        for warning in warnings(settings):
            pulumi.log.warn(warning)
        self.live = live.find(settings.context)
        identity = ClusterIdentity(self.live, settings.context)
        teardown = Teardown(self.live, settings.guard_destroy)
        upgrades = Upgrades(settings, self.live)
        provider = _provider(settings, identity.resource)
        adopt_existing(settings.adopt)
        take_in_unrecorded()
        policies = AdmissionPolicies("policies", provider, settings, live=self.live)
        classes = DeviceClasses("device-classes", provider, settings.extra_device_classes, protect=settings.protect)
        # Users' namespaces last of all, and so the first to go: nothing runs there any more when the classes go.
        projects = Namespaces("projects", provider, settings.project_labels, depends_on=[policies, classes])
        limits = ProjectLimits("project-limits", provider, settings, projects.by_name)
        own_namespaces = Namespaces("namespaces", provider, dict.fromkeys(settings.stack_namespaces, PRIVILEGED))
        namespaces = own_namespaces.by_name

        def own(namespace: str) -> list[pulumi.Resource]:
            return [namespaces[namespace]] if namespace in namespaces else []

        discovery = NodeFeatureDiscovery(
            "node-feature-discovery",
            provider,
            settings,
            depends_on=own(settings.discovery.chart.namespace),
            live=self.live,
        )
        parts: list[pulumi.Resource] = [policies, classes, projects, limits, own_namespaces, discovery]
        if settings.nvidia.enabled:
            # With policies and classes in place before any GPU is on offer, no pod takes one past the policies, and
            # Helm finds the classes that its chart would install in other hands.
            ready = [*own(settings.nvidia_driver.chart.namespace), policies, classes]
            parts.append(
                NvidiaDraDriver(
                    "nvidia-dra-driver-gpu",
                    provider,
                    settings,
                    ready,
                    hooks=upgrades.and_also(teardown.of(NVIDIA)),
                    live=self.live,
                )
            )
        if settings.amd.enabled:
            ready = [*own(settings.amd_operator.chart.namespace), policies, classes]
            parts.append(
                AmdGpuOperator(
                    "amd-gpu-operator",
                    provider,
                    settings,
                    discovery.rules,
                    ready,
                    hooks=upgrades.and_also(teardown.of(AMD)),
                    live=self.live,
                )
            )
        teardown.guard(parts)
        self.outputs = _outputs(settings, classes, policies)

    def export(self) -> None:
        """Make `outputs` the outputs of the stack."""
        for name, value in self.outputs.items():
            pulumi.export(name, value)


def _provider(settings: Settings, identity: pulumi.Resource) -> Provider:
    # An empty kubeconfig keeps its path and its contents, a token among them, out of the state: the provider's own
    # process reads $KUBECONFIG.
    return Provider(
        "cluster",
        kubeconfig="",
        context=settings.context or None,
        cluster_identifier=settings.cluster_identifier,
        enable_patch_force=True,
        # Everything in the cluster uses this provider, so all of it waits until the cluster is known to be the right
        # one.
        opts=pulumi.ResourceOptions(depends_on=[identity]),
    )


def _outputs(settings: Settings, classes: DeviceClasses, policies: AdmissionPolicies) -> dict[str, object]:
    parts = (
        (settings.node_feature_discovery.enabled, settings.discovery.chart, settings.charts.node_feature_discovery),
        (settings.nvidia.enabled, settings.nvidia_driver.chart, settings.charts.nvidia),
        (settings.amd.enabled, settings.amd_operator.chart, settings.charts.amd),
    )
    return {
        "versions": {chart.name: chosen.version for enabled, chart, chosen in parts if enabled},
        "deviceClasses": classes.extended_resources,
        "policies": policies.modes,
        "namespaces": {"stack": list(settings.stack_namespaces), "projects": list(settings.project_labels)},
    }
