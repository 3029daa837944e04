"""`berkelium doctor`: what is wrong with a cluster, and what to do about it."""

from typing import TYPE_CHECKING

import click

from berkelium_cli.target import connect, target_options

if TYPE_CHECKING:
    from berkelium_infra.settings import PolicyMode
    from berkelium_lab.doctor import Diagnosis, Expectation, Finding

SICK, COULD_NOT_LOOK = 1, 2

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


class CouldNotLook(click.ClickException):
    """Nothing could be examined."""

    exit_code = COULD_NOT_LOOK


@click.command()
@target_options
@click.option("--stack", metavar="STACK", help="Compare with the configuration of this stack (Pulumi.STACK.yaml).")
@click.option("--mode", "modes", multiple=True, metavar="POLICY=MODE", help="The mode that a policy is meant to have.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Leave out findings that are only worth knowing.")
def doctor(
    name: str, context: str | None, stack: str | None, modes: tuple[str, ...], as_json: bool, quiet: bool
) -> None:
    """Examine a cluster or a lab: what is wrong, by what evidence, and what to do.

    Nothing is written; some examinations ask by dry run. A lab is compared with what was last deployed to it, a
    cluster with the program's defaults unless --stack is given.

    Exit code 0 when healthy (warnings do not count), 1 with findings of severity error, 2 when it could not look: the
    cluster does not answer, or permissions for an examination are missing.

    \b
    Examples:
      berkelium doctor
      berkelium doctor --context berkelium-prod --stack prod
      berkelium doctor --context berkelium-prod --stack prod --mode no-idle-gpu=warn
      berkelium doctor --json --quiet
    """
    meant = _modes(modes)
    diagnosis = _examine(name, context, stack, meant)
    shown = [finding for finding in diagnosis.findings if not (quiet and finding.severity == "info")]
    if as_json:
        click.echo(diagnosis.model_copy(update={"findings": tuple(shown)}).model_dump_json(indent=2))
    else:
        _show(diagnosis, shown)
    if diagnosis.sick:
        raise click.exceptions.Exit(SICK)
    if diagnosis.blind:
        raise click.exceptions.Exit(COULD_NOT_LOOK)


def _examine(name: str, context: str | None, stack: str | None, modes: "dict[str, PolicyMode]") -> "Diagnosis":
    from kubernetes.config import ConfigException

    from berkelium_infra.errors import UserError
    from berkelium_lab.doctor import diagnose

    try:
        return diagnose(connect(name, context), _expectation(name, context, stack, modes))
    except UserError as error:
        raise CouldNotLook(str(error)) from None
    except (ConfigException, OSError) as error:
        raise CouldNotLook(f"the kubeconfig cannot be used: {' '.join(str(error).split())}") from None


def _expectation(name: str, context: str | None, stack: str | None, modes: "dict[str, PolicyMode]") -> "Expectation":
    from berkelium_lab.doctor import from_defaults, from_stack

    if stack:
        return from_stack(stack, modes)
    if context is None:
        from berkelium_lab.lab import Lab
        from berkelium_lab.workspace import STACK

        applied = Lab(name).directory / "project"
        if (applied / f"Pulumi.{STACK}.yaml").is_file():
            return from_stack(STACK, modes, applied)
    return from_defaults(modes)


def _modes(assignments: tuple[str, ...]) -> "dict[str, PolicyMode]":
    from berkelium_infra.settings import PolicyMode

    modes = {}
    for assignment in assignments:
        policy, _, mode = assignment.partition("=")
        if not policy or mode not in list(PolicyMode):
            raise click.UsageError(f"--mode {assignment}: write POLICY=MODE; the modes are {', '.join(PolicyMode)}.")
        modes[policy] = PolicyMode(mode)
    return modes


def _show(diagnosis: "Diagnosis", shown: "list[Finding]") -> None:
    from berkelium_lab.doctor import Severity

    for finding in shown:
        severity = click.style(f"{finding.severity:7}", fg=_COLOURS[finding.severity], bold=True)
        click.echo(f"{severity}  {finding.id}  {finding.subject}")
        click.echo(f"    {finding.summary}")
        for line in finding.evidence:
            click.echo(f"      {line}")
        if finding.remedy:
            click.echo(f"    -> {finding.remedy}")
    if diagnosis.sick:
        verdict = "not healthy"
    else:
        verdict = "perhaps healthy: not everything could be examined" if diagnosis.blind else "healthy"
    counts = ", ".join(f"{len(diagnosis.of(severity))} {severity}" for severity in Severity)
    click.echo(f"{diagnosis.server} is {verdict} ({counts}), compared with {diagnosis.compared_with}", err=True)
