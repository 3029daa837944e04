"""`berkelium doctor`: options, output and exit codes, without a cluster."""

import json
import socket
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml
from click.testing import CliRunner, Result

from berkelium_cli import doctor as command
from berkelium_infra.settings import PROJECT, PolicyMode
from berkelium_lab.doctor import Diagnosis, diagnosing, from_defaults, from_stack
from berkelium_lab.doctor.cluster import Cluster
from berkelium_lab.doctor.diagnosing import examine
from berkelium_lab.doctor.expectation import Expectation
from tests.unit.doctor_world import World, healthy


def run(monkeypatch: pytest.MonkeyPatch, world: World, *arguments: str) -> Result:
    """The command on that cluster."""

    def diagnose(api: World, expectation: Expectation) -> Diagnosis:
        return Diagnosis(
            server="https://cluster",
            compared_with=expectation.origin,
            findings=tuple(examine(Cluster(api), expectation)),
        )

    monkeypatch.setattr("berkelium_lab.doctor.diagnose", diagnose)
    monkeypatch.setattr(command, "connect", lambda *_: world)
    return CliRunner().invoke(command.doctor, ["--context", "x", *arguments])


def test_a_healthy_cluster_is_exit_0(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, healthy(), "--stack", "staging")
    assert result.exit_code == 0
    assert result.stderr.startswith("https://cluster is healthy (0 error, 0 warning, ")
    assert result.stderr.endswith("compared with stack staging\n")


def test_warnings_alone_are_exit_0(monkeypatch: pytest.MonkeyPatch) -> None:
    world = healthy()
    world.one("Node", "a40-1")["status"]["allocatable"]["nvidia.com/a40"] = "0"
    result = run(monkeypatch, world, "--quiet")
    assert result.exit_code == 0
    assert [line.split()[:2] for line in result.stdout.splitlines() if line[:1] != " "] == [
        ["warning", "stale-allocatable"]
    ]


def test_an_error_is_exit_1_even_when_something_could_not_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    world = healthy()
    world.remove("DeviceClass", "nvidia-b300")
    world.forbidden.add(("list", "ResourceQuota"))
    assert run(monkeypatch, world).exit_code == 1


def test_a_permission_that_is_missing_is_exit_2_and_the_rest_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    world = healthy()
    world.forbidden.add(("list", "ResourceQuota"))
    result = run(monkeypatch, world, "--json", "--quiet")
    assert result.exit_code == 2
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["id"], finding["subject"]) == ("could-not-look", "examination/quota_keys")
    assert finding["remedy"].startswith("Grant this identity: list on resourcequotas")


def test_the_json_has_every_part_of_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    world = healthy()
    world.one("Node", "a40-1")["status"]["allocatable"]["nvidia.com/a40"] = "2"
    result = run(monkeypatch, world, "--json", "--quiet")
    (finding,) = json.loads(result.stdout)["findings"]
    assert set(finding) == {"id", "severity", "subject", "summary", "evidence", "remedy"}
    assert (finding["severity"], finding["evidence"]) == ("error", ["a40-1: 2"])


def test_an_intended_mode_is_taken_from_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, healthy(), "--quiet", "--mode", "no-idle-gpu=audit")
    assert result.exit_code == 1
    assert "The policy no-idle-gpu is meant to audit, and its binding says Deny, Audit." in result.stdout


@pytest.mark.parametrize("mode", ["no-idle-gpu", "no-idle-gpu=often", "=deny"])
def test_a_mode_that_is_none_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    result = run(monkeypatch, healthy(), "--mode", mode)
    assert result.exit_code == 2
    assert "write POLICY=MODE; the modes are deny, warn, audit, off" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--mode", "nope=deny"), "'nope' is no policy; the policies are no-idle-gpu, require-resources"),
        (("--stack", "nope"), "Pulumi.nope.yaml; the stacks are"),
    ],
)
def test_an_expectation_that_cannot_be_told_is_one_line(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, str], said: str
) -> None:
    result = run(monkeypatch, healthy(), *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def kubeconfig(path: Path, server: str) -> Path:
    """A kubeconfig with the context x for that server."""
    named = {"clusters": [{"name": "x", "cluster": {"server": server}}], "users": [{"name": "x", "user": {}}]}
    contexts = [{"name": "x", "context": {"cluster": "x", "user": "x"}}]
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "contexts": contexts, **named}))
    return path


def unreachable(server: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the command says of a server that does not answer."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(directory / "kubeconfig", server)))
    result = CliRunner().invoke(command.doctor, ["--context", "x"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def test_a_server_that_is_not_there_is_one_line_and_exit_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert f"{server} does not answer" in unreachable(server, tmp_path, monkeypatch)


def test_a_server_that_never_answers_is_given_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A tenth of the real patience must be over in a tenth of 15 seconds, the pauses between the attempts aside.
    pauses = 1
    for name in ("CONNECT_SECONDS", "READ_SECONDS"):
        monkeypatch.setattr(diagnosing, name, getattr(diagnosing, name) / 10)
    started = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        server = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        assert "Read timed out" in unreachable(server, tmp_path, monkeypatch)
    assert time.monotonic() - started < 15 / 10 + pauses


class Quiet(BaseHTTPRequestHandler):
    """Speaks plain HTTP, and writes no log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: ARG002
        return


def test_a_server_with_which_no_tls_can_be_spoken_is_given_up_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = time.monotonic()
    with HTTPServer(("127.0.0.1", 0), Quiet) as plain:
        Thread(target=plain.serve_forever, daemon=True).start()
        said = unreachable(f"https://127.0.0.1:{plain.server_port}", tmp_path, monkeypatch)
        plain.shutdown()
    assert "does not answer" in said
    assert "SSL" in said
    assert time.monotonic() - started < 5


def test_a_context_that_is_not_there_is_one_line_and_exit_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")))
    result = CliRunner().invoke(command.doctor, ["--context", "y"])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_stack_s_file_says_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text((PROJECT / "Pulumi.yaml").read_text())
    (tmp_path / "policies").symlink_to(PROJECT / "policies")
    (tmp_path / "Pulumi.mine.yaml").write_text(
        "config:\n"
        "  berkelium-infra:context: c\n"
        "  berkelium-infra:clusterIdentifier: mine\n"
        "  berkelium-infra:policies: {no-idle-gpu: off}\n"
        "  berkelium-infra:amd: {enabled: false}\n"
        "  other:key: ignored\n"
    )
    expectation = from_stack("mine", project=tmp_path)
    assert expectation.policies == {"no-idle-gpu": PolicyMode.OFF, "require-resources": PolicyMode.DENY}
    assert [vendor.name for vendor in expectation.vendors] == ["NVIDIA"]
    assert [release.chart.name for release in expectation.releases] == [
        "node-feature-discovery",
        "nvidia-dra-driver-gpu",
    ]


def test_without_a_stack_every_policy_is_meant_to_deny() -> None:
    assert set(from_defaults().policies.values()) == {PolicyMode.DENY}
