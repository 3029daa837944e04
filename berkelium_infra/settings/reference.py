"""The reference of all config keys, read off the models, so that it cannot differ from what is accepted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from berkelium_infra.settings.model import Settings
from berkelium_infra.settings.types import Resources


@dataclass(frozen=True)
class Key:
    """One key: its dotted path (`[]` for the entries of a list, or of a mapping by name), its default, what it means.

    `default` is empty for a key that has none, and for one whose keys are listed by themselves.
    """

    path: str
    default: str
    meaning: str


def keys() -> list[Key]:
    """Every key of a stack file, without the project's prefix, in the order of the models."""
    return list(_keys(Settings, Settings(), ""))


def _keys(model: type[BaseModel], defaults: BaseModel | None, prefix: str) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        value = getattr(defaults, name) if defaults is not None else field.default
        section = _section(field)
        if isinstance(value, BaseModel) and not isinstance(value, Resources):
            yield Key(path, "", field.description or "")
            yield from _keys(type(value), value, f"{path}.")
        else:
            required = field.is_required() or (defaults is None and field.default is None)
            yield Key(path, "" if required else _yaml(value), field.description or "")
        if section is not None and isinstance(field.default, tuple | dict):
            yield from _keys(section, None, f"{path}[].")


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a list's entries, if they have one."""
    for argument in get_args(field.annotation):
        if isinstance(argument, type) and issubclass(argument, BaseModel):
            return argument
    return None


def _yaml(value: object) -> str:
    if value is None:
        return ""
    return yaml.safe_dump(_plain(value), default_flow_style=True, width=10**6, sort_keys=False).splitlines()[0]


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, exclude_none=True, mode="json")
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value
