"""The command line of `berkelium lab`, without a lab."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from berkelium_cli.lab import lab, parse_config
from berkelium_cli.lab_status import show
from berkelium_lab.status import ComponentStatus, LabStatus


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERKELIUM_CACHE", str(tmp_path))


def test_the_contracted_commands_are_there_each_with_examples() -> None:
    assert {"up", "down", "status", "kubeconfig", "logs", "deploy", "destroy", "list"} <= set(lab.commands)
    for name in lab.commands:
        assert "Examples:" in CliRunner().invoke(lab, [name, "--help"]).output


@pytest.mark.parametrize("name", sorted(set(lab.commands) - {"list"}))
def test_every_command_on_a_lab_takes_its_name(name: str) -> None:
    assert any("--name" in option.opts for option in lab.commands[name].params)


def test_status_of_a_lab_that_does_not_exist_is_3() -> None:
    result = CliRunner().invoke(lab, ["status", "--json"])
    assert result.exit_code == 3
    assert json.loads(result.stdout)["condition"] == "absent"


def test_down_of_a_lab_that_does_not_exist_is_0() -> None:
    result = CliRunner().invoke(lab, ["down", "--name", "absent"])
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "there is no lab 'absent'" in result.stderr


def test_following_needs_a_component() -> None:
    result = CliRunner().invoke(lab, ["logs", "--follow"])
    assert result.exit_code == 2
    assert "--follow needs a component" in result.stderr


def test_settings_are_yaml_in_sections_and_off_stays_a_word() -> None:
    given = ("nvidia.splitKubeletPlugin=off", "nvidia.driverRoot=/", "namespaces=[a, b]", "on=true", "empty=")
    assert parse_config(given) == {
        "nvidia": {"splitKubeletPlugin": "off", "driverRoot": "/"},
        "namespaces": ["a", "b"],
        "on": True,
        "empty": None,
    }


@pytest.mark.parametrize("wrong", ["key", "=value", "a..b=1", ".a=1", "key=[1"])
def test_a_setting_that_cannot_be_read_is_wrong_usage(wrong: str) -> None:
    with pytest.raises(click.UsageError, match="--config"):
        parse_config((wrong,))


def test_a_setting_inside_a_plain_value_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match="a has been given a plain value already"):
        parse_config(("a=1", "a.b=2"))


def test_the_table_shows_what_died_with_its_last_lines(capsys: pytest.CaptureFixture[str]) -> None:
    log = Path("/logs/etcd.log")
    died = ComponentStatus(name="etcd", port=20001, complaint="process 7 has ended", log=log, last_lines=["[red]why"])
    lives = ComponentStatus(name="kwok", pid=8, alive=True, serves=True, memory_mib=50, log=Path("/logs/kwok.log"))
    show(
        LabStatus(
            name="mine", condition="degraded", running=False, directory=Path("/labs/mine"), components=[died, lives]
        )
    )
    shown = capsys.readouterr().out
    assert "lab mine: degraded" in shown
    assert "etcd: process 7 has ended" in shown
    assert "[red]why" in shown
    assert "`berkelium lab up --name mine` starts what does not run" in shown


def test_asking_for_help_or_a_kubeconfig_loads_neither_the_client_library_nor_pulumi() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from berkelium_cli.main import cli;"
        "CliRunner().invoke(cli, ['lab', '--help']); CliRunner().invoke(cli, ['lab', 'kubeconfig']);"
        "print([name for name in ('kubernetes', 'pulumi', 'cryptography', 'rich.table') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
