"""`berkelium preview`: what a change does to the cluster, tried on a throw-away lab."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from berkelium_lab.review.model import Review

FAILED, CHANGES = 1, 3
"""Exit codes; 2 is that of a wrong option, as everywhere."""


@click.command()
@click.option("--base", metavar="REF", help="The revision to compare with. By default where the main branch was left.")
@click.option("--stack", default="lab", show_default=True, metavar="STACK", help="Whose configuration is applied.")
@click.option("--charts", metavar="DIR|official", help="Where the charts come from. By default those of the lab.")
@click.option("--name", metavar="NAME", help="Name of the throw-away lab.")
@click.option("--keep", is_flag=True, help="Leave the lab running, with the change applied.")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The checkout to review. By default the one of this command.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown that fits into a comment on a pull request.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with nothing left out.")
def preview(
    base: str | None,
    stack: str,
    charts: str | None,
    name: str | None,
    keep: bool,
    project: Path | None,
    markdown: bool,
    as_json: bool,
) -> None:
    """Show what the changes in the work tree do to the cluster, before they touch one.

    A throw-away lab gets the base revision applied, then the work tree. Shown are the engine's own preview with the
    server's dry run, every object that differs (those inside Helm releases, too), GPU devices that vanish or appear,
    and documented workloads that run differently or no longer. Neither the checkout nor any other lab is touched.

    Exit code 0 no changes, 3 changes, 1 failed: the change, or the base revision, cannot be applied.

    \b
    Examples:
      berkelium preview
      berkelium preview --base v1.2.0 --stack prod
      berkelium preview --markdown > comment.md
      berkelium preview --json | jq '.workloads[] | {pod, verdict}'
    """
    if markdown and as_json:
        raise click.UsageError("--markdown and --json exclude each other.")
    found = _review(base, stack, charts, name, keep, project)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        from berkelium_lab.review import markdown as comment
        from berkelium_lab.review import text

        click.echo(comment.render(found) if markdown else text.render(found))
    if found.failure:
        raise click.exceptions.Exit(FAILED)
    if found.changed:
        raise click.exceptions.Exit(CHANGES)


def _review(
    base: str | None, stack: str, charts: str | None, name: str | None, keep: bool, project: Path | None
) -> "Review":
    from berkelium_lab.project_copy import PROJECT
    from berkelium_lab.review.session import Question, review

    question = Question(base, stack, charts, name, keep, project.resolve() if project else PROJECT)
    return review(question, lambda line: click.echo(line, err=True))
