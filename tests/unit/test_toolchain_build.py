"""The tools are built once, by one process at a time, and an interrupted or failed build harms nothing."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from berkelium_lab.toolchain import Toolchain, ToolchainError, ensure_tools, find_tools
from berkelium_lab.wait import until
from tests.unit.toolchain_workshop import Workshop

SECONDS = 20.0


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    workshop = Workshop(tmp_path).set_up()
    monkeypatch.setenv("PATH", f"{workshop.bin}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("BERKELIUM_TOOLS", raising=False)
    return workshop


@pytest.fixture
def started(workshop: Workshop) -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes to add to; none of them, and no held build, outlives the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()
    for pid in filter(alive, workshop.held()):
        os.kill(pid, signal.SIGKILL)


def ensure(workshop: Workshop, lines: list[str] | None = None) -> Toolchain:
    return ensure_tools(None if lines is None else lines.append, workshop.layout())


def answers(toolchain: Toolchain, name: str) -> str:
    return subprocess.run([toolchain.path(name)], capture_output=True, text=True, check=True).stdout


def test_every_tool_is_built_once_and_found_under_its_name_in_one_directory(workshop: Workshop) -> None:
    first = ensure(workshop)
    assert "main.version=v1.2.3" in answers(first, "anvil")
    assert "main.version=v0.9.0" in answers(first, "tongs")
    lines: list[str] = []
    assert ensure(workshop, lines).directory == first.directory
    assert workshop.builds == ["anvil", "hammer", "tongs"]
    assert lines == []


def test_after_a_change_only_that_modules_tools_are_built_again(workshop: Workshop) -> None:
    before = ensure(workshop)
    workshop.write_module("smithy", "0.9.1")
    after = ensure(workshop)
    assert workshop.builds == ["anvil", "hammer", "hammer", "tongs", "tongs"]
    assert "main.version=v0.9.1" in answers(after, "hammer")
    assert "main.version=v0.9.0" in answers(before, "hammer"), "a lab that runs on the earlier build keeps it"


def test_the_first_line_says_how_long_and_how_much_disk_and_the_rest_which_tool_and_how_far(workshop: Workshop) -> None:
    lines: list[str] = []
    ensure(workshop, lines)
    assert "Building 3 of 3 tools" in lines[0]
    assert "20 minutes" in lines[0]
    assert "12 GB" in lines[0]
    assert "go clean -cache" in lines[0]
    assert any(line.startswith("anvil: 2 packages to compile, ") for line in lines)
    assert any(line.startswith("anvil: linking, ") for line in lines)
    assert sum("built in" in line for line in lines) == 3
    assert lines[-1].endswith("(3 of 3 tools)")


def test_nothing_is_written_into_the_checkout(workshop: Workshop) -> None:
    before = sorted(workshop.source.rglob("*"))
    ensure(workshop)
    assert sorted(workshop.source.rglob("*")) == before


def test_two_processes_at_once_build_each_tool_once_and_the_second_says_that_it_waits(
    workshop: Workshop, started: list["subprocess.Popen[str]"]
) -> None:
    workshop.hold.touch()
    started.append(workshop.start())
    until(workshop.held, "the first process builds", SECONDS)
    started.append(workshop.start())
    until(lambda: "another process builds it, waiting" in workshop.output(1), "the second process waits", SECONDS)
    workshop.hold.unlink()
    assert [process.wait(SECONDS) for process in started] == [0, 0]
    assert workshop.builds == ["anvil", "hammer", "tongs"]
    assert workshop.output(0).splitlines()[-1] == workshop.output(1).splitlines()[-1] == str(find_directory(workshop))


def find_directory(workshop: Workshop) -> Path:
    return find_tools(workshop.layout()).directory


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_ends_go_with_its_children_and_the_next_call_goes_on(
    workshop: Workshop, started: list["subprocess.Popen[str]"], number: signal.Signals
) -> None:
    workshop.hold.touch()
    started.append(workshop.start())
    pids = until(workshop.held, "a build runs", SECONDS)
    started[0].send_signal(number)
    assert started[0].wait(SECONDS) != 0
    until(lambda: not any(map(alive, [*pids, *workshop.held()])), "Go and its child are gone", SECONDS)
    assert [tool.name for tool in workshop.layout().missing()] == ["anvil", "hammer", "tongs"]

    workshop.hold.unlink()
    assert ensure(workshop).path("anvil").is_file()


def alive(pid: int) -> bool:
    """A killed process that nobody waits for, as in a container without an init, does not count."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_killed_process_leaves_no_lock_and_its_rubbish_is_removed(
    workshop: Workshop, started: list["subprocess.Popen[str]"]
) -> None:
    workshop.hold.touch()
    started.append(workshop.start())
    pids = until(workshop.held, "a build runs", SECONDS)
    started[0].kill()
    started[0].wait(SECONDS)
    for pid in [*pids, *workshop.held()]:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    leftovers = list(workshop.layout().root.glob("*/partial"))
    assert leftovers, "the killed build had begun"

    workshop.hold.unlink()
    ensure(workshop)
    assert not any(path.exists() for path in leftovers)


def test_a_failed_build_is_reported_with_its_command_and_its_last_lines(workshop: Workshop) -> None:
    noise = "\n".join(f"line {number}" for number in range(100))
    (workshop.control / "fail").write_text(f"{noise}\nanvil.go:7:2: undefined: strike")
    with pytest.raises(ToolchainError) as caught:
        ensure(workshop)
    message = str(caught.value)
    assert "could not be built: the command ended with 1." in message
    assert "CGO_ENABLED=0" in message
    assert "build -v -trimpath -mod=readonly -ldflags '-s -w -X main.version=v" in message
    assert "    anvil.go:7:2: undefined: strike" in message
    assert "line 99" in message
    assert "line 50" not in message
    log = Path(message.split("all of its output: ")[1].splitlines()[0])
    assert "line 50" in log.read_text()
    assert workshop.layout().missing(), "a failed build is no build"


def test_what_was_built_before_a_failure_is_kept(workshop: Workshop) -> None:
    ensure(workshop)
    workshop.write_module("smithy", "0.9.1")
    (workshop.control / "fail").write_text("broken")
    with pytest.raises(ToolchainError, match="could not be built"):
        ensure(workshop)
    assert "anvil" not in [tool.name for tool in workshop.layout().missing()]
    (workshop.control / "fail").unlink()
    ensure(workshop)
    assert workshop.builds.count("anvil") == 1


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("go: example.com/x: dial tcp: lookup proxy.example.com: no such host", "there is no network"),
        ("go: example.com/x@v1: Get: proxyconnect tcp: connection refused", "there is no network"),
        ("compile: writing output: no space left on device", "The disk is full"),
        ("link: signal: killed", "ran out of memory"),
        ("go: example.com/x@v1: missing go.sum entry", "go mod tidy"),
    ],
)
def test_a_failure_with_a_known_cause_says_what_to_do(workshop: Workshop, output: str, advice: str) -> None:
    (workshop.control / "fail").write_text(output)
    with pytest.raises(ToolchainError, match=advice):
        ensure(workshop)


def test_a_program_that_reports_another_version_is_refused(workshop: Workshop) -> None:
    go = workshop.bin / "go"
    go.write_text(go.read_text().replace("{program.name} {flags}", "version v1.2.30"))
    with pytest.raises(
        ToolchainError, match=r"from example\.com/\w+ v[\d.]+, but says of itself:\n    version v1\.2\.30"
    ):
        ensure(workshop)
    assert len(workshop.layout().missing()) == 3


def test_a_module_that_is_changed_during_its_build_is_not_taken_for_built(
    workshop: Workshop, started: list["subprocess.Popen[str]"]
) -> None:
    workshop.hold.touch()
    started.append(workshop.start())
    until(lambda: "anvil" in workshop.builds and workshop.held(), "the build of anvil runs", SECONDS)
    workshop.write_module("anvil", "1.2.4")
    workshop.hold.unlink()
    assert started[0].wait(SECONDS) == 1
    assert "anvil was changed while anvil was built" in workshop.output(0)
    assert "anvil" in [tool.name for tool in workshop.layout().missing()]


def test_without_go_the_message_says_what_to_install(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(workshop.control))
    with pytest.raises(
        ToolchainError, match=r"Go 1\.26\.0 or later is needed.*no `go` in PATH.*go\.dev/dl.*BERKELIUM_"
    ):
        ensure(workshop)


def test_an_old_go_is_refused_with_both_releases(workshop: Workshop) -> None:
    workshop.write_release("go1.25.9")
    with pytest.raises(ToolchainError, match=r"Go 1\.26\.0 or later.*/bin/go is go1\.25\.9\..*go\.dev/dl"):
        ensure(workshop)


def test_built_tools_need_no_go(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    built = ensure(workshop)
    shutil.rmtree(workshop.bin)
    monkeypatch.setenv("PATH", str(workshop.control))
    assert ensure(workshop).directory == built.directory


def test_finding_does_not_build(workshop: Workshop) -> None:
    with pytest.raises(ToolchainError, match=r"Not built yet: anvil, hammer, tongs\..*berkelium tools build"):
        find_tools(workshop.layout())
    assert workshop.builds == []


def test_asking_for_an_unknown_tool_names_those_that_there_are(workshop: Workshop) -> None:
    with pytest.raises(ToolchainError, match="no tool 'bellows'; the tools are: anvil, hammer, tongs"):
        ensure(workshop).path("bellows")
