"""Namespaces of the stack's own parts, and those of the users."""

from collections.abc import Iterable, Sequence

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from berkelium_infra.components.base import Component

PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}
"""Drivers mount the host's device and kubelet directories; a cluster-wide default of Pod Security would refuse them."""


class Namespaces(Component):
    """One namespace per name, with the given labels."""

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        names: Iterable[str],
        labels: dict[str, str] | None = None,
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> None:
        super().__init__(name, provider, depends_on)
        self.by_name = {
            namespace: Namespace(
                namespace,
                metadata=ObjectMetaArgs(name=namespace, labels=labels),
                opts=self.options(delete_before_replace=True),
            )
            for namespace in names
        }
        self.register_outputs({})
