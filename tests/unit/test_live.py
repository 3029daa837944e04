"""The live cluster as the program sees it: found, refused, not there."""

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from berkelium_infra import live
from berkelium_infra.claims_held import held_claims
from berkelium_infra.live import Refused, Unreachable

UID = "11111111-2222-3333-4444-555555555555"


class Server:
    """An API server that answers from a dictionary of paths; paths without an entry are missing."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, Any]]] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = server.answers.get(self.path.partition("?")[0], (404, {"message": "not found"}))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: ARG002
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A running server."""
    running = Server()
    yield running
    running.close()


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kubeconfig in the environment, with one context, `here`."""
    path = tmp_path / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setattr(live, "_mocked", lambda: False)
    monkeypatch.setattr(live.pulumi.runtime.settings, "get_monitor", lambda: None)
    return path


def connected(context: str = "here") -> live.Live:
    found = live.connect(context)
    assert found is not None
    return found


def preview(monkeypatch: pytest.MonkeyPatch, dry_run: bool) -> None:
    monkeypatch.setattr(live.pulumi.runtime, "is_dry_run", lambda: dry_run)


def record(version: int, status: str = "deployed") -> dict[str, Any]:
    packed = base64.b64encode(gzip.compress(json.dumps({"version": version, "manifest": "---"}).encode()))
    return {
        "metadata": {"name": f"sh.helm.release.v1.r.v{version}", "labels": {"version": str(version), "status": status}},
        "data": {"release": base64.b64encode(packed).decode()},
    }


@pytest.mark.usefixtures("kubeconfig")
def test_the_identity_of_a_cluster_is_the_uid_of_its_kube_system_namespace(server: Server) -> None:
    server.answers["/api/v1/namespaces/kube-system"] = (200, {"metadata": {"uid": UID}})
    assert connected().namespace_uid("kube-system") == UID
    assert connected().namespace_uid("other") is None


@pytest.mark.usefixtures("kubeconfig")
def test_the_newest_deployed_revision_of_a_release_is_read(server: Server) -> None:
    records = [record(9), record(10), record(2)]
    server.answers["/api/v1/namespaces/n/secrets"] = (200, {"metadata": {}, "items": records})
    found = connected().helm_release("n", "r")
    assert found
    assert found["version"] == 10


@pytest.mark.usefixtures("kubeconfig")
def test_a_refusal_is_one_line_with_the_servers_words(server: Server) -> None:
    server.answers["/api/v1/namespaces/kube-system"] = (403, {"message": "namespaces is\nforbidden"})
    with pytest.raises(Refused, match="namespaces is forbidden") as caught:
        connected().namespace_uid("kube-system")
    assert caught.value.status == 403
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("kubeconfig")
def test_a_missing_context_is_told_with_those_that_there_are() -> None:
    with pytest.raises(Unreachable, match="has no context 'elsewhere'; it has here"):
        live.connect("elsewhere")


def test_a_kubeconfig_that_is_no_yaml_is_told(kubeconfig: Path) -> None:
    kubeconfig.write_text("{")
    with pytest.raises(Unreachable, match="cannot be used"):
        live.connect("here")


def test_a_preview_without_a_kubeconfig_goes_without_the_cluster_and_an_up_does_not(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig.unlink()
    preview(monkeypatch, True)
    assert live.find("here") is None
    preview(monkeypatch, False)
    with pytest.raises(Unreachable, match="there is no kubeconfig"):
        live.find("here")


@pytest.mark.usefixtures("kubeconfig")
def test_a_preview_goes_without_the_cluster_when_told_to_and_an_up_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(live.WITHOUT_CLUSTER, "1")
    preview(monkeypatch, True)
    assert live.find("here") is None
    preview(monkeypatch, False)
    with pytest.raises(Unreachable, match="for previews only"):
        live.find("here")


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_cluster_that_does_not_answer_stops_previews_and_ups_in_one_line(
    server: Server, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    server.close()
    preview(monkeypatch, dry_run)
    with pytest.raises(Unreachable, match="Connection refused; nothing was changed") as caught:
        live.find("here")
    assert "\n" not in str(caught.value)
    assert (live.WITHOUT_CLUSTER in str(caught.value)) is dry_run


@pytest.mark.usefixtures("kubeconfig")
def test_a_preview_by_an_identity_that_may_not_look_goes_on_and_an_up_does_not(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/api/v1/namespaces/kube-system"] = (403, {"message": "forbidden"})
    preview(monkeypatch, True)
    assert live.find("here")
    preview(monkeypatch, False)
    with pytest.raises(Refused):
        live.find("here")


@pytest.mark.usefixtures("kubeconfig")
def test_only_claims_with_a_drivers_devices_and_a_pod_are_held(server: Server) -> None:
    def claim(name: str, driver: str, pods: list[str]) -> dict[str, Any]:
        results = [{"driver": driver, "pool": "node-1", "device": "gpu-0"}]
        reserved = [{"resource": "pods", "name": pod} for pod in pods]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
        return {"metadata": {"namespace": "n", "name": name}, "status": status}

    claims = [
        claim("held", "gpu.nvidia.com", ["pod-a"]),
        claim("free", "gpu.nvidia.com", []),
        claim("amd", "gpu.amd.com", ["pod-b"]),
        {"metadata": {"namespace": "n", "name": "pending"}},
    ]
    server.answers["/apis/resource.k8s.io/v1/resourceclaims"] = (200, {"metadata": {}, "items": claims})
    found = held_claims(connected(), ["gpu.nvidia.com"])
    assert [str(each) for each in found] == ["n/held (pod pod-a; gpu.nvidia.com/node-1/gpu-0)"]
