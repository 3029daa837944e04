"""What a stack's state records: resources, and operations that were begun and whose end nobody saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RELEASE = "kubernetes:helm.sh/v3:Release"
STASH = "pulumi:index:Stash"
IDENTITY = "cluster-identity"


@dataclass(frozen=True)
class Recorded:
    """A deployment as `pulumi stack export` gives it."""

    deployment: Mapping[str, Any]

    @property
    def resources(self) -> list[Mapping[str, Any]]:
        """The resources, in the order of the state."""
        return list(self.deployment.get("resources") or ())

    @property
    def pending(self) -> list[Mapping[str, Any]]:
        """The operations whose end was not recorded: `type` (creating, …) and `resource`."""
        return list(self.deployment.get("pending_operations") or ())

    @property
    def urns(self) -> set[str]:
        """The URNs of the resources."""
        return {str(resource["urn"]) for resource in self.resources}

    @property
    def cluster(self) -> str | None:
        """The identity of the cluster that the stack belongs to, once it has been applied."""
        for resource in self.resources:
            if resource["type"] == STASH and name_of(resource["urn"]) == IDENTITY:
                return str((resource.get("outputs") or {}).get("output"))
        return None

    @property
    def releases(self) -> set[tuple[str, str]]:
        """Namespace and name of the Helm releases that are recorded, or were begun."""
        known = [*self.resources, *(operation["resource"] for operation in self.pending)]
        return {identified(each.get("inputs") or {}) for each in known if each["type"] == RELEASE}


def name_of(urn: str) -> str:
    """The resource's own name, the last part of its URN."""
    return urn.rsplit("::", 1)[-1]


def identified(inputs: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name in the inputs of a release, which has them at the top, or of an object, in its metadata."""
    metadata = inputs.get("metadata") or inputs
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
