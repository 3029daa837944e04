"""`berkelium tools status` and `clean`: what is built, and what can go."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from berkelium_cli.tools import tools
from berkelium_lab import toolchain
from berkelium_lab.toolchain import ToolchainError, clean, ensure_tools, status
from tests.unit.toolchain_workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    workshop = Workshop(tmp_path).set_up()
    monkeypatch.setenv("PATH", f"{workshop.bin}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("BERKELIUM_TOOLS", raising=False)
    return workshop


def programs(workshop: Workshop) -> list[str]:
    names = set(workshop.layout().names)
    return sorted(path.name for path in workshop.layout().cache.rglob("*") if path.is_file() and path.name in names)


def test_the_status_tells_built_tools_from_those_that_are_not(workshop: Workshop) -> None:
    ensure_tools(None, workshop.layout())
    workshop.write_module("smithy", "0.9.1")
    found = status(workshop.layout())
    assert [(tool.name, tool.version, tool.built) for tool in found.tools] == [
        ("anvil", "1.2.3", True),
        ("hammer", "0.9.1", False),
        ("tongs", "0.9.1", False),
    ]
    assert not found.complete
    assert found.tools[0].path.is_file()
    assert found.tools[1].size_mib is None


def test_cleaning_removes_the_builds_of_earlier_versions_only(workshop: Workshop) -> None:
    ensure_tools(None, workshop.layout())
    workshop.write_module("smithy", "0.9.1")
    current = ensure_tools(None, workshop.layout())
    assert clean(workshop.layout()) > 0
    assert all(current.path(name).is_file() for name in current.names)
    assert status(workshop.layout()).complete
    assert programs(workshop) == ["anvil", "anvil", "hammer", "hammer", "tongs", "tongs"], "built, and in one directory"
    assert clean(workshop.layout()) == 0


def test_cleaning_everything_leaves_no_program(workshop: Workshop) -> None:
    ensure_tools(None, workshop.layout())
    assert clean(workshop.layout(), everything=True) > 0
    assert programs(workshop) == []
    assert not status(workshop.layout()).complete


def test_cleaning_waits_for_no_build_but_says_that_one_runs(workshop: Workshop) -> None:
    ensure_tools(None, workshop.layout())
    with (
        workshop.layout().lock("smithy"),
        pytest.raises(ToolchainError, match="Another process builds smithy now"),
    ):
        clean(workshop.layout(), everything=True)
    assert status(workshop.layout()).complete


def test_cleaning_an_empty_cache_frees_nothing(workshop: Workshop) -> None:
    assert clean(workshop.layout()) == 0


def test_the_command_prints_the_status_of_all_tools_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERKELIUM_CACHE", str(tmp_path))
    monkeypatch.delenv("BERKELIUM_TOOLS", raising=False)
    result = CliRunner().invoke(tools, ["status", "--json"])
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert [tool["name"] for tool in printed["tools"]] == list(toolchain.TOOLS)
    assert not any(tool["built"] for tool in printed["tools"])


def test_the_path_of_a_tool_is_printed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in toolchain.TOOLS:
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("BERKELIUM_TOOLS", str(tmp_path))
    assert CliRunner().invoke(tools, ["path", "etcd"]).stdout == f"{tmp_path}/etcd\n"
    assert CliRunner().invoke(tools, ["path"]).stdout == f"{tmp_path}\n"


def test_a_path_that_is_asked_for_before_the_build_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERKELIUM_CACHE", str(tmp_path))
    monkeypatch.delenv("BERKELIUM_TOOLS", raising=False)
    result = CliRunner().invoke(tools, ["path"])
    assert isinstance(result.exception, ToolchainError)
    assert result.stdout == ""
