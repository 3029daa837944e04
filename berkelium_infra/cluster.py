"""The cluster's accelerator setup: its parts, in the order in which they depend on each other.

Independent parts are applied at the same time: the two vendors' releases wait neither for each other nor for labels.
"""

import pulumi
from pulumi_kubernetes import Provider

from berkelium_infra.components.admission_policies import AdmissionPolicies
from berkelium_infra.components.amd_gpu_operator import AmdGpuOperator
from berkelium_infra.components.device_classes import DeviceClasses
from berkelium_infra.components.namespaces import PRIVILEGED, Namespaces
from berkelium_infra.components.node_feature_discovery import NodeFeatureDiscovery
from berkelium_infra.components.nvidia_dra_driver import NvidiaDraDriver
from berkelium_infra.settings import Settings, warnings


class Cluster:
    """Declares everything. `outputs` are the stack's outputs."""

    def __init__(self, settings: Settings) -> None:
        for warning in warnings(settings):
            pulumi.log.warn(warning)
        provider = _provider(settings)
        policies = AdmissionPolicies("policies", provider, settings)
        Namespaces("projects", provider, settings.project_namespaces, depends_on=[policies])
        classes = DeviceClasses("device-classes", provider, settings.extra_device_classes)
        namespaces = Namespaces("namespaces", provider, settings.stack_namespaces, PRIVILEGED).by_name

        def own(namespace: str) -> list[pulumi.Resource]:
            return [namespaces[namespace]] if namespace in namespaces else []

        discovery = NodeFeatureDiscovery(
            "node-feature-discovery", provider, settings, depends_on=own(settings.discovery.chart.namespace)
        )
        if settings.nvidia.enabled:
            # With policies and classes in place before any GPU is on offer, no pod takes one past the policies, and
            # Helm finds the classes that its chart would install in other hands.
            ready = [*own(settings.nvidia_driver.chart.namespace), policies, classes]
            NvidiaDraDriver("nvidia-dra-driver-gpu", provider, settings, depends_on=ready)
        if settings.amd.enabled:
            ready = [*own(settings.amd_operator.chart.namespace), policies, classes]
            AmdGpuOperator("amd-gpu-operator", provider, settings, discovery.rules, depends_on=ready)
        self.outputs = _outputs(settings, classes, policies)

    def export(self) -> None:
        """Make `outputs` the outputs of the stack."""
        for name, value in self.outputs.items():
            pulumi.export(name, value)


def _provider(settings: Settings) -> Provider:
    # An empty kubeconfig keeps its path and its contents, a token among them, out of the state: the provider's own
    # process reads $KUBECONFIG.
    return Provider(
        "cluster",
        kubeconfig="",
        context=settings.context or None,
        cluster_identifier=settings.cluster_identifier,
        enable_patch_force=True,
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
        "namespaces": {"stack": list(settings.stack_namespaces), "projects": list(settings.project_namespaces)},
    }
