"""`berkelium policies`: the admission policies as YAML, explained, and what they would refuse today."""

import json
from pathlib import Path

import click

from berkelium_cli.target import connect, target_options
from berkelium_infra.errors import UserError

MODES = ("deny", "warn", "audit", "off")
VIOLATIONS, NO_LOOK = 1, 2


def _selected(names: tuple[str, ...]) -> list[str]:
    from berkelium_infra.policies import policy_names

    known = policy_names()
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"no policy is called {', '.join(unknown)}; there are {', '.join(known)}.")
    return list(names) or known


def _manifests(names: tuple[str, ...], mode: str, exempt: tuple[str, ...], bare_pods: str) -> list[dict]:
    from berkelium_infra.policies import load
    from berkelium_infra.policy_source import bare_pods as variants
    from berkelium_infra.policy_source.compose import exempt_namespaces

    found: list[dict] = []
    for name in _selected(names):
        policy, binding = load(name, mode, [*exempt_namespaces(), *exempt])
        found += [policy, *([binding] if binding else [])]
        if name == "no-idle-gpu" and binding:
            found += variants.variant(policy, binding, bare_pods)
    return found


def _print_yaml(names: tuple[str, ...], mode: str, exempt: tuple[str, ...], bare_pods: str) -> None:
    from berkelium_infra.policy_source.compose import dump

    click.echo("---\n".join(dump(manifest) for manifest in _manifests(names, mode, exempt, bare_pods)), nl=False)


@click.group(invoke_without_command=True)
@click.option("--yaml", "as_yaml", is_flag=True, help="All policies as YAML, the same as `policies yaml`.")
@click.pass_context
def policies(ctx: click.Context, as_yaml: bool) -> None:
    """The admission policies: as YAML, explained, and what they would refuse.

    \b
    Examples:
      berkelium policies yaml | kubectl apply -f -
      berkelium policies yaml no-idle-gpu --mode warn --exempt gpu-operator
      berkelium policies audit --context my-cluster
      berkelium policies show no-idle-gpu
    """
    if ctx.invoked_subcommand:
        return
    if as_yaml:
        _print_yaml((), "deny", (), "allow")
    else:
        click.echo(ctx.get_help())


@policies.command("yaml")
@click.argument("names", nargs=-1)
@click.option("--mode", type=click.Choice(MODES), default="deny", show_default=True, help="What happens to offenders.")
@click.option(
    "--exempt", multiple=True, metavar="NS", help="A namespace to leave alone, beside the system's. Repeatable."
)
@click.option(
    "--bare-pods",
    type=click.Choice(["allow", "warn", "deny"]),
    default="allow",
    show_default=True,
    help="Idle GPUs in pods without a controller.",
)
def yaml_(names: tuple[str, ...], mode: str, exempt: tuple[str, ...], bare_pods: str) -> None:
    """Policies and bindings as plain YAML for `kubectl apply -f -`; all, or those that are NAMED.

    \b
    Examples:
      berkelium policies yaml | kubectl apply -f -
      berkelium policies yaml no-idle-gpu --mode warn --exempt gpu-operator
    """
    _print_yaml(names, mode, exempt, bare_pods)


@policies.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_(as_json: bool) -> None:
    """The policies, each with its rule in one sentence.

    \b
    Examples:
      berkelium policies list
    """
    rules = {name: _readme(name).split("\n\n")[1].replace("\n", " ") for name in _selected(())}
    if as_json:
        click.echo(json.dumps([{"name": name, "rule": rule} for name, rule in rules.items()], indent=2))
        return
    for name, rule in rules.items():
        click.echo(f"{name}\n  {rule}")


@policies.command()
@click.argument("name")
def show(name: str) -> None:
    """Explain a policy: its rule, the reason, what it refuses, what it allows, and what it does not cover.

    \b
    Examples:
      berkelium policies show no-idle-gpu
    """
    click.echo(_readme(_selected((name,))[0]), nl=False)


policies.add_command(show, "explain")


def _readme(name: str) -> str:
    from berkelium_infra.policies import PROJECT

    return (PROJECT / "policies" / name / "README.md").read_text(encoding="utf-8")


@policies.command()
@click.option("--write", is_flag=True, help="Write the policies instead of comparing them.")
def compose(write: bool) -> None:
    """Compare each policy.yaml with what its sources compose to, or write it. Exits 1 when one is not in step.

    \b
    Examples:
      berkelium policies compose --write
    """
    from berkelium_infra.policy_source import compose as source

    stale = []
    for name in source.names():
        path, text = source.POLICIES / name / "policy.yaml", source.text(name)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if write:
            path.write_text(text, encoding="utf-8")
            click.echo(f"Wrote {_relative(path)}.", err=True)
    if stale and not write:
        raise UserError(
            f"{', '.join(stale)} is not what its sources compose to; run `berkelium policies compose --write`."
        )


def _relative(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


@policies.command()
@target_options
@click.option("--policy", "names", multiple=True, metavar="NAME", help="Only this policy. Repeatable.")
@click.option(
    "--exempt", multiple=True, metavar="NS", help="A namespace to leave out, beside the system's. Repeatable."
)
@click.option("--judge", metavar="LAB", help="Let this lab's API server judge, so that nothing is made in the cluster.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def audit(
    ctx: click.Context,
    name: str,
    context: str | None,
    names: tuple[str, ...],
    exempt: tuple[str, ...],
    judge: str | None,
    as_json: bool,
) -> None:
    """List what runs today and would be refused, by owner, before a policy is switched on.

    Copies of the policies judge copies of the workloads by server-side dry run, in empty namespaces made for it and
    removed at the end; the cluster's own workloads and policies are not touched. Exit codes: 0 nothing would be
    refused, 1 something would, 2 it could not be told.

    \b
    Examples:
      berkelium policies audit --context my-cluster --exempt gpu-operator
      berkelium policies audit --context my-cluster --judge berkelium
      berkelium policies audit --json | jq '.violations[].owner'
    """
    from kubernetes.config import ConfigException

    from berkelium_infra.policies import load
    from berkelium_infra.policy_source.compose import exempt_namespaces
    from berkelium_lab.policy_audit import LookError, audit_cluster

    try:
        cluster = connect(name, context)
        manifests = {each: load(each, "deny", [])[0] for each in _selected(names)}
        court = connect(judge, None) if judge else cluster
        report = audit_cluster(cluster, court, manifests, {*exempt_namespaces(), *exempt})
    except (LookError, UserError, ConfigException) as error:
        click.echo(f"Error: {error}", err=True)
        ctx.exit(NO_LOOK)
    click.echo(json.dumps(report.as_json(), indent=2) if as_json else report.as_text())
    ctx.exit(VIOLATIONS if report.violations else NO_LOOK if report.unjudged else 0)
