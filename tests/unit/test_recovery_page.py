"""docs/operations.md: every command in it exists, with the options that it is given there."""

import re
import shlex
from pathlib import Path

import click
import pytest

from berkelium_cli.main import cli
from berkelium_infra import claims_held
from berkelium_infra.components import cluster_identity
from berkelium_infra.live import WITHOUT_CLUSTER

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
COMMANDS = sorted({found.split("#")[0].strip("` ") for found in re.findall(r"(?m)(?:^|`)berkelium [^`\n|]+", PAGE)})


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_understood(line: str) -> None:
    _, *arguments = shlex.split(line)
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and arguments:
        found = command.get_command(context, arguments.pop(0))
        assert found, line
        command = found
    command.make_context(line, arguments)


def test_the_page_has_the_commands_of_all_parts() -> None:
    assert {line.split()[1] for line in COMMANDS} >= {"drift", "recover", "lab"}


@pytest.mark.parametrize("name", [cluster_identity.ACCEPT, claims_held.OVERRIDE, WITHOUT_CLUSTER])
def test_the_page_names_the_environment_variables_as_the_program_reads_them(name: str) -> None:
    assert name in PAGE
    assert set(re.findall(r"BERKELIUM_[A-Z_]+", PAGE)) <= {
        cluster_identity.ACCEPT,
        claims_held.OVERRIDE,
        WITHOUT_CLUSTER,
    }
