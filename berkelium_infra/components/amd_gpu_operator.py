"""The AMD GPU Operator: its Helm release, and the DeviceConfig that tells it what to run on the AMD nodes."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from berkelium_infra.catalog import AMD
from berkelium_infra.components.base import Component
from berkelium_infra.components.node_feature_discovery import VENDOR_LABELS
from berkelium_infra.helm import release
from berkelium_infra.settings import Settings
from berkelium_infra.settings.types import split_image

DEVICE_CONFIG = "berkelium"


class AmdGpuOperator(Component):
    """The release and its DeviceConfig, which goes first when the stack is taken down.

    `labelled` is what labels the nodes: the operator does not look again when it finds no node for a DeviceConfig.
    """

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        settings: Settings,
        labelled: pulumi.Resource,
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> None:
        super().__init__(name, provider, depends_on)
        chart = settings.amd_operator.chart
        options = self.options(delete_before_replace=True)
        self.release = release(chart, settings.charts.amd, settings, _values(settings), options)
        self.device_config = CustomResource(
            f"{DEVICE_CONFIG}-amd",
            api_version="amd.com/v1alpha1",
            kind="DeviceConfig",
            metadata=ObjectMetaArgs(
                name=DEVICE_CONFIG,
                namespace=chart.namespace,
                # The garbage collector learns of a new kind half a minute late; a foreground deletion waits for it.
                annotations={"pulumi.com/deletionPropagationPolicy": "background"},
            ),
            spec=device_config(settings),
            opts=self.options(self.release, labelled),
        )
        self.register_outputs({})


def _values(settings: Settings) -> dict[str, object]:
    amd = settings.amd
    manager: dict[str, object] = {"resources": amd.resources.manager.manifest()}
    if amd.operator_image:
        repository, tag = split_image(amd.operator_image)
        manager["image"] = {"repository": repository, "tag": tag}
    # The kernel module manager is there to install the driver, and for nothing else.
    kmm: dict[str, object] = {"enabled": amd.driver.install, "watch": amd.driver.install}
    if amd.driver.install:
        kmm["controller"] = {"manager": {"resources": amd.resources.kmm_controller.manifest()}}
        kmm["webhookServer"] = {"webhookServer": {"resources": amd.resources.kmm_webhook.manifest()}}
    return {"controllerManager": {"manager": manager}, "kmm": kmm}


def device_config(settings: Settings) -> dict[str, object]:
    """The spec of the DeviceConfig.

    Every block is written out: the CRD's own defaults switch the device plugin and the driver installation on, and name
    images tagged latest.
    """
    amd = settings.amd
    tolerations = [toleration.manifest() for toleration in amd.tolerations]
    driver: dict[str, object] = {"enable": amd.driver.install}
    if amd.driver.install:
        driver |= {"image": f"{amd.driver.registry}/{amd.driver.image}", "version": amd.driver.version}
        driver["tolerations"] = tolerations
        if amd.driver.registry_secret:
            driver["imageRegistrySecret"] = {"name": amd.driver.registry_secret}
    # The labeller's labels are not used here; node-feature-discovery labels the nodes.
    plugin: dict[str, object] = {"enableDevicePlugin": amd.device_plugin, "enableNodeLabeller": False}
    if amd.device_plugin:
        plugin |= {"devicePluginImage": amd.device_plugin_image, "devicePluginTolerations": tolerations}
    return {
        "selector": {VENDOR_LABELS[AMD]: "true", **amd.node_selector},
        "driver": driver,
        "commonConfig": {"initContainerImage": amd.init_image, "utilsContainer": {"image": amd.utils_image}},
        "devicePlugin": plugin,
        "draDriver": {
            "enable": amd.dra_driver,
            "image": amd.dra_image,
            "imagePullPolicy": "IfNotPresent",
            "tolerations": tolerations,
        },
        "metricsExporter": {"enable": False},
        "testRunner": {"enable": False},
        "configManager": {"enable": False},
    }
