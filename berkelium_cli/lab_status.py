"""A lab's status as a table for people."""

from typing import TYPE_CHECKING

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from berkelium_lab.status import ComponentStatus, LabStatus


def show(status: "LabStatus") -> None:
    """Print the status to stdout: the lab, its components, and the last lines of those that do not serve."""
    click.echo(f"lab {status.name}: {status.condition}")
    if status.condition == "absent":
        click.echo(f"start it with `berkelium lab up --name {status.name}`")
        return
    click.echo(f"API server  {status.server or 'none yet'}")
    click.echo(f"kubeconfig  {status.kubeconfig}")
    nodes = f"{status.nodes_ready} of {status.nodes} nodes ready" if status.nodes else "nodes unknown"
    click.echo(f"fleet       {status.fleet}: {nodes}")
    click.echo(f"memory      {status.memory_mib} MiB")
    Console(soft_wrap=True).print(_table(status.components))
    for component in status.components:
        if component.complaint:
            _explain(component)
    if status.condition != "running":
        click.echo(f"\n`berkelium lab up --name {status.name}` starts what does not run; the data is kept")


def _table(components: "list[ComponentStatus]") -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("component", "state", "pid", "port", "MiB"):
        table.add_column(title, justify="right" if title in ("pid", "port", "MiB") else "left")
    for component in components:
        state = "serves" if component.serves else "does not serve" if component.alive else "not running"
        numbers = (component.pid, component.port, component.memory_mib or None)
        table.add_row(component.name, escape(state), *("" if number is None else str(number) for number in numbers))
    return table


def _explain(component: "ComponentStatus") -> None:
    click.echo(f"{component.name}: {component.complaint}")
    click.echo(f"  last lines of {component.log}:")
    for line in component.last_lines or ["(none)"]:
        click.echo(f"    {line}")
