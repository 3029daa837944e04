"""Adoption of what a cluster already has: which objects the next `up` imports instead of creating."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from berkelium_infra.catalog import DEVICE_CLASSES
from berkelium_infra.policies import policy_names
from berkelium_infra.settings.types import NamespaceName, ObjectName, Section

if TYPE_CHECKING:
    from berkelium_infra.settings.model import Settings

RULES_NAME = "berkelium-gpus"
"""Name of the NodeFeatureRule."""

DEVICE_CONFIG = "berkelium"
"""Name of the AMD operator's DeviceConfig."""

QUOTA = "project-quota"
LIMIT_RANGE = "project-limits"
"""Names of what limits a project, the same in each project's namespace."""

RELEASE = "kubernetes:helm.sh/v3:Release"

_PARTS = {
    "kubernetes:core/v1:Namespace": "namespaces",
    "kubernetes:resource.k8s.io/v1:DeviceClass": "device_classes",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy": "policies",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding": "policy_bindings",
    RELEASE: "releases",
    "kubernetes:nfd.k8s-sigs.io/v1alpha1:NodeFeatureRule": "node_feature_rules",
    "kubernetes:amd.com/v1alpha1:DeviceConfig": "device_configs",
    "kubernetes:core/v1:ResourceQuota": "resource_quotas",
    "kubernetes:core/v1:LimitRange": "limit_ranges",
}
"""The field of `Adopt` that names the objects of a type of the Pulumi provider."""

_BY_NAMESPACE = {"resource_quotas": QUOTA, "limit_ranges": LIMIT_RANGE}
"""Parts with one object per namespace, which is what stands in the configuration."""


class Identity(NamedTuple):
    """Which object a resource of the program is: its field of `Adopt`, what stands there, and where it lies."""

    part: str
    entry: str
    name: str
    namespace: str | None

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other: its part and entry. The state has a namespace where there is none."""
        return self.part, self.entry

    @property
    def id(self) -> str:
        """The id by which the provider imports it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def identify(kind: str, inputs: Mapping[str, Any]) -> Identity | None:
    """The identity of a resource by its type in the provider and its inputs; None for what cannot be adopted.

    `metadata` may be a mapping or an input class of the SDK.
    """
    part = _PARTS.get(kind)
    if part is None:
        return None
    named: Any = inputs if kind == RELEASE else inputs["metadata"]
    read = named.get if isinstance(named, Mapping) else partial(getattr, named)
    name, namespace = str(read("name")), read("namespace")
    if part in _BY_NAMESPACE:
        return Identity(part, str(namespace), name, namespace) if name == _BY_NAMESPACE[part] else None
    return Identity(part, name, name, namespace)


class Adopt(Section):
    """Objects that exist already, by name; an entry whose object is missing makes the `up` fail.

    Once an object is in the stack's state its entry does nothing, so that all of them can go.
    """

    namespaces: tuple[NamespaceName, ...] = Field(default=(), description="Namespaces to take over.")
    device_classes: tuple[ObjectName, ...] = Field(default=(), description="DeviceClasses to take over.")
    policies: tuple[ObjectName, ...] = Field(default=(), description="ValidatingAdmissionPolicies to take over.")
    policy_bindings: tuple[ObjectName, ...] = Field(
        default=(), description="ValidatingAdmissionPolicyBindings to take over."
    )
    releases: tuple[ObjectName, ...] = Field(
        default=(), description="Helm releases to take over; the next revision has this stack's chart and values."
    )
    node_feature_rules: tuple[ObjectName, ...] = Field(default=(), description="NodeFeatureRules to take over.")
    device_configs: tuple[ObjectName, ...] = Field(
        default=(), description="DeviceConfigs of the AMD operator to take over."
    )
    resource_quotas: tuple[NamespaceName, ...] = Field(
        default=(), description="Projects whose ResourceQuota project-quota is taken over."
    )
    limit_ranges: tuple[NamespaceName, ...] = Field(
        default=(), description="Projects whose LimitRange project-limits is taken over."
    )

    def __bool__(self) -> bool:
        return any(getattr(self, part) for part in type(self).model_fields)


def adoptable(settings: "Settings", project: Path) -> dict[str, tuple[str, ...]]:
    """What the stack declares and so could adopt: the names that each field of `Adopt` may hold."""
    classes = (*DEVICE_CLASSES, *settings.extra_device_classes)
    names = policy_names(project)
    limited = settings.projects.items()
    parts = (
        (settings.node_feature_discovery.enabled, settings.discovery.chart),
        (settings.nvidia.enabled, settings.nvidia_driver.chart),
        (settings.amd.enabled, settings.amd_operator.chart),
    )
    return {
        "namespaces": (*settings.stack_namespaces, *settings.project_labels),
        "device_classes": tuple(known.name for known in classes),
        "policies": tuple(names),
        "policy_bindings": tuple(name for name in names if settings.policy_mode(name) != "off"),
        "releases": tuple(chart.release for enabled, chart in parts if enabled),
        "node_feature_rules": (RULES_NAME,),
        "device_configs": (DEVICE_CONFIG,) if settings.amd.enabled else (),
        "resource_quotas": tuple(name for name, project in limited if project.quota),
        "limit_ranges": tuple(name for name, project in limited if project.limit_range),
    }
