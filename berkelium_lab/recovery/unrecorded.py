"""Objects that the cluster has, the program declares, and the state does not know: created just before a kill."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from berkelium_lab.api import UNKNOWN_KIND, Api, ApiError
from berkelium_lab.recovery import helm_records
from berkelium_lab.recovery.recorded import RELEASE, identified, name_of

_PREFIX = "kubernetes:"


@dataclass(frozen=True)
class Declared:
    """A resource that the program declares and the state lacks."""

    type: str
    urn: str
    namespace: str
    name: str

    @classmethod
    def of(cls, step: Any) -> "Declared | None":
        """From the metadata of an engine event; None for anything but the creation of an object in the cluster."""
        operation = getattr(step.op, "value", step.op)
        if operation != "create" or not step.type.startswith(_PREFIX) or step.new is None:
            return None
        inputs: Mapping[str, Any] = step.new.inputs or {}
        return cls(step.type, step.urn, *identified(inputs))

    @property
    def id(self) -> str:
        """How an import names the object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def api_version(self) -> str:
        """The `apiVersion` in the type's name, where the core group is spelled out."""
        return self.type.removeprefix(_PREFIX).rpartition(":")[0].removeprefix("core/")

    @property
    def kind(self) -> str:
        """The kind, `Release` for a Helm release."""
        return self.type.rpartition(":")[2]

    def exists(self, api: Api) -> bool:
        """Whether the cluster has it."""
        if self.type == RELEASE:
            return helm_records.has_revisions(api, self.namespace, self.name)
        try:
            return api.get(self.api_version, self.kind, self.name, self.namespace or None) is not None
        except ApiError as error:
            if error.reason == UNKNOWN_KIND:
                return False
            raise

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


def by_resource(found: Iterable[Declared]) -> dict[str, str]:
    """The ids of the live objects, by the type and name of the resources that are to import them."""
    return {f"{each.type}::{name_of(each.urn)}": each.id for each in found}
