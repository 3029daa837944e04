"""The recovery of the user's own stack."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berkelium_infra.errors import UserError
from berkelium_infra.live import Unreachable, connect
from berkelium_lab import api
from berkelium_lab.recovery import NotRecoverable, reconcile, user_stack
from berkelium_lab.recovery.steps import ACCEPT

if TYPE_CHECKING:
    from pulumi import automation

Report = Callable[[str], None]

_LOCKED = "is currently locked"


def recover(stack: str, report: Report, *, break_lock: bool, rebuilt: bool) -> None:
    """Recover the stack of that name and apply it, by `pulumi` on the PATH.

    Raises `UserError`: the stack or its cluster cannot be used, the cluster is another one (unless `rebuilt`), another
    run holds the lock (unless `break_lock`), or the engine fails.
    """
    from pulumi import automation

    chosen = user_stack.select(stack)
    cluster = _cluster(user_stack.context(chosen))
    try:
        if break_lock:
            _cancel(chosen)
        environment = reconcile(chosen, cluster, report, locked=False, rebuilt=rebuilt)
        # Handed to the program by the command line, which runs it.
        chosen.workspace.env_vars = {**chosen.workspace.env_vars, **environment}
        refresh: dict[str, Any] = {"refresh": True, "run_program": True} if ACCEPT in environment else {}
        chosen.up(on_output=report, **refresh)
    except NotRecoverable as error:
        raise UserError(str(error)) from None
    except automation.errors.CommandError as error:
        text = user_stack.said(error)
        if _LOCKED in text:
            text = f"{text} When that run is dead: berkelium recover --stack {stack} --break-lock"
        raise UserError(text) from None


def _cluster(context: str) -> api.Api:
    live = connect(context)
    if live is None:
        raise Unreachable("there is no kubeconfig: set KUBECONFIG, or write ~/.kube/config")
    # Asked once here, so that an unreachable cluster is one line and nothing has been begun.
    live.namespace_uid("kube-system")
    files = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    return api.connect(Path(files), context or None)


def _cancel(stack: "automation.Stack") -> None:
    from pulumi import automation

    try:
        stack.cancel()
    except automation.errors.CommandError as error:
        # With nothing to cancel there is nothing to do.
        if "no update" not in str(error) and "not currently" not in str(error):
            raise
