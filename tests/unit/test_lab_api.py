"""The API layer against a server that plays the parts of the Kubernetes API at stake."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from kubernetes.client import Configuration

from berkelium_lab.api import APPLY_PATCH, MERGE_PATCH, UNKNOWN_KIND, Api, ApiError

CORE = {
    "resources": [
        {"name": "nodes", "kind": "Node", "namespaced": False},
        {"name": "pods", "kind": "Pod", "namespaced": True},
        {"name": "pods/status", "kind": "Pod", "namespaced": True},
        {"name": "pods/eviction", "kind": "Eviction", "namespaced": True},
    ]
}
WIDGETS = {"resources": [{"name": "widgets", "kind": "Widget", "namespaced": False}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "team"}}


class FakeServer(ThreadingHTTPServer):
    """Answers `(method, path)` from `answers` as (status, body, headers), discovery included, and keeps requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[tuple[str, str], tuple[int, Any, list[tuple[str, str]]]] = {}
        self.requests: list[tuple[str, str, dict[str, str], str, Any]] = []
        self.answer("GET", "/api/v1", CORE)

    def answer(
        self, method: str, path: str, body: Any, status: int = 200, headers: list[tuple[str, str]] | None = None
    ) -> None:
        """Set the answer to a request."""
        self.answers[(method, path)] = (status, body, headers or [])

    def missing(self, method: str, path: str, name: str) -> None:
        """Answer as for an object that does not exist."""
        status = {"reason": "NotFound", "message": f"{name} not found", "details": {"name": name}}
        self.answer(method, path, status, 404)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        del format, args

    def _answer(self) -> None:
        assert isinstance(self.server, FakeServer)
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.server.requests.append((self.command, url.path, query, self.headers["Content-Type"], body))
        status, reply, headers = self.server.answers.get((self.command, url.path), (404, "404 page not found", []))
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A running fake server."""
    with FakeServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def api(server: FakeServer) -> Iterator[Api]:
    """A connection to the fake server."""
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{server.server_address[1]}"
    connection = Api(configuration)
    yield connection
    connection.close()


def test_paths_follow_the_scope_of_the_kind(api: Api, server: FakeServer) -> None:
    server.answer("GET", "/apis/example.com/v1", WIDGETS)
    assert api.path("v1", "Pod", "a", "team") == "/api/v1/namespaces/team/pods/a"
    assert api.path("v1", "Pod", "a") == "/api/v1/namespaces/default/pods/a"
    assert api.path("v1", "Node", "n", "ignored") == "/api/v1/nodes/n"
    assert api.path("v1", "Pod", "a", "team", "status") == "/api/v1/namespaces/team/pods/a/status"
    assert api.collection("v1", "Pod") == "/api/v1/pods"
    assert api.collection("example.com/v1", "Widget") == "/apis/example.com/v1/widgets"


def test_a_version_is_discovered_once(api: Api, server: FakeServer) -> None:
    for _ in range(3):
        api.path("v1", "Pod", "a")
    assert [request[:2] for request in server.requests] == [("GET", "/api/v1")]


def test_a_kind_that_appears_later_is_found_when_it_is_asked_for_again(api: Api, server: FakeServer) -> None:
    with pytest.raises(ApiError) as before:
        api.list("example.com/v1", "Widget")
    assert (before.value.status, before.value.reason) == (404, UNKNOWN_KIND)
    server.answer("GET", "/apis/example.com/v1", WIDGETS)
    server.answer("GET", "/apis/example.com/v1/widgets", {"metadata": {"resourceVersion": "1"}, "items": []})
    assert api.list("example.com/v1", "Widget") == []


def test_a_kind_that_is_served_no_more_is_unknown_and_not_an_absent_object(api: Api, server: FakeServer) -> None:
    server.answer("GET", "/apis/example.com/v1", WIDGETS)
    server.missing("GET", "/apis/example.com/v1/widgets/w", "w")
    assert api.get("example.com/v1", "Widget", "w") is None
    server.answers.pop(("GET", "/apis/example.com/v1/widgets/w"))
    with pytest.raises(ApiError) as gone:
        api.get("example.com/v1", "Widget", "w")
    assert gone.value.reason == UNKNOWN_KIND


def test_an_object_that_is_missing_is_none_and_fine_to_delete(api: Api, server: FakeServer) -> None:
    for method in ("GET", "DELETE"):
        server.missing(method, "/api/v1/namespaces/team/pods/a", "a")
    assert api.get("v1", "Pod", "a", "team") is None
    api.delete("v1", "Pod", "a", "team", propagation="Foreground")
    assert server.requests[-1][4] == {"propagationPolicy": "Foreground"}


def test_items_of_a_list_carry_their_kind(api: Api, server: FakeServer) -> None:
    items = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}}]}
    server.answer("GET", "/api/v1/namespaces/team/pods", items)
    listed, version = api.list_with_version("v1", "Pod", "team", label_selector="a=b", field_selector="c=d")
    assert listed == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]
    assert version == "7"
    assert server.requests[-1][2] == {"labelSelector": "a=b", "fieldSelector": "c=d"}


def test_create_is_strict_unless_told_otherwise(api: Api, server: FakeServer) -> None:
    server.answer("POST", "/api/v1/namespaces/team/pods", POD, 201)
    assert api.create(POD) == POD
    assert server.requests[-1][2:] == ({"fieldValidation": "Strict"}, "application/json", POD)
    api.create(POD, dry_run=True, strict=False)
    assert server.requests[-1][2] == {"fieldValidation": "Warn", "dryRun": "All"}


def test_apply_is_server_side_and_takes_fields_over(api: Api, server: FakeServer) -> None:
    server.answer("PATCH", "/api/v1/namespaces/team/pods/a", POD)
    api.apply(POD, manager="me")
    query, content_type = server.requests[-1][2:4]
    assert query == {"fieldManager": "me", "force": "true", "fieldValidation": "Strict"}
    assert content_type == APPLY_PATCH


def test_patch_and_replace_reach_subresources(api: Api, server: FakeServer) -> None:
    for method in ("PATCH", "PUT"):
        server.answer(method, "/api/v1/namespaces/team/pods/a/status", POD)
    api.patch("v1", "Pod", "a", {"status": {}}, "team", subresource="status")
    assert server.requests[-1][3:] == (MERGE_PATCH, {"status": {}})
    api.replace(POD, subresource="status")
    assert server.requests[-1][0] == "PUT"


def test_a_refusal_carries_the_servers_own_words(api: Api, server: FakeServer) -> None:
    status = {"kind": "Status", "reason": "Invalid", "message": "Pod is invalid", "code": 422}
    server.answer("POST", "/api/v1/namespaces/team/pods", status, 422)
    with pytest.raises(ApiError, match="422 Invalid: Pod is invalid") as refused:
        api.create(POD)
    assert (refused.value.status, refused.value.reason, refused.value.body) == (422, "Invalid", status)


def test_a_missing_namespace_is_no_unknown_kind(api: Api, server: FakeServer) -> None:
    server.missing("POST", "/api/v1/namespaces/team/pods", "team")
    with pytest.raises(ApiError, match="404 NotFound: team not found"):
        api.create(POD)


def test_warnings_are_handed_over_unquoted(api: Api, server: FakeServer) -> None:
    headers = [("Warning", '299 - "says \\"no\\" to a\\\\b"'), ("Warning", '299 - "second"')]
    server.answer("POST", "/api/v1/namespaces/team/pods", POD, 201, headers)
    warnings: list[str] = []
    api.create(POD, warnings=warnings)
    assert warnings == ['says "no" to a\\b', "second"]


def test_a_watch_yields_events_and_ends_with_the_stream(api: Api, server: FakeServer) -> None:
    events = [{"type": "ADDED", "object": POD}, {"type": "DELETED", "object": POD}]
    server.answer("GET", "/api/v1/pods", b"".join(json.dumps(event).encode() + b"\n" for event in events))
    assert list(api.watch("v1", "Pod", resource_version="5", seconds=30)) == [("ADDED", POD), ("DELETED", POD)]
    query = server.requests[-1][2]
    assert (query["watch"], query["resourceVersion"], query["timeoutSeconds"]) == ("true", "5", "30")


def test_a_watch_from_a_version_that_is_too_old_is_an_error(api: Api, server: FakeServer) -> None:
    error = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old resource version"}}
    server.answer("GET", "/api/v1/pods", json.dumps(error).encode() + b"\n")
    with pytest.raises(ApiError, match="410 Expired: too old resource version"):
        list(api.watch("v1", "Pod"))


def test_an_answer_that_is_no_json_is_handed_over_as_text(api: Api, server: FakeServer) -> None:
    server.answer("GET", "/readyz", b"ok")
    assert api.raw("GET", "/readyz") == {"text": "ok"}


def test_a_request_that_is_told_to_come_back_later_does(api: Api, server: FakeServer) -> None:
    busy = {"reason": "TooManyRequests", "message": "later"}
    server.answer("POST", "/api/v1/namespaces/team/pods", busy, 429, [("Retry-After", "0")])
    with pytest.raises(ApiError, match="429"):
        api.create(POD)
    assert len([request for request in server.requests if request[0] == "POST"]) > 1


@pytest.mark.parametrize(("reason", "times"), [("Conflict", 5), ("AlreadyExists", 1)])
def test_a_creation_that_met_a_changing_quota_is_tried_again(
    api: Api, server: FakeServer, reason: str, times: int
) -> None:
    server.answer("POST", "/api/v1/namespaces/team/pods", {"reason": reason, "message": "not now"}, 409)
    with pytest.raises(ApiError, match=f"409 {reason}"):
        api.create(POD)
    assert len([request for request in server.requests if request[0] == "POST"]) == times


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{server.server_address[1]}"
    server.answer("GET", "/readyz", b"ok")
    assert Api(configuration).raw("GET", "/readyz") == {"text": "ok"}
