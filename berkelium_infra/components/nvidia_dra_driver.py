"""The NVIDIA DRA driver: its CRDs where Helm would leave old ones, and its release, post-rendered."""

import json
from collections.abc import Sequence

import pulumi

from berkelium_infra.catalog import CHART_DEVICE_CLASSES
from berkelium_infra.components import crds
from berkelium_infra.components.base import Component
from berkelium_infra.helm import release
from berkelium_infra.live import Live
from berkelium_infra.node_labels import DYNAMIC_MIG_LABEL
from berkelium_infra.settings import Settings
from berkelium_infra.settings.types import split_image
from berkelium_infra.settings.warnings import splits_kubelet_plugin

POST_RENDERER = "berkelium_infra/postrender/nvidia_dra_driver.py"
DROP_CLASSES = "berkelium.io/postrender-drop-device-classes"
SPLIT_BY = "berkelium.io/postrender-split-by"
INIT_RESOURCES = "berkelium.io/postrender-init-resources"
"""The chart ignores its own key for the init container's resources."""


class NvidiaDraDriver(Component):
    """The release. It must come after the device classes that the chart would install too."""

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        settings: Settings,
        depends_on: Sequence[pulumi.Resource] = (),
        hooks: pulumi.ResourceHookBinding | None = None,
        live: Live | None = None,
    ) -> None:
        super().__init__(name, provider, depends_on, hooks=hooks)
        driver = settings.nvidia_driver
        # Up to date before the first pod of the release, which reads and writes what they define.
        definitions = crds.declare(driver.crds, self.options) if driver.crds else []
        self.release = release(
            driver.chart,
            settings.charts.nvidia,
            settings,
            _values(settings),
            self.options(*definitions, delete_before_replace=True),
            post_renderer=POST_RENDERER,
            live=live,
        )
        self.register_outputs({})


def _values(settings: Settings) -> dict[str, object]:
    nvidia = settings.nvidia
    # The post-renderer gets no arguments; its orders travel in the values, where a preview shows them.
    orders = {
        DROP_CLASSES: ",".join(CHART_DEVICE_CLASSES),
        INIT_RESOURCES: json.dumps(nvidia.resources.init.manifest(), separators=(",", ":")),
    }
    if splits_kubelet_plugin(settings):
        orders[SPLIT_BY] = DYNAMIC_MIG_LABEL
    values: dict[str, object] = {
        "nvidiaDriverRoot": nvidia.driver_root,
        "featureGates": {"DynamicMIG": bool(nvidia.dynamic_mig_models), **nvidia.feature_gates},
        "resources": {"gpus": {"enabled": True}, "computeDomains": {"enabled": nvidia.compute_domains}},
        "controller": {"containers": {"computeDomain": {"resources": nvidia.resources.controller.manifest()}}},
        "kubeletPlugin": {
            "podAnnotations": orders,
            "tolerations": [toleration.manifest() for toleration in nvidia.tolerations],
            "nodeSelector": dict(nvidia.node_selector),
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": _count(nvidia.max_unavailable)},
            },
            "containers": {
                "gpus": {"resources": nvidia.resources.gpus.manifest()},
                "computeDomains": {"resources": nvidia.resources.compute_domains.manifest()},
            },
        },
    }
    if settings.nvidia_driver.name_override:
        values["nameOverride"] = settings.nvidia_driver.name_override
    if nvidia.image:
        repository, tag = split_image(nvidia.image)
        values["image"] = {"repository": repository, "tag": tag}
    return values


def _count(max_unavailable: str) -> int | str:
    """The API takes a number and a share in different types."""
    return max_unavailable if max_unavailable.endswith("%") else int(max_unavailable)
