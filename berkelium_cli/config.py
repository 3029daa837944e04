"""`berkelium config`: what a stack's file may say, and whether it says it right."""

import json
from collections.abc import Mapping
from pathlib import Path

import click
from ruamel.yaml import YAML, YAMLError

from berkelium_infra.errors import UserError


@click.group()
def config() -> None:
    """The configuration of the stacks.

    \b
    Examples:
      berkelium config check prod           is Pulumi.prod.yaml right?
      berkelium config reference            every key with its default and meaning
    """


@config.command("check")
@click.argument("stacks", nargs=-1, required=True, metavar="STACK…")
def check_command(stacks: tuple[str, ...]) -> None:
    """Validate the files of these stacks, as the program does before it touches anything.

    Exit code 0 if all are right, 1 if any is not.
    """
    from berkelium_infra import settings

    wrong = False
    for stack in stacks:
        try:
            settings.parse(_entries(stack), stack)
        except UserError as error:
            wrong = True
            click.echo(f"Error: {error}", err=True)
        else:
            click.echo(f"Pulumi.{stack}.yaml is right.")
    if wrong:
        raise click.exceptions.Exit(1)


@config.command("reference")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def reference_command(markdown: bool, as_json: bool) -> None:
    """Every key with its default and meaning."""
    from berkelium_infra.settings import reference

    keys = reference.keys()
    if as_json:
        click.echo(json.dumps([vars(key) for key in keys], indent=2))
    elif markdown:
        click.echo(_INTRODUCTION)
        for key in keys:
            default = f"`{key.default}`" if key.default else ""
            click.echo(f"| `{key.path}` | {default} | {key.meaning} |")
    else:
        for key in keys:
            click.echo(f"{key.path}{f': {key.default}' if key.default else ''}\n    {key.meaning}")


_INTRODUCTION = """\
# Configuration

Keys of `Pulumi.<stack>.yaml`, each with the prefix `berkelium-infra:` before the first word. `[]` stands for the
entries of a list, or of a mapping by name. `berkelium config check STACK` validates a file; this page is made by
`make docs`.

| key | default | meaning |
| --- | --- | --- |"""


def _entries(stack: str) -> dict[str, object]:
    """The entries of a stack's file over the defaults of Pulumi.yaml, without the project's prefix."""
    from berkelium_infra.settings import PROJECT

    project = _read(PROJECT / "Pulumi.yaml")
    file = PROJECT / f"Pulumi.{stack}.yaml"
    if not file.exists():
        known = sorted(path.name.split(".")[1] for path in PROJECT.glob("Pulumi.*.yaml"))
        raise UserError(f"there is no {file.name}; known stacks: {', '.join(known)}")
    own = f"{project['name']}:"
    declared = _mapping(project.get("config"))
    defaults = {
        key: entry["default"] for key, entry in declared.items() if isinstance(entry, dict) and "default" in entry
    }
    given = _mapping(_read(file).get("config"))
    ours = {key.removeprefix(own): value for key, value in given.items() if key.startswith((own, "kubernetes:"))}
    return {**defaults, **ours}


def _read(path: Path) -> dict[str, object]:
    # YAML 1.2 as Pulumi reads it, in which `off` is a word and no boolean.
    try:
        return _mapping(YAML(typ="safe", pure=True).load(path.read_text()))
    except YAMLError as error:
        raise UserError(f"{path.name} is no YAML: {error}") from None


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}
