"""`berkelium config`: what a stack's file may say, and whether it says it right."""

import json

import click

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
    from berkelium_infra.settings import PROJECT
    from berkelium_lab import stack_files

    wrong = False
    for stack in stacks:
        try:
            stack_files.read(PROJECT, stack).settings(PROJECT)
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
