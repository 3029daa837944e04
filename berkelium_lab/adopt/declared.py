"""The objects that a stack declares, as its program declares them."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berkelium_infra.errors import UserError
from berkelium_infra.settings.adoption import RELEASE, Identity, identify
from berkelium_lab import stack_files

_SECONDS = 120


class AdoptError(UserError):
    """What exists cannot be compared with what is declared; the text says why."""


@dataclass(frozen=True)
class Declared:
    """An object of the stack; `inputs` is its manifest or, for a Helm release, chart, version, values and so on."""

    identity: Identity
    api_version: str
    kind: str
    inputs: dict[str, Any]

    @property
    def is_release(self) -> bool:
        """Whether it is a Helm release, which is no object of its own in the cluster."""
        return self.kind == "Release"

    @property
    def subject(self) -> str:
        """How messages name it."""
        return f"{self.kind} {self.identity.id}"


def declared(project: Path, stack: str, stack_file: Path | None = None) -> list[Declared]:
    """Everything adoptable that the program in `project` declares for a stack, in the order of its declaration.

    `stack_file` takes the place of the project's own Pulumi.<stack>.yaml. Raises `AdoptError` with the program's own
    message when its configuration has faults.
    """
    request = {"project": str(project), "stack": stack, **_config(project, stack, stack_file)}
    process = subprocess.run(
        # -P: the working directory is not searched for modules.
        [sys.executable, "-P", "-m", "berkelium_lab.adopt.recorder"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=project,
        timeout=_SECONDS,
    )
    if process.returncode:
        raise AdoptError(_last_words(process.stderr) or "the program ended without a word")
    found = []
    for resource in json.loads(process.stdout):
        kind, inputs = resource["type"], resource["inputs"]
        if identity := identify(kind, inputs):
            found.append(_declared(kind, identity, inputs))
    return found


def _declared(kind: str, identity: Identity, inputs: dict[str, Any]) -> Declared:
    _, group, name = kind.split(":")
    api_version = group.removeprefix("core/")
    manifest = inputs if kind == RELEASE else {**inputs, "apiVersion": api_version, "kind": name}
    return Declared(identity, api_version, name, manifest)


def _config(project: Path, stack: str, stack_file: Path | None) -> dict[str, Any]:
    """The configuration as the engine hands it over, all as text, and the keys of what is secret in it."""
    found = stack_files.read(project, stack, stack_file)
    config = {key if ":" in key else f"{found.prefix}{key}": _text(value) for key, value in found.values.items()}
    return {"config": config, "secret": [f"{found.prefix}{key}" for key in found.secret]}


def _text(value: object) -> str:
    if isinstance(value, Mapping | list | bool):
        return json.dumps(value)
    return str(value)


def _last_words(text: str) -> str:
    """What a failed program wrote; of a traceback the last line."""
    text = text.strip()
    return text.splitlines()[-1] if "Traceback" in text else text
