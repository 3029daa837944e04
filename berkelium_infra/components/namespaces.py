"""Namespaces of the stack's own parts, and those of the users."""

from collections.abc import Mapping, Sequence

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from berkelium_infra.components.base import Component

PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}
"""Drivers mount the host's device and kubelet directories; a cluster-wide default of Pod Security would refuse them."""


class Namespaces(Component):
    """One namespace per name, with its labels; `by_name` holds them."""

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        labels: Mapping[str, Mapping[str, str]],
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> None:
        super().__init__(name, provider, depends_on)
        self.by_name = {
            namespace: Namespace(
                namespace,
                metadata=ObjectMetaArgs(name=namespace, labels=dict(given) or None),
                opts=self.options(delete_before_replace=True),
            )
            for namespace, given in labels.items()
        }
        self.register_outputs({})
