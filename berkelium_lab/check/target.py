"""Where a check is made: a lab of its own, a lab that runs, or a cluster that is only asked."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from berkelium_lab.api import Api, connect
from berkelium_lab.check.devices import PROGRAM
from berkelium_lab.errors import LabError
from berkelium_lab.interrupts import Interrupts
from berkelium_lab.lab import Lab, labs
from berkelium_lab.toolchain import ensure_tools

Report = Callable[[str], None]

PREFIX = "check-"
"""How the names of labs begin that a check starts for itself; the number of its process follows."""


@dataclass(frozen=True)
class Target:
    """An API server to ask. `program` evaluates selectors; without it nothing may be created there.

    `ephemeral`: everything ends with the check anyway.
    """

    api: Api
    where: str
    program: Path | None = None
    ephemeral: bool = False


@contextmanager
def own_lab(fleet: str | None, report: Report) -> Iterator[Target]:
    """A fresh lab with what the program brings to it; it is gone when the block ends, however it ends."""
    from berkelium_lab import fleet as fleets
    from berkelium_lab.check import stand

    chosen = stand.settings()
    declared = fleets.load(fleet or "berkelium")
    tools = ensure_tools(report)
    _remove_remains()
    lab = Lab(f"{PREFIX}{os.getpid()}-{secrets.token_hex(2)}")
    with Interrupts() as interrupts:
        try:
            report("starting a lab for this check")
            lab.up(fleet)
            api = connect(lab.kubeconfig)
            stand.set_up(api, declared, chosen)
            yield Target(api, "a lab of its own", tools.path(PROGRAM), ephemeral=True)
            api.close()
        finally:
            with interrupts.held():
                lab.down()


def _remove_remains() -> None:
    """Take down the labs of checks that were killed and could not do it themselves."""
    for name in labs():
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and owner.isdigit() and not psutil.pid_exists(int(owner)):
            Lab(name).down()


@contextmanager
def running_lab(name: str, report: Report) -> Iterator[Target]:
    """A lab that runs already and to which the program is applied. Raises `LabError`."""
    lab = Lab(name)
    lab.require_running()
    tools = ensure_tools(report)
    api = connect(lab.kubeconfig)
    if not api.list("resource.k8s.io/v1", "DeviceClass"):
        raise LabError(f"lab {name!r} has no device class; apply the program: berkelium lab deploy --name {name}")
    yield Target(api, f"lab {name}", tools.path(PROGRAM))
    api.close()


@contextmanager
def cluster(api: Api, context: str) -> Iterator[Target]:
    """A live cluster: dry runs only, nothing is ever created there."""
    yield Target(api, f"context {context}, by dry run")
