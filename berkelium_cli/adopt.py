"""`berkelium adopt`: take over what a cluster has already, without deleting or recreating any of it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from berkelium_cli.target import connect, target_options
from berkelium_infra.errors import UserError

if TYPE_CHECKING:
    from berkelium_lab.adopt import Adoption, Found
    from berkelium_lab.adopt.declared import Declared

BLOCKED = 1

_VERDICTS = {"adopt": ("take over", "green"), "recorded": ("ours already", "cyan"), "blocked": ("cannot", "red")}


@click.command()
@target_options
@click.option("--stack", metavar="STACK", help="By default the one with this context, and `lab` for a lab.")
@click.option(
    "--config-file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The stack's file, by default Pulumi.STACK.yaml.",
)
@click.option("--write", is_flag=True, help="Write what can be taken over into the stack's file, for the next `up`.")
@click.option("--done", is_flag=True, help="Remove it from the stack's file again; no cluster is asked.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def adopt(
    name: str,
    context: str | None,
    stack: str | None,
    config_file: Path | None,
    write: bool,
    done: bool,
    as_json: bool,
) -> None:
    """Show which objects of a stack exist in a cluster already, and what taking them over would change.

    The cluster is only read. Nothing is ever deleted or recreated: the next `up` imports what the stack's file names
    under `adopt`, and updates it in place. What the stack's state has already needs no adoption.

    Exit code 0, or 1 when something exists that cannot be taken over as it is; then nothing is written.

    \b
    Examples:
      berkelium adopt --context berkelium-prod
      berkelium adopt --context berkelium-prod --write
      pulumi up --stack prod --skip-preview
      berkelium adopt --context berkelium-prod --done
    """
    if write and done:
        raise click.UsageError("--write and --done exclude each other.")
    from berkelium_infra.settings import PROJECT

    chosen = stack or _stack(PROJECT, context)
    file = config_file or PROJECT / f"Pulumi.{chosen}.yaml"
    if not file.is_file():
        raise UserError(f"there is no {file}")
    if done:
        _remove(PROJECT, file)
        return
    found = _find(PROJECT, chosen, file, name, context)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        _show(found, chosen)
    if found.blocked:
        if write:
            click.echo(f"{file.name} was not written: something is in the way.", err=True)
        raise click.exceptions.Exit(BLOCKED)
    if write:
        _write(PROJECT, file, found, context)


def _find(project: Path, stack: str, file: Path, name: str, context: str | None) -> "Adoption":
    from urllib3.exceptions import HTTPError

    from berkelium_lab.adopt import declared, find
    from berkelium_lab.api import ApiError

    wanted: list[Declared] = declared(project, stack, file)
    try:
        return find(connect(name, context), wanted, _recorded(project, stack, name, context))
    except ApiError as error:
        raise UserError(f"the cluster refuses to be read: {error}") from None
    except HTTPError as error:
        raise UserError(f"the cluster does not answer: {' '.join(str(error).split())}") from None


def _recorded(project: Path, stack: str, name: str, context: str | None) -> set:
    from berkelium_lab.adopt import recorded_in_lab, recorded_in_stack
    from berkelium_lab.project_copy import project_name

    if context is None:
        from berkelium_lab.lab import Lab

        return recorded_in_lab(Lab(name), stack, project_name(project))
    recorded = recorded_in_stack(project, stack)
    if recorded is None:
        click.echo("The stack's state could not be read (pulumi stack export), so all that exists is listed.", err=True)
    return recorded or set()


def _stack(project: Path, context: str | None) -> str:
    """The stack whose file names the context; `lab` without one."""
    if context is None:
        return "lab"
    from berkelium_lab import stack_files

    known = stack_files.stacks(project)
    fitting = [stack for stack in known if stack_files.read(project, stack).values.get("context") == context]
    if len(fitting) != 1:
        raise click.UsageError(f"no stack, or more than one, has the context {context!r}; add --stack.")
    return fitting[0]


def _show(found: "Adoption", stack: str) -> None:
    for each in found.found:
        _show_one(each)
    for note in found.notes:
        click.echo(f"{click.style('note', fg='yellow', bold=True):}  {note}")
    counts = {status: sum(each.status == status for each in found.found) for status in _VERDICTS}
    click.echo(
        f"of what the stack {stack} declares, {len(found.found)} objects exist: {counts['adopt']} can be taken over, "
        f"{counts['recorded']} are in its state already, {counts['blocked']} cannot be taken over as they are",
        err=True,
    )


def _show_one(found: "Found") -> None:
    verdict, colour = _VERDICTS[found.status]
    click.echo(f"{click.style(verdict, fg=colour, bold=True)}  {found.subject}")
    if found.reason:
        click.echo(f"    {found.reason}")
    if found.status == "adopt":
        for line in [*found.changes, *(f"gives {each} to the stack" for each in found.gives)]:
            click.echo(f"    {line}")
        if found.preview_fails:
            click.echo(f"    {found.preview_fails}")
        if not found.changes and not found.gives:
            click.echo("    as declared")


def _write(project: Path, file: Path, found: "Adoption", context: str | None) -> None:
    from berkelium_lab.adopt import write_adopt
    from berkelium_lab.project_copy import project_name

    changed = write_adopt(file, project_name(project), found.section)
    if not found.section:
        click.echo(f"Nothing to take over; {file.name} says so{' now' if changed else ''}.", err=True)
        return
    skip = " --skip-preview" if any(each.preview_fails for each in found.found if each.status == "adopt") else ""
    apply = "berkelium lab deploy" if context is None else f"pulumi up{skip}"
    click.echo(f"{file.name} names what the next up takes over. Then:\n  {apply}\n  berkelium adopt … --done", err=True)


def _remove(project: Path, file: Path) -> None:
    from berkelium_lab.adopt import write_adopt
    from berkelium_lab.project_copy import project_name

    removed = write_adopt(file, project_name(project), {})
    click.echo(f"{file.name}: adopt is {'removed' if removed else 'not there'}.", err=True)
