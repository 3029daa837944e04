"""node-feature-discovery, shared by both vendors, and the rules by which it labels GPU nodes."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from berkelium_infra.catalog import MODELS
from berkelium_infra.components.base import Component
from berkelium_infra.gpu import GpuModel
from berkelium_infra.helm import release
from berkelium_infra.live import Live
from berkelium_infra.node_labels import RULES_NAME, labels
from berkelium_infra.settings import Settings
from berkelium_infra.settings.types import split_image


class NodeFeatureDiscovery(Component):
    """The release (unless the cluster runs its own) and the NodeFeatureRule with one rule per GPU model.

    `rules` is the last resource; who needs the labels waits for it.
    """

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        settings: Settings,
        depends_on: Sequence[pulumi.Resource] = (),
        live: Live | None = None,
    ) -> None:
        super().__init__(name, provider, depends_on)
        installed: list[pulumi.Resource] = []
        if settings.node_feature_discovery.enabled:
            chart, chosen = settings.discovery.chart, settings.charts.node_feature_discovery
            options = self.options(delete_before_replace=True)
            installed.append(release(chart, chosen, settings, _values(settings), options, live=live))
        self.rules = CustomResource(
            RULES_NAME,
            api_version="nfd.k8s-sigs.io/v1alpha1",
            kind="NodeFeatureRule",
            metadata=ObjectMetaArgs(name=RULES_NAME),
            spec={"rules": [_rule(model, settings) for model in MODELS]},
            opts=self.options(*installed),
        )
        self.register_outputs({})


def _values(settings: Settings) -> dict[str, object]:
    chosen = settings.node_feature_discovery
    values: dict[str, object] = {
        "master": {"resources": chosen.resources.master.manifest()},
        "worker": {
            "resources": chosen.resources.worker.manifest(),
            "tolerations": [toleration.manifest() for toleration in chosen.tolerations],
            "nodeSelector": dict(chosen.node_selector),
        },
        "gc": {"resources": chosen.resources.gc.manifest()},
    }
    if chosen.image:
        repository, tag = split_image(chosen.image)
        values["image"] = {"repository": repository, "tag": tag}
    return values


def _rule(model: GpuModel, settings: Settings) -> dict[str, object]:
    device = {
        "vendor": {"op": "In", "value": [model.vendor.pci_id]},
        "device": {"op": "In", "value": list(model.pci_devices)},
    }
    return {
        "name": model.key,
        "labels": labels(model, settings.nvidia.dynamic_mig_models),
        "matchFeatures": [{"feature": "pci.device", "matchExpressions": device}],
    }
