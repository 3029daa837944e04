"""`berkelium drift`: what in a cluster is no longer as the stack last applied it."""

import json
from typing import TYPE_CHECKING, Any

import click

from berkelium_cli.target import target_options

if TYPE_CHECKING:
    from berkelium_infra.live import Live
    from berkelium_lab.drift import Drift

DRIFTED, COULD_NOT_LOOK = 1, 2
_WIDTH = 160


class CouldNotLook(click.ClickException):
    """Nothing could be compared."""

    exit_code = COULD_NOT_LOOK


@click.command()
@target_options
@click.option("--stack", metavar="STACK", help="Compare a cluster with the state of this stack, instead of a lab.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def drift(name: str, context: str | None, stack: str | None, as_json: bool) -> None:
    """Show what was changed by hand since the stack was applied, with the old and the new value.

    Objects inside Helm releases are compared as well, which neither `pulumi preview --refresh` nor Helm does. Nothing
    is written; the server is asked by dry run. What is found is mended by `pulumi up --refresh --run-program`, in a
    lab by `berkelium lab deploy --refresh`.

    Exit code 0 without drift, 1 with drift, 2 when it could not look.

    \b
    Examples:
      berkelium drift
      berkelium drift --stack prod
      berkelium drift --stack prod --context berkelium-prod --json
    """
    from berkelium_infra.errors import UserError
    from berkelium_lab.drift import search

    try:
        deployment, live = _stack(stack, context) if stack or context else _lab(name)
        found = search(deployment, live)
    except UserError as error:
        raise CouldNotLook(str(error)) from None
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        _show(found)
    if found.findings:
        raise click.exceptions.Exit(DRIFTED)


def _lab(name: str) -> "tuple[dict[str, Any], Live]":
    from berkelium_infra.live import open_kubeconfig
    from berkelium_lab import workspace
    from berkelium_lab.lab import Lab

    lab = Lab(name)
    return workspace.state(lab), open_kubeconfig(str(lab.kubeconfig))


def _stack(stack: str | None, context: str | None) -> "tuple[dict[str, Any], Live]":
    from berkelium_infra.live import Unreachable, connect
    from berkelium_lab.recovery import user_stack

    if stack is None:
        raise click.UsageError("--context needs --stack: the state of a stack says what was applied.")
    chosen = user_stack.select(stack)
    live = connect(context if context is not None else user_stack.context(chosen))
    if live is None:
        raise Unreachable("there is no kubeconfig: set KUBECONFIG, or write ~/.kube/config")
    return user_stack.deployment(chosen), live


def _show(found: "Drift") -> None:
    for finding in found.findings:
        where = f"{finding.namespace}/{finding.name}" if finding.namespace else finding.name
        inside = f" of release {finding.release}" if finding.release else ""
        click.secho(f"{finding.kind} {where}{inside} {'is gone' if finding.gone else 'was changed'}", bold=True)
        for difference in finding.differences:
            click.echo(f"    {difference.path}")
            click.echo(f"      - {_shown(difference.declared)}")
            click.echo(f"      + {_shown(difference.found)}")
        if finding.removal:
            click.echo(f"    applying the stack leaves what was added; remove it by\n      {finding.removal}")
    count = len(found.findings)
    click.echo(
        f"{found.server}: {count or 'no'} {'object has' if count == 1 else 'objects have'} drifted, "
        f"of {found.compared} objects and releases of the stack",
        err=True,
    )


def _shown(value: object) -> str:
    text = "(nothing)" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
