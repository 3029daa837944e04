"""`berkelium tools`: the programs of the lab, built from their Go modules."""

import click

from berkelium_lab import toolchain


@click.group(
    epilog="""\b
Examples:
  berkelium tools build            build what is missing (20 minutes from nothing on 2 cores)
  berkelium tools status --json    what is built, which versions, where
  berkelium tools path etcd        the path of one program
  berkelium tools clean            remove builds of earlier versions
"""
)
def tools() -> None:
    """Build and find the programs that the lab runs.

    They are kept in the user's cache directory and built again only when their directory in tools/ changes.
    BERKELIUM_TOOLS=DIR takes ready binaries from DIR instead.
    """


@tools.command(epilog="\b\nExamples:\n  berkelium tools build\n")
def build() -> None:
    """Build the tools that are missing, and print the directory that holds all of them."""
    built = toolchain.ensure_tools(report=lambda line: click.echo(line, err=True))
    click.echo(built.directory)


@tools.command(epilog="\b\nExamples:\n  berkelium tools path\n  berkelium tools path kube-apiserver\n")
@click.argument("name", required=False, type=click.Choice(toolchain.TOOLS), metavar="[TOOL]")
def path(name: str | None) -> None:
    """Print the directory of the tools, or the path of TOOL. Nothing is built."""
    found = toolchain.find_tools()
    click.echo(found.path(name) if name else found.directory)


@tools.command(epilog="\b\nExamples:\n  berkelium tools status\n  berkelium tools status --json\n")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Show each tool with its version and whether it is built."""
    found = toolchain.status()
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    width = max(len(tool.name) for tool in found.tools)
    for tool in found.tools:
        state = f"built, {tool.size_mib} MiB" if tool.built else "not built"
        click.echo(f"{tool.name:{width}}  {tool.version:10}  {state}")


@tools.command(
    epilog="""\b
Examples:
  berkelium tools clean
  berkelium tools clean --all --go-caches
"""
)
@click.option("--all", "everything", is_flag=True, help="Remove the builds of the present versions too.")
@click.option("--go-caches", is_flag=True, help="Empty Go's build and module caches too; all Go projects share them.")
def clean(everything: bool, go_caches: bool) -> None:
    """Remove builds of earlier versions of the tools."""
    freed = toolchain.clean(everything=everything)
    click.echo(f"{freed >> 20} MiB freed in the cache directory.", err=True)
    if go_caches:
        toolchain.clean_caches()
        click.echo("Go's build and module caches are empty.", err=True)
