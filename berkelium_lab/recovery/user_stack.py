"""The user's own stacks, by the `pulumi` command line on the PATH, in the checkout's directory."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berkelium_infra.errors import UserError
from berkelium_lab.project_copy import PROJECT, project_name

if TYPE_CHECKING:
    from pulumi import automation


_EOF = "failed to load checkpoint: EOF"
_HALF_WRITTEN = (
    ". With a state in a directory (file://…) a killed run can leave an empty .attrs file beside it; the state itself "
    "is whole. Delete it (find DIRECTORY/.pulumi -name '*.attrs' -empty -delete), and add ?metadata=skip to the "
    "backend's address, so that none is written"
)


class StackError(UserError):
    """The stack cannot be used; the text is what `pulumi` said."""


def select(stack: str, project: Path = PROJECT) -> "automation.Stack":
    """The stack of that name, which must exist. Raises `StackError`."""
    if shutil.which("pulumi") is None:
        raise StackError("there is no pulumi on the PATH; install the Pulumi command line")
    from pulumi import automation

    try:
        return automation.select_stack(stack, work_dir=str(project))
    except (automation.errors.CommandError, automation.errors.StackNotFoundError) as error:
        text = said(error)
        raise StackError(f"stack {stack!r} cannot be used: {text}{_HALF_WRITTEN if _EOF in text else ''}") from None


def context(stack: "automation.Stack", project: Path = PROJECT) -> str:
    """The kube context in the stack's configuration, empty when there is none."""
    found = stack.get_all_config().get(f"{project_name(project)}:context")
    return found.value if found else ""


def deployment(stack: "automation.Stack") -> dict[str, Any]:
    """The stack's state, secrets encrypted."""
    exported = stack.export_stack().deployment or {}
    return exported if isinstance(exported, dict) else json.loads(json.dumps(exported))


def said(error: Exception) -> str:
    """The error of the command line in one line."""
    _, _, stderr = str(error).partition("\n stderr: ")
    return " ".join((stderr or str(error)).removeprefix("error: ").split())
