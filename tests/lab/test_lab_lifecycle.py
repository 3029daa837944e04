"""A lab's life on real processes: started, looked at, damaged, mended, interrupted and taken down."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import urllib3

from berkelium_lab import processes, state
from berkelium_lab.api import connect
from berkelium_lab.control_plane import COMPONENTS
from berkelium_lab.credentials import Credentials
from berkelium_lab.lab import Lab
from berkelium_lab.toolchain import ensure_tools
from tests.lab import etcd
from tests.lab.labs import LabFactory

NAMES = [component.name for component in COMPONENTS]
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"key": "value"}}


def berkelium(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user would."""
    return subprocess.run(
        [Path(sys.executable).with_name("berkelium"), *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, **environment},
    )


def pids(lab: Lab) -> dict[str, int]:
    """The process id of each component, as recorded."""
    current = state.load(lab.directory)
    assert current is not None
    return {name: record.pid for name, record in current.processes.items()}


def left_running(lab: Lab) -> list[str]:
    """The programs of the lab that still run."""
    return [process.name() for process in processes.belonging_to(lab.directory)]


@pytest.fixture(scope="module")
def victim(labs: LabFactory) -> Lab:
    """A lab that these tests may damage; each leaves it mended."""
    return labs.up("victim")


@pytest.fixture
def absent(labs: LabFactory) -> Iterator[Lab]:
    """A lab that does not exist before and after the test."""
    lab = labs.named("absent")
    yield lab
    lab.down()


def test_a_second_up_says_so_and_leaves_every_process_as_it_is(victim: Lab) -> None:
    before = pids(victim)
    again = berkelium("lab", "up", "--name", victim.name)
    assert again.returncode == 0
    assert "is running already" in again.stderr
    assert pids(victim) == before


def test_status_of_a_running_lab_is_0_with_every_component_serving_in_under_2_gib(victim: Lab) -> None:
    shown = berkelium("lab", "status", "--json", "--name", victim.name)
    status = json.loads(shown.stdout)
    assert shown.returncode == 0
    assert status["condition"] == "running"
    assert [each["name"] for each in status["components"] if each["serves"]] == NAMES
    assert status["nodes"] == status["nodes_ready"] == 13
    assert 0 < status["memory_mib"] < 2048


def test_kubeconfig_prints_a_path_that_only_its_owner_can_read_and_nothing_else(victim: Lab) -> None:
    shown = berkelium("lab", "kubeconfig", "--name", victim.name)
    path = Path(shown.stdout.removesuffix("\n"))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert connect(path).raw("GET", "/version")["gitVersion"].startswith("v1.37.")


def test_a_lab_listens_on_the_loopback_address_alone(victim: Lab) -> None:
    listening = [
        connection.laddr.ip
        for process in processes.belonging_to(victim.directory)
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 5
    assert set(listening) == {"127.0.0.1"}


def test_no_one_gets_into_etcd_without_the_labs_certificate(victim: Lab) -> None:
    url = f"{etcd.address(victim)}/version"
    assert etcd.pool(victim).request("GET", url).status == 200
    stranger = urllib3.PoolManager(ca_certs=str(Credentials(victim.directory).authority), retries=False)
    with pytest.raises(urllib3.exceptions.HTTPError):
        stranger.request("GET", url)


def test_status_names_a_component_that_died_and_up_brings_it_back_with_the_data_kept(victim: Lab) -> None:
    connect(victim.kubeconfig).apply(CONFIG_MAP)
    before = pids(victim)
    for name in ("etcd", "kwok"):
        os.kill(before[name], signal.SIGKILL)

    shown = berkelium("lab", "status", "--name", victim.name)
    assert shown.returncode == 3
    assert "degraded" in shown.stdout
    assert f"etcd: process {before['etcd']} has ended" in shown.stdout
    assert f"kwok: process {before['kwok']} has ended" in shown.stdout
    assert processes.tail(victim.log("kwok"), 1)[0] in shown.stdout

    victim.up()
    after = pids(victim)
    assert {name for name in NAMES if after[name] != before[name]} == {"etcd", "kube-apiserver", "kwok"}
    assert victim.status().running
    kept = connect(victim.kubeconfig).get("v1", "ConfigMap", "kept", "default")
    assert kept is not None
    assert kept["data"] == {"key": "value"}


def test_a_lab_whose_port_was_taken_while_it_was_dead_comes_up_on_another(victim: Lab) -> None:
    connect(victim.kubeconfig).apply(CONFIG_MAP)
    running = processes.belonging_to(victim.directory)
    for process in running:
        process.kill()
    processes.stop(running, 10)
    current = state.load(victim.directory)
    assert current is not None
    with socket.create_server(("127.0.0.1", current.ports["kube-apiserver"])):
        victim.up()
        assert victim.status().running
        assert connect(victim.kubeconfig).get("v1", "ConfigMap", "kept", "default")


def test_up_with_another_fleet_is_refused_and_the_lab_goes_on(victim: Lab) -> None:
    refused = berkelium("lab", "up", "--name", victim.name, "--fleet", "upstream")
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: ")
    assert "take the lab down first" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert victim.status().running


def test_two_labs_run_side_by_side_and_one_goes_down_alone(victim: Lab, labs: LabFactory) -> None:
    other = labs.up("other", "upstream")
    connect(victim.kubeconfig).apply(CONFIG_MAP)
    assert connect(other.kubeconfig).get("v1", "ConfigMap", "kept", "default") is None
    names = berkelium("lab", "list").stdout.splitlines()
    assert {victim.name, other.name} <= set(names)
    other.down()
    assert left_running(other) == []
    assert victim.status().running


def test_two_ups_at_once_start_one_lab(absent: Lab) -> None:
    command = [Path(sys.executable).with_name("berkelium"), "lab", "up", "--name", absent.name]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=180)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert "".join(said).count("starting etcd") == 1
    assert absent.status().running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
@pytest.mark.parametrize("moment", ["starting kube-apiserver", "starting kwok"])
def test_an_interrupted_up_leaves_no_process(absent: Lab, moment: str, number: signal.Signals) -> None:
    command = [Path(sys.executable).with_name("berkelium"), "lab", "up", "--name", absent.name]
    # A shell that runs the tests in its background ignores Ctrl-C, and so would the command.
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    ) as starting:
        assert starting.stderr is not None
        seen = []
        for line in starting.stderr:
            seen.append(line.strip())
            if line.strip() == moment:
                starting.send_signal(number)
                break
        seen += starting.stderr.read().splitlines()
        assert starting.wait(60) == 130, seen
    assert left_running(absent) == []
    assert not absent.status().running


def test_an_interrupted_up_can_be_run_again(absent: Lab) -> None:
    test_an_interrupted_up_leaves_no_process(absent, "starting kwok", signal.SIGINT)
    absent.up()
    assert absent.status().running


def test_a_component_that_does_not_come_up_is_named_with_its_last_words_and_all_ends(
    absent: Lab, tmp_path: Path
) -> None:
    for program in ensure_tools().directory.iterdir():
        (tmp_path / program.name).symlink_to(program)
    broken = tmp_path / "kube-scheduler"
    broken.unlink()
    broken.write_text("#!/bin/sh\necho out of order on purpose\nexit 3\n")
    broken.chmod(0o755)
    failed = berkelium("lab", "up", "--name", absent.name, BERKELIUM_TOOLS=str(tmp_path))
    assert failed.returncode == 1
    assert "Error: kube-scheduler ended by itself" in failed.stderr
    assert "out of order on purpose" in failed.stderr
    assert left_running(absent) == []


def test_down_ends_what_was_started_but_never_recorded_and_can_be_repeated(absent: Lab) -> None:
    absent.up()
    sleeper = processes.start(["sleep", "600"], absent.directory, absent.directory / "logs" / "sleeper.log")
    for _ in range(2):
        assert berkelium("lab", "down", "--name", absent.name).returncode == 0
        assert left_running(absent) == []
        assert not absent.directory.exists()
    assert processes.find(sleeper, absent.directory) is None
    assert berkelium("lab", "status", "--name", absent.name).returncode == 3
