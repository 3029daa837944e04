"""The `berkelium` command: it only finds the subcommand and turns errors into one message and an exit code."""

import importlib
import sys

import click

from berkelium_infra.errors import UserError

SUBCOMMANDS = {
    "adopt": "Take over what a cluster has already, without deleting or recreating it.",
    "catalog": "GPU models, device classes, MIG profiles and the claims derived from them.",
    "check": "Will these manifests run? Asked of a real API server and a real scheduler.",
    "doctor": "What is wrong with a cluster or a lab, and what to do about it.",
    "config": "What a stack's file may say, and whether it says it right.",
    "drift": "What was changed by hand since the stack was applied.",
    "examples": "Run the documented manifests and show which devices they are given.",
    "lab": "A real Kubernetes control plane with simulated GPUs on this machine.",
    "policies": "The admission policies: as YAML, explained, and what they would refuse.",
    "preview": "What a change does to the cluster, tried on a throw-away lab.",
    "recover": "Mend what an interrupted run left behind, and apply the stack.",
    "tools": "The programs that the laboratory runs: build, list, clean up.",
}


class LazyGroup(click.Group):
    """Imports a subcommand's module only when it is asked for, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        return getattr(importlib.import_module(f"berkelium_cli.{cmd_name}"), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(SUBCOMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="berkelium-infra", prog_name="berkelium")
def cli() -> None:
    """The Berkelium GPU cluster: its catalog, its policies, and a laboratory that runs it all.

    \b
    Examples:
      berkelium lab up                      start a control plane with simulated GPUs
      berkelium lab deploy                  apply the Pulumi program to it
      berkelium examples run                run every documented manifest there
      berkelium catalog mig                 which MIG profiles exist on which model
    """


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted; commands add their own."""
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except UserError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except Exception as error:
        if not _unreachable(error):
            raise
        click.echo(f"Error: the cluster cannot be reached: {error}", err=True)
        sys.exit(1)


def _unreachable(error: Exception) -> bool:
    """Whether the API server did not answer; asked without importing the client that most commands do not need."""
    client = sys.modules.get("urllib3.exceptions")
    return client is not None and isinstance(error, client.HTTPError)
