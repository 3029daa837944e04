"""The stack files of a checkout, read as the engine reads them, but without the key to their secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from ruamel.yaml import YAML, YAMLError

from berkelium_infra.errors import UserError
from berkelium_infra.settings import Settings, parse

ENCRYPTED = "(encrypted)"
"""Stands for every encrypted value."""

_OF_THE_PROVIDER = "kubernetes:"
"""Settings of Pulumi's default provider, which the program refuses."""


class StackFileError(UserError):
    """There is no such file, it cannot be read, or it has a form that is not edited by machine."""


@dataclass(frozen=True)
class Entries:
    """The configuration of a stack: the defaults of Pulumi.yaml, then the stack's own.

    `values` are by name, without the project's prefix, as parsed YAML; `secret` are the names of those with something
    encrypted in them, for which `ENCRYPTED` stands. `prefix` ends with its colon.
    """

    stack: str
    prefix: str
    values: Mapping[str, object]
    secret: frozenset[str]

    def settings(self, project: Path) -> Settings:
        """Typed and checked. Raises `SettingsError`."""
        return parse(self.values, self.stack, project, self.secret)


def read_yaml(path: Path) -> dict[str, Any]:
    """The file as YAML 1.2, in which `off` is a word and no boolean. Raises `StackFileError`."""
    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise StackFileError(f"{path} cannot be read: {error.strerror}") from None
    except YAMLError as error:
        raise StackFileError(f"{path} is no YAML: {_where(error)}") from None


def _where(error: YAMLError) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    return f"line {mark.line + 1}: {problem}" if mark and problem else " ".join(str(error).split())


def stacks(project: Path) -> list[str]:
    """The names of the stacks that have a file."""
    return sorted(path.name.split(".")[1] for path in project.glob("Pulumi.*.yaml"))


def read(project: Path, stack: str, file: Path | None = None) -> Entries:
    """The entries of the stack, from `file` or else from its own. Raises `StackFileError`."""
    path = file or project / f"Pulumi.{stack}.yaml"
    if not path.is_file():
        raise StackFileError(f"there is no {path}; the stacks are {', '.join(stacks(project)) or 'none'}")
    about = read_yaml(project / "Pulumi.yaml")
    prefix = f"{about['name']}:"
    values: dict[str, object] = {
        key: declared["default"] for key, declared in (about.get("config") or {}).items() if "default" in declared
    }
    own = {
        key.removeprefix(prefix): value
        for key, value in (read_yaml(path).get("config") or {}).items()
        if key.startswith((prefix, _OF_THE_PROVIDER))
    }
    readable = {key: _readable(value) for key, value in own.items()}
    secret = frozenset(key for key, value in own.items() if readable[key] != value)
    return Entries(stack, prefix, values | readable, secret)


def is_encrypted(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether the engine has encrypted what stands here."""
    return isinstance(value, Mapping) and set(value) == {"secure"}


def _readable(value: object) -> object:
    if is_encrypted(value):
        return ENCRYPTED
    if isinstance(value, Mapping):
        return {key: _readable(each) for key, each in value.items()}
    return [_readable(each) for each in value] if isinstance(value, list) else value
