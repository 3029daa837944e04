"""`berkelium check`: will these manifests run, and if not, why."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from berkelium_infra.errors import UserError

if TYPE_CHECKING:
    from berkelium_lab.check.fix import Mended
    from berkelium_lab.check.target import Target

Result = TypeVar("Result")

COULD_NOT_WORK = 2
"""Exit code when the check itself could not work."""


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-...")
@click.option("--name", metavar="NAME", help="Ask this running lab instead of one of the command's own.")
@click.option("--context", metavar="NAME", help="Ask a cluster of your kubeconfig, by dry run only.")
@click.option("--fleet", metavar="FILE", help="The fleet of the command's own lab: a file, or berkelium or upstream.")
@click.option("-n", "--namespace", metavar="NAME", help="The namespace of objects that state none.")
@click.option("--crd", "definitions", multiple=True, metavar="FILE", help="Definitions of further kinds, for the lab.")
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--format", "style", type=click.Choice(["text", "github"]), default="text", help="github: annotations.")
@click.option("--fix", is_flag=True, help="Print the manifests with what can be mended mechanically; ask nobody.")
@click.option("--write", is_flag=True, help="With --fix: write the files instead of printing them.")
def check(
    paths: tuple[str, ...],
    name: str | None,
    context: str | None,
    fleet: str | None,
    namespace: str | None,
    definitions: tuple[str, ...],
    strict: bool,
    as_json: bool,
    style: str,
    fix: bool,
    write: bool,
) -> None:
    """Tell whether manifests will run: are they valid, do the policies admit them, do they get devices.

    A real API server and a real scheduler answer: those of a lab that this command starts and stops, of a running lab
    (--name), or, without the question for devices, of a live cluster (--context). The lab has the classes, policies
    and GPUs of the Berkelium cluster, all of them free.

    Exit code 0 all fine, 1 something will not run, 2 the check itself could not work.

    \b
    Examples:
      berkelium check job.yaml
      berkelium check manifests/ claims/gpu.yaml
      helm template my-release ./chart | berkelium check -
      berkelium check job.yaml --fix --write
      berkelium check manifests/ --context staging --format github
    """
    if write and not fix:
        raise click.UsageError("--write goes with --fix.")
    if name and context:
        raise click.UsageError("--name is a lab, --context a cluster: give one of the two.")
    if context and definitions:
        raise click.UsageError("--crd would create something, and --context never does.")
    if fleet and (name or context):
        raise click.UsageError("--fleet is for the command's own lab.")
    if fix:
        _or_stop(lambda: _fix(paths, write))
    else:
        target = _or_stop(lambda: _target(name, context, fleet))
        _or_stop(lambda: _check(paths, target, namespace, definitions, strict, as_json, style))


def _or_stop(work: Callable[[], Result]) -> Result:
    """The result of `work`; what keeps the check itself from working ends the command with its own exit code."""
    from urllib3.exceptions import HTTPError

    try:
        return work()
    except (UserError, TimeoutError) as error:
        problem = str(error)
    except HTTPError as error:
        problem = f"the API server cannot be reached: {error}"
    click.echo(f"Error: {problem}", err=True)
    raise click.exceptions.Exit(COULD_NOT_WORK)


def _progress(line: str) -> None:
    click.echo(line, err=True)


def _target(name: str | None, context: str | None, fleet: str | None) -> "AbstractContextManager[Target]":
    from berkelium_lab.check import target

    if context:
        from berkelium_cli.target import connect

        return target.cluster(connect("", context), context)
    return target.running_lab(name, _progress) if name else target.own_lab(fleet, _progress)


def _check(
    paths: tuple[str, ...],
    target: "AbstractContextManager[Target]",
    namespace: str | None,
    definitions: tuple[str, ...],
    strict: bool,
    as_json: bool,
    style: str,
) -> None:
    from berkelium_lab.check import output
    from berkelium_lab.check.run import Question
    from berkelium_lab.check.run import check as run

    given = sys.stdin.buffer.read() if "-" in paths else None
    report = run(Question(paths, given, namespace, definitions), target, _progress)
    if as_json:
        click.echo(output.as_json(report, strict))
    else:
        click.echo(output.github(report) if style == "github" else output.text(report))
    if code := report.exit_code(strict):
        raise click.exceptions.Exit(code)


def _fix(paths: tuple[str, ...], write: bool) -> None:
    from berkelium_lab.check import fix, reading

    for path in paths:
        if path == reading.STANDARD_INPUT:
            mended = fix.mend(sys.stdin.buffer.read().decode("utf-8", "replace"), "<stdin>")
            _say(mended)
            click.echo(mended.text, nl=False)
            continue
        for file in reading.files(Path(path)):
            mended = fix.mend_file(file)
            _say(mended)
            if not write:
                click.echo(mended.text, nl=False)
            elif mended.changes:
                file.write_text(mended.text, encoding="utf-8")


def _say(mended: "Mended") -> None:
    for line in (*mended.changes, *mended.left):
        _progress(line)
