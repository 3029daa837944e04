"""Which cluster a command works on: a lab by name, or a context of the user's kubeconfig."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from berkelium_infra.errors import UserError
from berkelium_lab.paths import DEFAULT_LAB

if TYPE_CHECKING:
    from berkelium_lab.api import Api


def target_options(command: Callable) -> Callable:
    """Adds `--name` and `--context`; the command receives `name` and `context`."""
    command = click.option("--context", help="A context of your kubeconfig, instead of a lab.")(command)
    return click.option("--name", default=DEFAULT_LAB, show_default=True, help="The lab's name.")(command)


def connect(name: str, context: str | None) -> "Api":
    """A connection to the lab of that name or, with a context, to the cluster that it names.

    Raises `UserError` when there is no such lab, kubeconfig or context.
    """
    from kubernetes.config import ConfigException

    from berkelium_lab import api

    if context is None:
        from berkelium_lab.lab import Lab

        return api.connect(Lab(name).kubeconfig)
    kubeconfig = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    try:
        return api.connect(kubeconfig, context)
    except ConfigException as error:
        raise UserError(
            f"the context {context!r} of {kubeconfig} cannot be used: {error} "
            "(`kubectl config get-contexts` lists those that exist; $KUBECONFIG names another file)"
        ) from None
