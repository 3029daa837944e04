"""The tenants' page is true: its manifests are written to files, its commands run, and its output comes out."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from berkelium_cli import check as command
from berkelium_cli.main import cli
from berkelium_lab.check import target

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tenants.md"
FILES = re.findall(r"^```yaml (\S+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
SESSIONS = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def own_lab_once() -> Iterator[target.Target]:
    """One lab for all commands of the page; each would start its own."""
    with target.own_lab(None, lambda _: None) as where:
        yield where


def test_the_page_has_files_and_commands() -> None:
    assert [name for name, _ in FILES] == ["job.yaml", "too-many.yaml", "old.yaml"]
    assert len(SESSIONS) == 4


@pytest.mark.parametrize(("line", "output"), SESSIONS, ids=[line for line, _ in SESSIONS])
def test_a_command_of_the_page_prints_what_the_page_says(
    line: str, output: str, own_lab_once: target.Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_target", lambda *_: nullcontext(own_lab_once))
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    program, *arguments = line.split()
    result = CliRunner().invoke(cli, arguments)
    assert program == "berkelium"
    assert result.exception is None or isinstance(result.exception, SystemExit)
    printed = result.output
    at = 0
    for expected in output.splitlines():
        found = printed.find(expected, at) if not expected.startswith("old.yaml:") else printed.find(expected)
        assert found >= 0, f"{expected!r} is not in:\n{printed}"
        at = max(at, found)
