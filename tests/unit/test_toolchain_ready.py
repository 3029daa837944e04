"""`BERKELIUM_TOOLS` names a directory of ready binaries; then nothing is built."""

from pathlib import Path

import pytest

from berkelium_lab.toolchain import ToolchainError, ensure_tools, find_tools, status
from tests.unit.toolchain_workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path).set_up()


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "ready"
    directory.mkdir()
    for tool in Workshop.tools:
        (directory / tool.name).write_text("#!/bin/sh\n")
        (directory / tool.name).chmod(0o755)
    monkeypatch.setenv("BERKELIUM_TOOLS", str(directory))
    monkeypatch.setenv("PATH", "")
    return directory


def test_ready_binaries_are_used_as_they_are(workshop: Workshop, ready: Path) -> None:
    for toolchain in (ensure_tools(None, workshop.layout()), find_tools(workshop.layout())):
        assert toolchain.directory == ready
        assert toolchain.path("hammer") == ready / "hammer"
    assert not workshop.layout().cache.exists()


def test_the_status_shows_the_ready_binaries(workshop: Workshop, ready: Path) -> None:
    found = status(workshop.layout())
    assert found.source == ready
    assert found.complete
    assert [tool.path for tool in found.tools] == [ready / name for name in ("anvil", "hammer", "tongs")]


def test_a_missing_binary_is_named(workshop: Workshop, ready: Path) -> None:
    (ready / "hammer").unlink()
    (ready / "tongs").chmod(0o644)
    with pytest.raises(
        ToolchainError, match=rf"BERKELIUM_TOOLS is set to {ready}, which has no executable hammer, tongs"
    ):
        ensure_tools(None, workshop.layout())


def test_a_directory_that_is_not_there_is_named(
    workshop: Workshop, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERKELIUM_TOOLS", str(ready / "absent"))
    with pytest.raises(ToolchainError, match=rf"BERKELIUM_TOOLS is set to {ready}/absent, which is no directory"):
        find_tools(workshop.layout())
