"""The AMD GPU Operator: its Helm release, and the DeviceConfig that tells it what to run on the AMD nodes."""

import base64
import json
from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from berkelium_infra.catalog import AMD
from berkelium_infra.components.base import Component
from berkelium_infra.helm import release
from berkelium_infra.live import Live
from berkelium_infra.node_labels import VENDOR_LABELS
from berkelium_infra.settings import Settings
from berkelium_infra.settings.types import split_image

DEVICE_CONFIG = "berkelium"

REGISTRY_SECRET = "amd-driver-registry"
"""Secret that is made of amd.registryCredentials."""


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
        hooks: pulumi.ResourceHookBinding | None = None,
        live: Live | None = None,
    ) -> None:
        super().__init__(name, provider, depends_on, hooks=hooks)
        chart = settings.amd_operator.chart
        options = self.options(delete_before_replace=True)
        self.release = release(chart, settings.charts.amd, settings, _values(settings), options, live=live)
        login = self._registry_login(settings)
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
            opts=self.options(self.release, labelled, *login),
        )
        self.register_outputs({})

    def _registry_login(self, settings: Settings) -> list[pulumi.Resource]:
        """The Secret with the login at the driver images' registry, if the stack has them."""
        given = settings.amd.registry_credentials
        if given is None:
            return []
        password = given.password.get_secret_value()
        token = base64.b64encode(f"{given.username}:{password}".encode()).decode()
        login = {"username": given.username, "password": password, "auth": token}
        secret = Secret(
            REGISTRY_SECRET,
            metadata=ObjectMetaArgs(name=REGISTRY_SECRET, namespace=settings.amd_operator.chart.namespace),
            type="kubernetes.io/dockerconfigjson",
            string_data={".dockerconfigjson": pulumi.Output.secret(json.dumps({"auths": {given.server: login}}))},
            # What a Secret holds is changed by replacing it.
            opts=self.options(delete_before_replace=True),
        )
        return [secret]


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
    own = REGISTRY_SECRET if amd.registry_credentials else None
    driver: dict[str, object] = {"enable": amd.driver.install}
    if amd.driver.install:
        driver |= {"image": f"{amd.driver.registry}/{amd.driver.image}", "version": amd.driver.version}
        driver["tolerations"] = tolerations
        if secret := own or amd.driver.registry_secret:
            driver["imageRegistrySecret"] = {"name": secret}
    # The labeller's labels are not used here; node-feature-discovery labels the nodes.
    plugin: dict[str, object] = {"enableDevicePlugin": amd.device_plugin, "enableNodeLabeller": False}
    if amd.device_plugin:
        plugin |= {"devicePluginImage": amd.device_plugin_image, "devicePluginTolerations": tolerations}
    return {
        "selector": {VENDOR_LABELS[AMD]: "true", **amd.node_selector},
        "driver": driver,
        "commonConfig": {"initContainerImage": amd.init_image, "utilsContainer": {"image": settings.amd_utils_image}},
        "devicePlugin": plugin,
        "draDriver": {
            "enable": amd.dra_driver,
            "image": settings.amd_dra_image,
            "imagePullPolicy": "IfNotPresent",
            "tolerations": tolerations,
            **({"imageRegistrySecret": {"name": own}} if own else {}),
        },
        "metricsExporter": {"enable": False},
        "testRunner": {"enable": False},
        "configManager": {"enable": False},
    }
