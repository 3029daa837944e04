"""The DeviceClasses that users name in claims, and whose extended resources they may ask for instead."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.resource.v1 import (
    CELDeviceSelectorArgs,
    DeviceClass,
    DeviceClassSpecArgs,
    DeviceSelectorArgs,
)

from berkelium_infra.catalog import DEVICE_CLASSES
from berkelium_infra.components.base import Component
from berkelium_infra.settings import ExtraDeviceClass

# A release that once installed a class deletes it when it no longer contains it (the vendors' own, once this stack's
# values and post-renderer apply, or a chart of somebody's), unless the live object says keep; and takes it back when it
# contains it again, unless the label says that it is someone else's.
KEEP = {"helm.sh/resource-policy": "keep"}
OURS = {"app.kubernetes.io/managed-by": "pulumi"}


@dataclass(frozen=True)
class _Declared:
    name: str
    selector: str
    extended_resource: str | None


class DeviceClasses(Component):
    """The classes of the catalog and those that the stack adds; `extended_resources` by class, None where none is."""

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        extra: Sequence[ExtraDeviceClass] = (),
        depends_on: Sequence[pulumi.Resource] = (),
        protect: bool = False,
    ) -> None:
        super().__init__(name, provider, depends_on, protect=protect)
        declared = [_Declared(c.name, c.selector, c.extended_resource) for c in (*DEVICE_CLASSES, *extra)]
        for device_class in declared:
            DeviceClass(
                device_class.name,
                metadata=ObjectMetaArgs(name=device_class.name, annotations=KEEP, labels=OURS),
                spec=DeviceClassSpecArgs(
                    selectors=[DeviceSelectorArgs(cel=CELDeviceSelectorArgs(expression=device_class.selector))],
                    extended_resource_name=device_class.extended_resource,
                ),
                opts=self.options(),
            )
        self.extended_resources = {c.name: c.extended_resource for c in declared}
        self.register_outputs({})
