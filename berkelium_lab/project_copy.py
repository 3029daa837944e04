"""A copy of the Pulumi project for one lab, so that tracked files never change: the engine writes into stack files."""

import shutil
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, YAMLError

import berkelium_infra
from berkelium_lab.errors import LabError

PROJECT = Path(berkelium_infra.__file__).resolve().parent.parent
"""The project that this code belongs to."""

PARTS = ("Pulumi.yaml", "__main__.py", "berkelium_infra", "values", "policies", "berkelium_lab/charts")
"""Everything that the program reads, beside the stack files."""

GIVEN_CHARTS = "charts-given"
"""Where a chart directory of the caller's is put in the copy: a constant, since the path is an input of the release."""

_SALT = "encryptionsalt"
_IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def copy_project(project: Path, to: Path) -> None:
    """Bring the copy in `to` up to date with `project`; stack files in it are left alone (see `write_stack`).

    Raises `LabError` when `project` is no checkout of this project.
    """
    if not (project / "Pulumi.yaml").is_file():
        raise LabError(f"{project} has no Pulumi.yaml; the lab applies the program of a checkout of berkelium-infra")
    to.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source, target = project / part, to / part
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_IGNORED)
        elif source.is_file():
            shutil.copy2(source, target)


def project_name(project: Path) -> str:
    """The name in Pulumi.yaml, which is the prefix of the stack's settings."""
    return str(_load(project / "Pulumi.yaml")["name"])


def write_stack(project: Path, to: Path, stack: str, overrides: Mapping[str, object]) -> None:
    """Write the stack file of the copy: the project's own with `overrides` (keys without prefix) merged over it.

    The salt that the engine wrote into the copy is kept, since the secrets in the stack's state need it.
    Raises `LabError` when the project has no such stack file.
    """
    source, target = (directory / f"Pulumi.{stack}.yaml" for directory in (project, to))
    if not source.is_file():
        raise LabError(f"there is no {source}")
    content, prefix = _load(source), project_name(project)
    config = content.setdefault("config", {})
    for key, value in overrides.items():
        _merge(config, f"{prefix}:{key}", value)
    if target.is_file() and _SALT in (earlier := _load(target)):
        content[_SALT] = earlier[_SALT]
    text = StringIO()
    YAML().dump(content, text)
    target.write_text(text.getvalue(), encoding="utf-8")


def take_charts(charts: str, to: Path) -> str:
    """The value of `charts.source` for charts that the caller names; a directory is copied beside the program."""
    if charts == "official" or charts.startswith("oci://"):
        return charts
    source = Path(charts).expanduser()
    if not source.is_dir():
        raise LabError(f"{charts} is no directory; give one with the charts in it, official, or oci://…")
    target = to / GIVEN_CHARTS
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=_IGNORED)
    return GIVEN_CHARTS


def _load(path: Path) -> Any:
    # YAML 1.2 as the engine reads it, in which `off` is a word and no boolean.
    try:
        return YAML().load(path.read_text(encoding="utf-8")) or {}
    except YAMLError as error:
        raise LabError(f"{path} is no YAML: {error}") from None


def _merge(into: Any, key: str, value: object) -> None:
    if isinstance(value, Mapping) and isinstance(into.get(key), Mapping):
        for inner, inner_value in value.items():
            _merge(into[key], inner, inner_value)
    else:
        into[key] = value
