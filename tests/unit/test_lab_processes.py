"""Programs that outlive their starter, and are never mistaken for others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from berkelium_lab import processes
from berkelium_lab.processes import ProcessRecord
from berkelium_lab.wait import until

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
)
PARENT = "import subprocess, sys; subprocess.Popen(['sleep', '600']); print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A lab's directory; whatever was started for it is ended."""
    yield tmp_path
    processes.stop(processes.belonging_to(tmp_path), 0)


def start(home: Path, *command: str) -> ProcessRecord:
    """Start a program with its log at `log`."""
    return processes.start(command, home, home / "log")


def test_a_started_program_is_found_by_its_record_until_it_ends(home: Path) -> None:
    record = start(home, "sleep", "600")
    found = processes.find(record, home)
    assert found is not None
    assert found.name() == "sleep"
    processes.stop([found], 10)
    assert processes.find(record, home) is None


def test_a_started_program_has_a_session_of_its_own(home: Path) -> None:
    record = start(home, "sleep", "600")
    assert os.getsid(record.pid) == record.pid


def test_a_program_that_ended_by_itself_is_not_found_though_nobody_read_its_exit_status(home: Path) -> None:
    record = start(home, "true")
    until(lambda: processes.find(record, home) is None, "the program has ended", 10)


def test_a_later_process_with_the_same_id_is_not_taken_for_the_recorded_one(home: Path) -> None:
    record = start(home, "sleep", "600")
    earlier = ProcessRecord(pid=record.pid, create_time=record.create_time - 60)
    assert processes.find(earlier, home) is None
    assert processes.find(record, home) is not None


def test_a_process_of_another_lab_is_not_taken_for_ones_own(home: Path) -> None:
    record = start(home, "sleep", "600")
    until(lambda: processes.belonging_to(home), "the program has been executed", 10)
    assert processes.find(record, home / "other") is None
    assert processes.belonging_to(home / "other") == []


def test_a_foreign_process_at_a_recorded_id_is_left_alone(home: Path) -> None:
    foreign = subprocess.Popen(["sleep", "600"])
    try:
        process = psutil.Process(foreign.pid)
        until(process.environ, "the program has been executed", 10)
        record = ProcessRecord(pid=foreign.pid, create_time=process.create_time())
        assert processes.find(record, home) is None
    finally:
        foreign.kill()
        foreign.wait()


def test_a_program_that_ignores_the_request_to_end_is_killed(home: Path) -> None:
    record = start(home, sys.executable, "-c", STUBBORN)
    until(lambda: processes.tail(home / "log", 1) == ["ready"], "the program ignores SIGTERM", 10)
    processes.stop(processes.belonging_to(home), 0.2)
    assert processes.find(record, home) is None


def test_children_that_outlive_their_parent_are_found(home: Path) -> None:
    record = start(home, sys.executable, "-c", PARENT)
    # Its standard input is empty, so it ends at once and leaves its child behind.
    until(lambda: processes.find(record, home) is None, "the parent has ended", 10)
    (child,) = processes.left_of(record, home)
    assert child.name() == "sleep"
    assert processes.belonging_to(home) == [child]


def test_output_is_appended_to_the_log(home: Path) -> None:
    for word in ("first", "second"):
        record = start(home, "echo", word)
        until(lambda record=record: processes.find(record, home) is None, "echo has ended", 10)
    assert processes.tail(home / "log", 10) == ["first", "second"]
    assert processes.tail(home / "log", 1) == ["second"]
    assert processes.tail(home / "log", 0) == []
    assert processes.tail(home / "absent", 5) == []


def test_settings_of_the_callers_environment_do_not_reach_the_programs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ETCD_NAME", "KUBECONFIG", "KWOK_CONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.setenv(name, "from outside")
    record = start(home, "env")
    until(lambda: processes.find(record, home) is None, "env has ended", 10)
    printed = (home / "log").read_text()
    assert "from outside" not in printed
    assert f"{processes.MARK}={home}" in printed


def test_a_program_that_does_not_exist_is_an_os_error(home: Path) -> None:
    with pytest.raises(FileNotFoundError):
        start(home, str(home / "absent"))
