"""`berkelium lab`: start, look at and take down a laboratory, and apply the program to it."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from berkelium_lab.lab import Lab

NOT_RUNNING = 3
"""Exit code of `lab status` for a lab that is not running as a whole."""


def _progress(line: str) -> None:
    click.echo(line, err=True)


def _lab(name: str) -> "Lab":
    from berkelium_lab.lab import Lab

    return Lab(name)


def _name_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--name", default="berkelium", show_default=True, metavar="NAME", help="Which lab.")(command)


@click.group()
def lab() -> None:
    """A real Kubernetes control plane with simulated GPUs on this machine.

    \b
    Examples:
      berkelium lab up
      export KUBECONFIG=$(berkelium lab kubeconfig)
      berkelium lab deploy
      berkelium lab down
    """


@lab.command()
@_name_option
@click.option(
    "--fleet", metavar="FILE", help="A fleet file, or the name of one that comes with the lab: berkelium, upstream."
)
def up(name: str, fleet: str | None) -> None:
    """Start a lab, or what has died of it, and wait until it serves.

    A lab that runs is left as it is. It goes on after this command, until `berkelium lab down`.

    \b
    Examples:
      berkelium lab up
      berkelium lab up --name mine --fleet my-fleet.yaml
    """
    which = _lab(name)
    which.up(fleet, _progress)
    _progress(f"export KUBECONFIG={which.kubeconfig}")


@lab.command()
@_name_option
def down(name: str) -> None:
    """Stop a lab and remove its data. A lab that does not exist is fine.

    \b
    Examples:
      berkelium lab down
      berkelium lab down --name mine
    """
    if _lab(name).down(_progress):
        _progress(f"lab {name!r} is down")
    else:
        _progress(f"there is no lab {name!r}, nothing to do")


@lab.command()
@_name_option
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def status(name: str, as_json: bool) -> None:
    """Show what of a lab runs, and the last words of what does not.

    Exit code 0 when every component serves, 3 otherwise (also when there is no such lab).

    \b
    Examples:
      berkelium lab status
      berkelium lab status --name mine --json
    """
    found = _lab(name).status()
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        from berkelium_cli.lab_status import show

        show(found)
    if not found.running:
        raise click.exceptions.Exit(NOT_RUNNING)


@lab.command("list")
def list_labs() -> None:
    """Print the names of the labs on this machine, running or not, one a line.

    \b
    Examples:
      berkelium lab list
    """
    from berkelium_lab.lab import labs

    for name in labs():
        click.echo(name)


@lab.command()
@_name_option
def kubeconfig(name: str) -> None:
    """Print the path of a lab's administrator kubeconfig, and nothing else.

    \b
    Examples:
      kubectl --kubeconfig "$(berkelium lab kubeconfig)" get nodes
    """
    click.echo(_lab(name).kubeconfig)


@lab.command()
@click.argument("component", required=False)
@_name_option
@click.option("--tail", "lines", type=click.IntRange(min=0), default=20, show_default=True, help="How many last lines.")
@click.option("--follow", "-f", is_flag=True, help="Go on printing, until Ctrl-C; needs COMPONENT.")
def logs(component: str | None, name: str, lines: int, follow: bool) -> None:
    """Print the last lines of one component's log, or of each component's.

    \b
    Examples:
      berkelium lab logs
      berkelium lab logs kube-scheduler --tail 100 --follow
    """
    from berkelium_lab.processes import tail

    if follow and component is None:
        raise click.UsageError("--follow needs a component, such as kube-scheduler.")
    which = _lab(name)
    for each in [component] if component else which.log_names():
        log = which.log(each)
        if component is None:
            click.echo(f"==> {log} <==")
        for line in tail(log, lines):
            click.echo(line)
    if follow and component:
        _follow(which.log(component))


def _follow(log: Path) -> None:
    """Print what is appended to `log` until its directory is gone."""
    with log.open("rb") as file:
        file.seek(0, 2)
        while log.exists():
            if new := file.read():
                sys.stdout.buffer.write(new)
                sys.stdout.flush()
            else:
                time.sleep(0.2)


def parse_config(assignments: tuple[str, ...]) -> dict[str, object]:
    """Settings from `key=value` pairs: dots in a key go into sections, a value is YAML 1.2 (so `off` is a word).

    Raises `click.UsageError` for a pair without a key or with a value that is no YAML.
    """
    from ruamel.yaml import YAML, YAMLError

    reader = YAML(typ="safe", pure=True)
    config: dict[str, object] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        *sections, last = key.split(".")
        if not equals or not all((*sections, last)):
            raise click.UsageError(f"--config {assignment}: write key=value, or section.key=value.")
        try:
            value = reader.load(text)
        except YAMLError:
            raise click.UsageError(f"--config {key}: {text!r} is no YAML value; quote it.") from None
        _section(config, sections)[last] = value
    return config


def _section(config: dict[str, object], sections: list[str]) -> dict[str, object]:
    for name in sections:
        inner = config.setdefault(name, {})
        if not isinstance(inner, dict):
            raise click.UsageError(f"--config {'.'.join(sections)}: {name} has been given a plain value already.")
        config = inner
    return config


@lab.command()
@_name_option
@click.option(
    "--charts",
    metavar="DIR|official",
    help="Where the three charts come from: a directory, or the official repositories. By default those of the lab.",
)
@click.option("--config", "assignments", multiple=True, metavar="KEY=VALUE", help="A setting, over the stack's.")
@click.option("--refresh", is_flag=True, help="Look at the cluster first, and put back what was changed there by hand.")
def deploy(name: str, charts: str | None, assignments: tuple[str, ...], refresh: bool) -> None:
    """Apply the Pulumi program (stack `lab`) to a running lab.

    \b
    Examples:
      berkelium lab deploy
      berkelium lab deploy --charts official
      berkelium lab deploy --config nvidia.splitKubeletPlugin=off
      berkelium lab deploy --refresh
    """
    config = parse_config(assignments)
    from berkelium_lab.workspace import deploy as apply_program

    apply_program(_lab(name), config, _progress, charts=charts, refresh=refresh)


@lab.command()
@_name_option
@click.option("--held-claims", is_flag=True, help="Go on although pods hold devices.")
def destroy(name: str, held_claims: bool) -> None:
    """Take what `deploy` applied away again; the lab goes on.

    Refused while pods hold devices: the claims are listed, and nothing is deleted.

    \b
    Examples:
      berkelium lab destroy
      berkelium lab destroy --held-claims
    """
    from berkelium_lab.workspace import destroy as destroy_program

    destroy_program(_lab(name), _progress, held_claims=held_claims)
