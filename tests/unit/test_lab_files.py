"""Names, paths, ports and the state file of labs."""

import json
import re
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berkelium_lab import paths, ports, state
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab, labs
from berkelium_lab.processes import ProcessRecord
from berkelium_lab.state import LabState


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory without labs."""
    monkeypatch.setenv("BERKELIUM_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["berkelium", "a", "0", "lab-2", "x" * 63])
def test_a_dns_label_is_a_name_for_a_lab(name: str) -> None:
    assert Lab(name).name == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a_b", "a/b", "..", "a b", "ä", "x" * 64, "a\n"])
def test_anything_else_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(LabError, match="lower case letters, digits and '-'"):
        Lab(name)


@given(st.text(max_size=70))
def test_a_lab_never_lies_outside_the_directory_of_labs(name: str) -> None:
    try:
        directory = paths.lab_dir(name)
    except LabError:
        return
    assert directory.parent == paths.labs_dir()
    assert re.fullmatch(r"[a-z0-9-]+", directory.name)


def test_the_cache_directory_can_be_moved(cache: Path) -> None:
    assert Lab("mine").directory == cache / "labs" / "mine"


def test_a_labs_lock_is_not_in_the_directory_that_down_removes(cache: Path) -> None:
    assert not paths.lock_file("mine").is_relative_to(Lab("mine").directory)
    assert paths.lock_file("mine").is_relative_to(cache)


def test_a_private_file_is_its_owners_alone_and_replaces_the_former_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in ("first", "second"):
        paths.write_private(path, text)
        assert path.read_text() == text
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_ports_are_free_distinct_and_not_those_taken() -> None:
    names = [f"listener-{number}" for number in range(50)]
    first = ports.pick(names)
    second = ports.pick(names, set(first.values()))
    assert list(first) == names
    assert len({*first.values(), *second.values()}) == 100
    assert all(port in ports.PORTS for port in first.values())


def test_ports_are_below_the_range_of_outgoing_connections() -> None:
    assert ports.PORTS.start >= 1024
    assert ports.PORTS.stop <= 32768


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_that_another_program_listens_on_is_not_free(address: str) -> None:
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
    assert ports.is_free(port)


def test_running_out_of_ports_is_an_error() -> None:
    with pytest.raises(OSError, match="no free port between 20000 and 31999"):
        ports.pick(["one"], taken=ports.PORTS)


def test_a_state_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    written = LabState(
        name="mine",
        fleet="upstream",
        ports={"etcd": 20001},
        processes={"etcd": ProcessRecord(pid=4711, create_time=1796000000.25)},
    )
    written.save(tmp_path)
    assert state.load(tmp_path) == written


def test_a_directory_without_a_state_is_no_lab(tmp_path: Path) -> None:
    assert state.load(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"name": "a", "fleet": "b", "unknown": 1})])
def test_a_state_that_cannot_be_read_says_how_to_get_rid_of_it(tmp_path: Path, text: str) -> None:
    (tmp_path / state.FILE).write_text(text)
    with pytest.raises(LabError, match=r"lab\.json is no state of a lab .*`berkelium lab down` removes the lab"):
        state.load(tmp_path)


def test_labs_are_listed_and_their_ports_are_not_given_to_others(cache: Path) -> None:
    for name, port in (("one", 20001), ("two", 20002)):
        directory = paths.private_directory(cache / "labs" / name)
        LabState(name=name, fleet="berkelium", ports={"etcd": port}).save(directory)
    (cache / "labs" / "no-lab").mkdir()
    assert labs() == ["one", "two"]
    assert state.ports_of_other_labs("one") == {20002}


def test_a_lab_with_an_unreadable_state_hides_no_other(cache: Path) -> None:
    for name in ("broken", "whole"):
        directory = paths.private_directory(cache / "labs" / name)
        LabState(name=name, fleet="berkelium", ports={"etcd": 20001}).save(directory)
    (cache / "labs" / "broken" / state.FILE).write_text("{")
    assert state.ports_of_other_labs("mine") == {20001}


@pytest.mark.usefixtures("cache")
def test_asking_something_of_a_lab_that_does_not_exist_says_how_to_start_it() -> None:
    absent = Lab("absent")
    questions = (lambda: absent.kubeconfig, absent.log_names, lambda: absent.log("etcd"), absent.require_running)
    for question in questions:
        with pytest.raises(LabError, match=r"there is no lab 'absent'; start it with `berkelium lab up --name absent`"):
            question()
    assert absent.status().condition == "absent"
    assert absent.down() is False


def test_down_removes_a_lab_whose_state_cannot_be_read(cache: Path) -> None:
    directory = paths.private_directory(cache / "labs" / "broken")
    (directory / state.FILE).write_text("{")
    assert Lab("broken").down() is True
    assert not directory.exists()


def test_a_lab_that_has_seen_a_reboot_is_stopped_and_down_touches_no_process(cache: Path) -> None:
    directory = paths.private_directory(cache / "labs" / "old")
    # Process 1 runs on every machine, and is not the lab's.
    LabState(
        name="old",
        fleet="berkelium",
        ports={"kube-apiserver": 20001, "etcd": 20002, "kube-scheduler": 20003, "kube-controller-manager": 20004},
        processes={"etcd": ProcessRecord(pid=1, create_time=1.0)},
    ).save(directory)
    status = Lab("old").status()
    assert status.condition == "stopped"
    assert next(each for each in status.components if each.name == "etcd").complaint == "process 1 has ended"
    with pytest.raises(LabError, match=r"lab 'old' is stopped .*mend it with `berkelium lab up --name old`"):
        Lab("old").require_running()
    assert Lab("old").down() is True
    assert not directory.exists()
