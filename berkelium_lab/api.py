"""A thin layer over the official Kubernetes client: plain dictionaries in and out, any kind, one error type.

The client library loads the kubeconfig, authenticates and holds the connections; this module maps an `apiVersion` and
`kind` to a path by discovery, and leaves objects as the API server wrote them. Connections may be shared by threads.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from kubernetes import config
from kubernetes.client import Configuration

from berkelium_lab.connection import JSON, ApiError, Connection, Object, Query, Response, error_of, without_none

__all__ = [
    "APPLY_PATCH",
    "JSON",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_PATCH",
    "UNKNOWN_KIND",
    "Api",
    "ApiError",
    "Object",
    "Resource",
    "Response",
    "connect",
]

Objects = list[Object]
Warnings = list[str]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_CREATIONS = 5
"""How often a creation is tried that meets a quota whose count changes."""

UNKNOWN_KIND = "UnknownKind"
"""Reason of the `ApiError` (status 404) for a kind that the API server does not serve, a missing CRD for instance."""


@dataclass(frozen=True)
class Resource:
    """How the API server serves a kind."""

    plural: str
    namespaced: bool


class Api(Connection):
    """Requests to one API server. Made by `connect`.

    Methods that take an object read `apiVersion`, `kind`, name and namespace from it; a namespaced object without a
    namespace goes to `default`. `warnings`, where it is accepted, is a list that receives the texts of the warnings
    (of admission policies, deprecated versions, …) in the answer.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self._kinds: dict[str, dict[str, Resource]] = {}
        self._lock = threading.Lock()

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None when there is none. Raises `ApiError` with reason `UnknownKind` for an unknown kind."""
        path = self.path(api_version, kind, name, namespace)
        try:
            with self._served(api_version, kind):
                return self.request("GET", path).body
        except ApiError as error:
            if _object_is_missing(error):
                return None
            raise

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Objects:
        """The objects of a kind in one namespace, or in all when `namespace` is None."""
        return self.list_with_version(api_version, kind, namespace, label_selector, field_selector)[0]

    def list_with_version(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[Objects, str]:
        """As `list`, with the resource version from which `watch` continues without a gap."""
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        path = self.collection(api_version, kind, namespace)
        with self._served(api_version, kind):
            body = self.request("GET", path, query).body
        items = [{"apiVersion": api_version, "kind": kind, **item} for item in body.get("items") or []]
        return items, body["metadata"]["resourceVersion"]

    def create(
        self, obj: Object, dry_run: bool = False, strict: bool = True, warnings: Warnings | None = None
    ) -> Object:
        """Create `obj`; with `strict`, a field that the API does not know is refused instead of dropped.

        What was refused because a quota's count changed at the same moment is tried again, as the API server asks.
        """
        query = {"dryRun": "All" if dry_run else None, "fieldValidation": "Strict" if strict else "Warn"}
        path = self.collection(obj["apiVersion"], obj["kind"], self._namespace_of(obj))
        conflicts = 0
        while True:
            try:
                with self._served(obj["apiVersion"], obj["kind"]):
                    return self._send("POST", path, query, obj, JSON, warnings)
            except ApiError as error:
                conflicts += 1
                if error.reason != "Conflict" or conflicts == _CREATIONS:
                    raise
                time.sleep(0.1 * conflicts)

    def apply(
        self, obj: Object, manager: str = "berkelium-lab", dry_run: bool = False, warnings: Warnings | None = None
    ) -> Object:
        """Server-side apply of `obj` as field manager `manager`, taking over fields that others own."""
        query = {
            "fieldManager": manager,
            "force": "true",
            "dryRun": "All" if dry_run else None,
            "fieldValidation": "Strict",
        }
        with self._served(obj["apiVersion"], obj["kind"]):
            return self._send("PATCH", self._path_of(obj), query, obj, APPLY_PATCH, warnings)

    def replace(
        self, obj: Object, dry_run: bool = False, subresource: str | None = None, warnings: Warnings | None = None
    ) -> Object:
        """Replace the object (a conflict when `metadata.resourceVersion` is set and no longer the newest)."""
        query = {"dryRun": "All" if dry_run else None, "fieldValidation": "Strict"}
        return self._send("PUT", self._path_of(obj, subresource), query, obj, JSON, warnings)

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        body: object,
        namespace: str | None = None,
        content_type: str = MERGE_PATCH,
        subresource: str | None = None,
        dry_run: bool = False,
        warnings: Warnings | None = None,
    ) -> Object:
        """Patch an object with `body`, a dictionary or, as `JSON_PATCH`, a list of operations."""
        path = self.path(api_version, kind, name, namespace, subresource)
        return self._send("PATCH", path, {"dryRun": "All" if dry_run else None}, body, content_type, warnings)

    def delete(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None = None,
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete an object; a missing one is fine. It may live on until its finalizers are gone."""
        path = self.path(api_version, kind, name, namespace)
        options = {"propagationPolicy": propagation, "gracePeriodSeconds": grace_seconds}
        try:
            with self._served(api_version, kind):
                self.request("DELETE", path, body=without_none(options))
        except ApiError as error:
            if not _object_is_missing(error):
                raise

    def watch(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        resource_version: str | None = None,
        seconds: float = 300,
    ) -> Iterator[tuple[str, Object]]:
        """Events `(type, object)` as they happen, `type` being ADDED, MODIFIED, DELETED or BOOKMARK.

        Without `resource_version` it begins with an ADDED event for each object that exists. The iterator ends after
        `seconds`, or when the server ends the stream; it raises `ApiError` 410 when `resource_version` is too old.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(seconds))),
        }
        path = self.collection(api_version, kind, namespace)
        with self._served(api_version, kind):
            for event in self.stream(path, query, seconds + 10):
                if event["type"] == "ERROR":
                    raise error_of(event["object"].get("code", 500), event["object"])
                yield event["type"], event["object"]

    def path(
        self, api_version: str, kind: str, name: str, namespace: str | None = None, subresource: str | None = None
    ) -> str:
        """The path of one object. Raises `ApiError` (404, `UnknownKind`) when the server does not serve the kind."""
        if namespace is None and self.resource(api_version, kind).namespaced:
            namespace = "default"
        path = f"{self.collection(api_version, kind, namespace)}/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path

    def collection(self, api_version: str, kind: str, namespace: str | None = None) -> str:
        """The path of all objects of a kind, in `namespace` when it is given and the kind is namespaced."""
        resource = self.resource(api_version, kind)
        inside = f"/namespaces/{namespace}" if namespace and resource.namespaced else ""
        return f"{_prefix(api_version)}{inside}/{resource.plural}"

    def resource(self, api_version: str, kind: str) -> Resource:
        """How the server serves a kind; asked once per API version, and again when the kind is not among the known."""
        with self._lock:
            known = self._kinds.get(api_version, {})
        if kind not in known:
            known = self._discover(api_version)
        if kind not in known:
            raise _unknown_kind(api_version, kind)
        return known[kind]

    def _discover(self, api_version: str) -> dict[str, Resource]:
        try:
            entries = self.request("GET", _prefix(api_version)).body["resources"]
        except ApiError as error:
            if error.status != 404:
                raise
            entries = []
        known = {
            entry["kind"]: Resource(entry["name"], entry["namespaced"]) for entry in entries if "/" not in entry["name"]
        }
        with self._lock:
            self._kinds[api_version] = known
        return known

    @contextmanager
    def _served(self, api_version: str, kind: str) -> Iterator[None]:
        """Tell a missing object from a kind that is served no more: the 404 of the latter names no object."""
        try:
            yield
        except ApiError as error:
            if error.status != 404 or error.reason == UNKNOWN_KIND or _object_is_missing(error):
                raise
            with self._lock:
                self._kinds.pop(api_version, None)
            raise _unknown_kind(api_version, kind) from None

    def _namespace_of(self, obj: Object) -> str | None:
        if not self.resource(obj["apiVersion"], obj["kind"]).namespaced:
            return None
        return obj["metadata"].get("namespace") or "default"

    def _path_of(self, obj: Object, subresource: str | None = None) -> str:
        return self.path(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], self._namespace_of(obj), subresource)

    def _send(
        self,
        method: str,
        path: str,
        query: Query,
        body: object,
        content_type: str,
        warnings: Warnings | None,
    ) -> Object:
        response = self.request(method, path, query, body, {"Content-Type": content_type})
        if warnings is not None:
            warnings.extend(response.warnings)
        return response.body


def connect(kubeconfig: Path, context: str | None = None) -> Api:
    """A connection by a kubeconfig file, with its current context when `context` is None.

    Nothing is sent yet. Raises `kubernetes.config.ConfigException` when the file or the context cannot be used.
    """
    configuration = Configuration()
    config.load_kube_config(str(kubeconfig), context, configuration, persist_config=False)
    return Api(configuration)


def _prefix(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _object_is_missing(error: ApiError) -> bool:
    return error.status == 404 and bool((error.body.get("details") or {}).get("name"))


def _unknown_kind(api_version: str, kind: str) -> ApiError:
    message = f"the API server serves no kind {kind!r} in {api_version!r}"
    return ApiError(404, UNKNOWN_KIND, message, {})
