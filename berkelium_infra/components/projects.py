"""What each project may take of the cluster: a ResourceQuota and a LimitRange in its namespace."""

from collections.abc import Mapping, Sequence

import pulumi
from pulumi_kubernetes.core.v1 import (
    LimitRange,
    LimitRangeItemArgs,
    LimitRangeSpecArgs,
    ResourceQuota,
    ResourceQuotaSpecArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from berkelium_infra.components.base import Component
from berkelium_infra.settings import Settings
from berkelium_infra.settings.adoption import LIMIT_RANGE, QUOTA
from berkelium_infra.settings.projects import Project, hard_limits


class ProjectLimits(Component):
    """The limits of every project that has some, in its namespace of `namespaces`."""

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        settings: Settings,
        namespaces: Mapping[str, pulumi.Resource],
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> None:
        super().__init__(name, provider, depends_on)
        for project, limits in settings.projects.items():
            options = self.options(namespaces[project], delete_before_replace=True)
            if limits.quota:
                ResourceQuota(
                    project,
                    metadata=ObjectMetaArgs(name=QUOTA, namespace=project),
                    spec=ResourceQuotaSpecArgs(hard=hard_limits(limits.quota, settings.extra_device_classes)),
                    opts=options,
                )
            if limits.limit_range:
                LimitRange(
                    project,
                    metadata=ObjectMetaArgs(name=LIMIT_RANGE, namespace=project),
                    spec=LimitRangeSpecArgs(limits=[_container(limits)]),
                    opts=options,
                )
        self.register_outputs({})


def _container(project: Project) -> LimitRangeItemArgs:
    least, most = project.limit_range.min.manifest(), project.limit_range.max.manifest()
    return LimitRangeItemArgs(type="Container", min=least or None, max=most or None)
