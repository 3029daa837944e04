"""The two states of the project as a lab applies them, each in a directory of its own.

Copies also of the work tree: it may be edited while the review runs, and a stack with secrets needs another stack file.
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, YAMLError

from berkelium_lab import stack_files
from berkelium_lab.project_copy import copy_project, project_name
from berkelium_lab.review.errors import ReviewError
from berkelium_lab.workspace import STACK

EXAMPLES = "examples"

_LAB_CHARTS = "berkelium_lab/charts"
_KEYS_OF_SECRETS = ("encryptionsalt", "encryptedkey", "secretsprovider")


@dataclass(frozen=True)
class Tree:
    """A state of the project. `overrides` and `secrets` are as `workspace.deploy` takes them."""

    directory: Path
    stack: str
    overrides: Mapping[str, object] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


def copy(project: Path, to: Path, stack: str) -> None:
    """Copy what a review needs of `project`: the program, the stack's file, the examples."""
    copy_project(project, to)
    if (project / EXAMPLES).is_dir():
        shutil.copytree(project / EXAMPLES, to / EXAMPLES)
    file = f"Pulumi.{stack}.yaml"
    if not (project / file).is_file():
        known = ", ".join(stack_files.stacks(project)) or "none"
        raise ReviewError(f"there is no {project / file}; known stacks: {known}")
    shutil.copy2(project / file, to / file)


def prepare(directory: Path, stack: str, context: str, charts: str | None) -> Tree:
    """The tree in `directory` with the stack's configuration fitted to the lab whose kubeconfig context is `context`.

    The stack `lab` is made for it. Of any other stack the connection is replaced, the charts unless `charts` names
    some, and its secrets, which only its own key opens.
    """
    path = directory / f"Pulumi.{stack}.yaml"
    content = _load(path)
    if stack == STACK:
        return Tree(directory, stack)
    prefix = f"{project_name(directory)}:"
    config = content.get("config") or {}
    secrets = {f"{key}{place}": value for key, entry in config.items() for place, value in _hide(config, key, entry)}
    for key in _KEYS_OF_SECRETS:
        content.pop(key, None)
    text = StringIO()
    YAML().dump(content, text)
    path.write_text(text.getvalue(), encoding="utf-8")
    overrides: dict[str, object] = {"context": context}
    if charts is None:
        overrides["charts"] = _lab_charts(config.get(f"{prefix}charts"))
    return Tree(directory, stack, overrides, secrets)


def adjustments(stack: str, charts: str | None) -> list[str]:
    """What of a stack's configuration is replaced, for the reader of the review."""
    if stack == STACK:
        return []
    replaced = ["the connection is the lab's", "secrets are placeholders"]
    if charts is None:
        replaced.append("the charts are the lab's stand-ins")
    return [f"stack {stack}: {'; '.join(replaced)}"]


def _lab_charts(given: object) -> dict[str, object]:
    """An override that sends every chart to the lab's stand-ins, also those with a source of their own."""
    override: dict[str, object] = {"source": _LAB_CHARTS}
    if isinstance(given, Mapping):
        for name, chart in given.items():
            if isinstance(chart, Mapping) and "source" in chart:
                override[str(name)] = {"source": _LAB_CHARTS}
    return override


def _hide(holder: MutableMapping[Any, Any] | list[Any], key: Any, entry: object) -> Iterator[tuple[str, str]]:
    """Replace every secret below `holder[key]` by a placeholder, and yield their places in it with the placeholders.

    The placeholder changes when the secret does, so that this shows; nothing of the secret can be told from it.
    """
    if stack_files.is_encrypted(entry):
        placeholder = f"placeholder-{hashlib.sha256(str(entry['secure']).encode()).hexdigest()[:8]}"
        holder[key] = placeholder
        yield "", placeholder
    elif isinstance(entry, MutableMapping):
        for name in list(entry):
            for place, value in _hide(entry, name, entry[name]):
                yield f".{name}{place}", value
    elif isinstance(entry, list):
        for index, element in enumerate(entry):
            for place, value in _hide(entry, index, element):
                yield f"[{index}]{place}", value


def _load(path: Path) -> Any:
    try:
        return YAML().load(path.read_text(encoding="utf-8")) or {}
    except YAMLError as error:
        raise ReviewError(f"{path.name} is no YAML: {error}") from None
