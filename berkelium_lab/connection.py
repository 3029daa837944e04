"""HTTP requests to an API server, by the connection settings of the official Kubernetes client.

The client library reads the kubeconfig and authenticates; bodies go in and out as parsed JSON.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject

from berkelium_infra.errors import UserError

Object = dict[str, Any]
"""A Kubernetes object, or part of one, as parsed JSON."""

Query = dict[str, str | None]
"""Parameters of a request; those that are None are left out."""

JSON = "application/json"

_CONNECTIONS = 32
_TIMEOUT = urllib3.Timeout(connect=5, read=60)


class ApiError(UserError):
    """The API server refused a request.

    `status` is the HTTP status, `reason` and `message` those of the Status object, `body` that object (or, when the
    answer was not JSON, `{"text": …}`).
    """

    def __init__(self, status: int, reason: str, message: str, body: Object) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.body = body


@dataclass(frozen=True)
class Response:
    """A successful answer: the parsed body (`{"text": …}` when it was not JSON) and the texts of `Warning` headers."""

    status: int
    body: Object
    warnings: tuple[str, ...]


class Connection:
    """Requests to one API server; it may be shared by threads.

    Every method raises `ApiError` on refusal, and `urllib3.exceptions.HTTPError` when the server cannot be reached.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._pool = _pool(configuration)

    @property
    def server(self) -> str:
        """The address of the API server."""
        return str(self._configuration.host)

    def raw(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Object:
        """The parsed body of any request; `{"text": …}` when the answer is not JSON (`/readyz`, `/metrics`)."""
        return self.request(method, path, query, body, headers).body

    def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
        headers: dict[str, str] | None = None,
        timeout: urllib3.Timeout = _TIMEOUT,
    ) -> Response:
        """As `raw`, with the status and the warnings of the answer. A query value of None is left out."""
        response = self._open(method, path, query or {}, body, headers or {}, timeout)
        return Response(response.status, _parsed(response.data), _warnings(response))

    def stream(self, path: str, query: Query, seconds: float) -> Iterator[Object]:
        """The JSON documents of an answer, one a line, as they arrive, for at most `seconds` without a new one."""
        timeout = urllib3.Timeout(connect=5, read=seconds)
        response = self._open("GET", path, query, None, {}, timeout, stream=True)
        try:
            yield from (json.loads(line) for line in _lines(response))
        finally:
            # Closing, not releasing: an unread stream must not go back into the pool.
            response.close()

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.clear()

    def _open(
        self,
        method: str,
        path: str,
        query: Query,
        body: object,
        headers: dict[str, str],
        timeout: urllib3.Timeout,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        given = without_none(query)
        response = self._pool.request(
            method,
            f"{self.server}{path}{'?' + urlencode(given) if given else ''}",
            body=None if body is None else json.dumps(body).encode(),
            headers={"Accept": JSON, "Content-Type": JSON, **self._authorization(), **headers},
            timeout=timeout,
            retries=_retries(method),
            preload_content=not stream,
        )
        if response.status >= 400:
            raise error_of(response.status, _parsed(response.data))
        return response

    def _authorization(self) -> dict[str, str]:
        # Read anew for every request: a token from an exec plugin expires, and the hook behind this renews it.
        settings = cast(dict[str, dict[str, Any]], self._configuration.auth_settings())
        return {str(entry["key"]): str(entry["value"]) for entry in settings.values() if entry["in"] == "header"}


def _pool(configuration: Configuration) -> urllib3.PoolManager:
    configuration.connection_pool_maxsize = _CONNECTIONS
    # A proxy in the environment is for other hosts; Go's clients make the same exception.
    if urlsplit(str(configuration.host)).hostname in ("127.0.0.1", "localhost", "::1"):
        configuration.proxy = None
    return RESTClientObject(configuration).pool_manager


def _retries(method: str) -> urllib3.Retry:
    """Retry what the server did not process: a refused connection, or an answer that names a time to retry after.

    A broken connection says nothing about that, so only reads are repeated then.
    """
    return urllib3.Retry(
        total=10,
        connect=2,
        read=2 if method == "GET" else 0,
        other=0,
        redirect=0,
        status=5,
        backoff_factor=0.1,
        allowed_methods=None,
        raise_on_status=False,
    )


def _parsed(data: bytes) -> Object:
    try:
        parsed = json.loads(data)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"text": data.decode(errors="replace")}


def error_of(status: int, body: Object) -> ApiError:
    message = str(body.get("message") or body.get("text") or "").strip()
    return ApiError(status, str(body.get("reason") or "Unknown"), message, body)


def _warnings(response: urllib3.BaseHTTPResponse) -> tuple[str, ...]:
    """The texts of the `Warning` headers, each `299 - "text"` with quotes and backslashes escaped (RFC 7234, 5.5)."""
    found = []
    for header in response.headers.getlist("Warning"):
        quoted = header.partition('"')[2].rpartition('"')[0]
        found.append(quoted.replace('\\"', '"').replace("\\\\", "\\"))
    return tuple(found)


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    try:
        for chunk in response.stream(amt=None, decode_content=True):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line for line in lines if line)
    except (urllib3.exceptions.ProtocolError, urllib3.exceptions.ReadTimeoutError):
        # The API server ended the stream or is gone: the caller's loop finds out by its next request.
        return


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
