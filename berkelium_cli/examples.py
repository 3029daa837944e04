"""`berkelium examples`: run the documented manifests and show which devices each pod was given."""

import json

import click

from berkelium_cli.target import connect, target_options


@click.group()
def examples() -> None:
    """The documented manifests, run on a lab or on a cluster of yours.

    \b
    Examples:
      berkelium examples list
      berkelium examples run                     on the lab that `berkelium lab up` started
      berkelium examples run --context staging   on a real cluster
      berkelium examples delete                  remove what `run` applied
    """


@examples.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """The manifests, their pods, and what each must be given."""
    from berkelium_lab import examples as runner

    loaded = runner.load()
    if as_json:
        click.echo(loaded.model_dump_json(indent=2))
        return
    for title, group in (("documented", loaded.documented), ("further", loaded.further)):
        for example in group:
            for name, expected in example.pods.items() or {"(no pod)": None}.items():
                wants = (
                    f"{expected.devices} × {expected.profile or expected.model} by {expected.route}" if expected else ""
                )
                click.echo(f"{title:10}  examples/{example.manifest:48}  {name:28}  {wants}".rstrip())


@examples.command("run")
@target_options
@click.option("--all", "everything", is_flag=True, help="The further examples as well.")
@click.option(
    "--timeout", default=60, show_default=True, type=click.IntRange(min=1), help="Seconds until all pods run."
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def run_command(name: str, context: str | None, everything: bool, timeout: int, as_json: bool) -> None:
    """Apply the documented manifests, wait until every pod runs, and check what each was given.

    Exit code 0 if every pod is where it must be, else 1, with the scheduler's own message.
    """
    from berkelium_lab import examples as runner

    loaded = runner.load()
    chosen = [*loaded.documented, *(loaded.further if everything else ())]
    outcomes = runner.run(connect(name, context), chosen, timeout, lambda text: click.echo(text, err=True))
    if as_json:
        click.echo(json.dumps([_record(outcome) for outcome in outcomes], indent=2))
    else:
        _print_table(outcomes)
    failed = [outcome for outcome in outcomes if outcome.faults]
    for outcome in failed:
        for fault in outcome.faults:
            click.echo(f"{outcome.placement.pod} (examples/{outcome.manifest}): {fault}", err=True)
    if failed:
        raise click.exceptions.Exit(1)


@examples.command("delete")
@target_options
def delete_command(name: str, context: str | None) -> None:
    """Delete what `run` applied."""
    from berkelium_lab import examples as runner

    loaded = runner.load()
    runner.delete(connect(name, context), [*loaded.documented, *loaded.further])


def _record(outcome) -> dict:
    found = outcome.placement
    return {
        "manifest": f"examples/{outcome.manifest}",
        "pod": found.pod,
        "phase": found.phase,
        "node": found.node,
        "models": sorted(model.key if model else "unknown" for model in found.models),
        "devices": [device.name for device in found.devices],
        "requested": list(found.requests),
        "faults": list(outcome.faults),
    }


def _print_table(outcomes) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("Pod", "Node", "GPU model", "Devices", "Requested by", "")
    for outcome in outcomes:
        found = outcome.placement
        table.add_row(
            found.pod,
            found.node or "-",
            ", ".join(sorted(model.title if model else "unknown" for model in found.models)),
            "\n".join(device.name for device in found.devices),
            "\n".join(found.requests),
            "[red]wrong[/]" if outcome.faults else "[green]ok[/]",
        )
    Console(width=None if Console().is_terminal else 140).print(table)
