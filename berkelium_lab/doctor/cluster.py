"""What the examinations see of a cluster: every collection is read once, and nothing is ever written.

A collection is a moment's picture; two collections may be some milliseconds apart. Probes are creations by dry run.
"""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Protocol, TypeVar

from berkelium_lab.api import UNKNOWN_KIND, ApiError, Object

T = TypeVar("T")
Objects = list[Object]
Warnings = list[str]

RESOURCE_API = "resource.k8s.io/v1"
ADMISSION_API = "admissionregistration.k8s.io/v1"


class Reader(Protocol):
    """The requests that the doctor sends; `berkelium_lab.api.Api` has them."""

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Objects: ...

    def create(
        self, obj: Object, dry_run: bool = False, strict: bool = True, warnings: Warnings | None = None
    ) -> Object: ...

    def raw(self, method: str, path: str) -> Object: ...


class CannotLook(Exception):
    """The API server does not let this identity look. The text is the permission that is missing."""


class Cluster:
    """A cluster seen through one identity. Every member raises `CannotLook` when that identity may not see it."""

    def __init__(self, api: Reader) -> None:
        self._api = api
        self._seen: dict[tuple[str, str, str | None], Objects] = {}

    @cached_property
    def version(self) -> tuple[int, int, int]:
        """Major, minor and patch of the API server."""
        return parse_version(self.version_text)

    @cached_property
    def version_text(self) -> str:
        """The API server's version as it says it, such as v1.37.2."""
        return str(_allowed(lambda: self._api.raw("GET", "/version"))["gitVersion"])

    @cached_property
    def nodes(self) -> Objects:
        return self.list("v1", "Node")

    @cached_property
    def slices(self) -> Objects:
        return self.list(RESOURCE_API, "ResourceSlice")

    @cached_property
    def classes(self) -> Objects:
        return self.list(RESOURCE_API, "DeviceClass")

    @cached_property
    def namespaces(self) -> Objects:
        return self.list("v1", "Namespace")

    @cached_property
    def pods(self) -> Objects:
        """All pods of all namespaces."""
        return self.list("v1", "Pod")

    def list(self, api_version: str, kind: str, namespace: str | None = None, labels: str | None = None) -> Objects:
        """The objects of a kind, in one namespace or in all; none when the server does not know the kind."""
        key = (f"{api_version}/{kind}", namespace or "", labels)
        if key not in self._seen:
            try:
                objects = _allowed(lambda: self._api.list(api_version, kind, namespace, labels))
            except ApiError as error:
                if error.reason != UNKNOWN_KIND:
                    raise
                objects = []
            self._seen[key] = objects
        return self._seen[key]

    def serves(self, api_version: str, kind: str) -> bool:
        """Whether the server knows the kind."""
        try:
            self._api.list(api_version, kind, field_selector="metadata.name=none")
        except ApiError as error:
            return error.reason != UNKNOWN_KIND
        return True

    def named(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """The object of that name, or None."""
        objects = self.list(api_version, kind, namespace)
        return next((obj for obj in objects if obj["metadata"]["name"] == name), None)

    def probe(self, obj: Object, warnings: Warnings | None = None, strict: bool = True) -> Object:
        """The object as the server would store it; nothing is stored. Raises `ApiError` when it is refused."""
        return _allowed(lambda: self._api.create(obj, dry_run=True, strict=strict, warnings=warnings))


def _allowed(request: Callable[[], T]) -> T:
    try:
        return request()
    except ApiError as error:
        if missing := _missing_permission(error):
            raise CannotLook(missing) from None
        raise


# Kubernetes' own wording (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go).
_FORBIDDEN = re.compile(
    r'cannot (?P<verb>\S+) (?:resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"|path "(?P<path>[^"]+)")'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)


def _missing_permission(error: ApiError) -> str | None:
    """The permission that the refusal names; None for a refusal by admission, which may also come with 403."""
    if error.status == 401:
        return "a valid login (the API server answers 401)"
    found = _FORBIDDEN.search(error.message) if error.status == 403 else None
    if found is None:
        return None
    if found["path"]:
        return f"{found['verb']} on the path {found['path']}"
    resource = f"{found['resource']}.{found['group']}" if found["group"] else found["resource"]
    return f"{found['verb']} on {resource}" + (f" in namespace {found['namespace']}" if found["namespace"] else "")


def parse_version(text: str) -> tuple[int, int, int]:
    """`v1.37.2-gke.100` as (1, 37, 2). Raises ValueError for anything without three numbers."""
    major, minor, patch = text.removeprefix("v").partition("-")[0].partition("+")[0].split(".")[:3]
    return int(major), int(minor), int(patch)


def name_of(obj: Object) -> str:
    """The object's name."""
    return str(obj["metadata"]["name"])


def condition(obj: Object, type: str) -> Object:
    """The condition of that type in the object's status; empty if it has none."""
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((entry for entry in conditions if entry["type"] == type), {})
