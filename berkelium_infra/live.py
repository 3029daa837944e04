"""The live cluster, asked before anything is declared: which cluster it is, and what Helm says it installed there.

The program reads through this, and writes nothing but who owns the fields of what it has just created. A preview may
go without (see `find`): then nothing that depends on the live cluster is checked.
"""

import base64
import binascii
import gzip
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

import pulumi
import urllib3
import yaml
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from pulumi.runtime import mocks

from berkelium_infra.errors import UserError

WITHOUT_CLUSTER = "BERKELIUM_WITHOUT_CLUSTER"
"""Environment variable by which a preview does without the cluster: a pull request has no credentials."""

_TIMEOUT = urllib3.Timeout(connect=3, read=6)
"""Seconds. Together with one retry of the connection they stay under the 15 within which an answer is promised."""

_UNUSABLE = (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError)
"""What the client library raises for a kubeconfig with something wrong in it."""

_PIECE = 500
"""Objects of one page of a list; a cluster holds tens of thousands of claims."""


class Unreachable(UserError):
    """The cluster does not answer, or the kubeconfig does not say where it is."""


class Refused(UserError):
    """The cluster answers, but not to this question: `status` is the HTTP status, 401 and 403 are the usual ones."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Live:
    """Questions to one cluster.

    Every method raises `Unreachable` when it does not answer, and `Refused` when it refuses.
    """

    def __init__(self, configuration: Configuration, context: str) -> None:
        self._configuration = configuration
        self._context = context
        # A proxy in the environment is for other hosts; the provider's Go client makes the same exception.
        if urlsplit(str(configuration.host)).hostname in ("127.0.0.1", "localhost", "::1"):
            configuration.proxy = None
        self._pool = RESTClientObject(configuration).pool_manager

    @property
    def server(self) -> str:
        """The address of the API server."""
        return str(self._configuration.host)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any] | None:
        """The object or list at a path of the API; None when there is none."""
        return self._request("GET", path, query or {})

    def items(self, path: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """All objects of a list, page by page; none when the kind is not served."""
        found: list[dict[str, Any]] = []
        more: dict[str, str] = {}
        while page := self.get(path, {**(query or {}), "limit": str(_PIECE), **more}):
            found += page.get("items") or []
            more = {"continue": page["metadata"].get("continue") or ""}
            if not more["continue"]:
                break
        return found

    def dry_run(self, method: str, path: str, body: object, query: Mapping[str, str], content_type: str) -> dict | None:
        """What a write would lead to; the server is told to keep nothing. None when the kind or object is missing."""
        return self._request(method, path, {**query, "dryRun": "All"}, body, content_type)

    def patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> None:
        """Apply a JSON patch to the object at a path."""
        self._request("PATCH", path, {}, list(operations), "application/json-patch+json")

    def namespace_uid(self, name: str) -> str | None:
        """The UID of a namespace, None when there is no such namespace. That of kube-system is a cluster's identity:
        every cluster has it from its first moment to its last, whatever its address and certificates."""
        found = self.get(f"/api/v1/namespaces/{quote(name, safe='')}")
        return str(found["metadata"]["uid"]) if found else None

    def helm_release(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Helm's record of what is deployed under that name (`info`, `chart`, `config`, `manifest`, `version`, …), as
        `helm get` reads it; None when nothing is."""
        selector = {"labelSelector": f"owner=helm,name={name},status=deployed"}
        records = self.items(f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets", selector)
        if not records:
            return None
        newest = max(records, key=lambda record: int(record["metadata"]["labels"]["version"]))
        return _unpacked(newest["data"]["release"], f"{namespace}/{newest['metadata']['name']}")

    def _request(
        self, method: str, path: str, query: Mapping[str, str], body: object = None, content_type: str = ""
    ) -> dict[str, Any] | None:
        response = self._open(method, path, query, body, content_type)
        parsed = _parsed(response.data)
        if response.status == 404:
            return None
        if response.status >= 400:
            what = " ".join(str(parsed.get("message") or parsed.get("text") or "").split())
            raise Refused(response.status, f"{self._named()} refuses: {what or response.status}")
        return parsed

    def _open(
        self, method: str, path: str, query: Mapping[str, str], body: object, content_type: str
    ) -> urllib3.BaseHTTPResponse:
        try:
            return self._pool.request(
                method,
                f"{self.server}{path}{'?' + urlencode(query) if query else ''}",
                headers={
                    "Accept": "application/json",
                    **({"Content-Type": content_type} if content_type else {}),
                    **_authorization(self._configuration),
                },
                body=None if body is None else json.dumps(body).encode(),
                timeout=_TIMEOUT,
                retries=urllib3.Retry(total=1, connect=1, read=0, redirect=0, status=0, backoff_factor=0.2),
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"{self._named()} does not answer: {_cause(error)}") from None

    def _named(self) -> str:
        return f"the cluster of context {self._context!r} ({self.server})" if self._context else self.server


def connect(context: str) -> Live | None:
    """A connection by the kubeconfig that kubectl would use ($KUBECONFIG, else ~/.kube/config), with its current
    context when `context` is empty. Nothing is sent yet.

    None when there is no kubeconfig, and under Pulumi's mocks. Raises `Unreachable` for a kubeconfig that cannot be
    used or does not have the context.
    """
    if isinstance(pulumi.runtime.settings.get_monitor(), mocks.MockMonitor):
        return None
    files = _kubeconfig()
    if not files:
        return None
    return open_kubeconfig(files, context)


def open_kubeconfig(files: str, context: str = "") -> Live:
    """A connection by these kubeconfig files, joined as in $KUBECONFIG. Raises `Unreachable` as `connect` does."""
    _require_context(files, context)
    configuration = Configuration()
    try:
        config.load_kube_config(files, context or None, configuration, persist_config=False)
    except _UNUSABLE as error:
        raise Unreachable(f"the kubeconfig {files} cannot be used: {' '.join(str(error).split())}") from None
    return Live(configuration, context)


def find(context: str) -> Live | None:
    """The live cluster of this run of the program, which answers; None for a preview without a cluster.

    A preview goes without when there is no kubeconfig at all, or when `BERKELIUM_WITHOUT_CLUSTER` is set. Anything
    else that is wrong with the connection raises `Unreachable`: the provider alone would fall back to a preview that
    asks no server, without a word.
    """
    live = None if os.environ.get(WITHOUT_CLUSTER) else connect(context)
    if live is None:
        if not pulumi.runtime.is_dry_run() and not _mocked():
            raise Unreachable(
                f"{WITHOUT_CLUSTER} is for previews only; nothing was changed."
                if os.environ.get(WITHOUT_CLUSTER)
                else "there is no kubeconfig: set KUBECONFIG, or write ~/.kube/config; nothing was changed."
            )
        return None
    try:
        live.get("/api/v1/namespaces/kube-system")
    except Unreachable as error:
        hint = f" (a preview without the cluster: {WITHOUT_CLUSTER}=1)" if pulumi.runtime.is_dry_run() else ""
        raise Unreachable(f"{error}; nothing was changed{hint}") from None
    except Refused as error:
        # A preview's identity may not be allowed to look; whoever applies must be.
        if error.status == 401 or not pulumi.runtime.is_dry_run():
            raise
    return live


def _mocked() -> bool:
    return isinstance(pulumi.runtime.settings.get_monitor(), mocks.MockMonitor)


def _kubeconfig() -> str:
    """The kubeconfig files that exist, joined as in $KUBECONFIG."""
    named = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    return os.pathsep.join(path for path in named.split(os.pathsep) if path and Path(path).expanduser().is_file())


def _require_context(files: str, context: str) -> None:
    try:
        contexts, current = config.list_kube_config_contexts(files)
    except _UNUSABLE as error:
        raise Unreachable(f"the kubeconfig {files} cannot be used: {' '.join(str(error).split())}") from None
    names = sorted(str(each["name"]) for each in cast("list[dict[str, Any]]", contexts))
    if context and context not in names:
        raise Unreachable(f"the kubeconfig {files} has no context {context!r}; it has {', '.join(names) or 'none'}")
    if not context and not current:
        raise Unreachable(f"the kubeconfig {files} has no current context")


def _authorization(configuration: Configuration) -> dict[str, str]:
    settings = cast(dict[str, dict[str, Any]], configuration.auth_settings())
    return {str(entry["key"]): str(entry["value"]) for entry in settings.values() if entry["in"] == "header"}


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(data)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"text": data.decode(errors="replace")[:400]}


def _unpacked(record: str, where: str) -> dict[str, Any]:
    """Helm keeps a release as gzipped JSON in base64, and a Secret adds its own base64."""
    try:
        packed = base64.b64decode(base64.b64decode(record))
        return json.loads(gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed)
    except (binascii.Error, OSError, ValueError) as error:
        raise UserError(f"Helm's record {where} cannot be read: {error}") from None


def _cause(error: BaseException) -> str:
    """The innermost reason in a few words: urllib3 wraps it, and repeats the address."""
    reason = getattr(error, "reason", None)
    while isinstance(reason, BaseException) and isinstance(getattr(reason, "reason", None), BaseException):
        reason = cast(Any, reason).reason
    text = " ".join(str(reason if reason is not None else error).split())
    return text.rpartition(": ")[2].strip("'\")(>") or type(error).__name__
