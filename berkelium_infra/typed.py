"""Kubernetes manifests as input classes of the Pulumi SDK, without losing a key.

The SDK takes dictionaries too, but then the provider may drop a key that it does not know without a word. Here an
unknown key is an error that names it.
"""

import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from pulumi import _types as types

from berkelium_infra.errors import UserError

T = TypeVar("T")


class UnknownKey(UserError):
    """A manifest has a key that its kind does not have; the text names the manifest, the path and the known keys."""


def arguments(kind: type[T], manifest: Mapping[str, Any], where: str) -> T:
    """`manifest` (camelCase keys, as in YAML) as an instance of the SDK's input class `kind`.

    `where` opens the text of the `UnknownKey` that is raised for a key that the class does not have.
    """
    names = {pulumi: python for python, pulumi in types.input_type_py_to_pulumi_names(kind).items()}
    fields = types.input_type_types(kind)
    values: dict[str, Any] = {}
    for key, value in manifest.items():
        if key not in names:
            raise UnknownKey(f"{where}.{key}: there is no such field; known here: {', '.join(sorted(names))}.")
        values[names[key]] = _value(fields[key], value, f"{where}.{key}")
    return kind(**values)


def _value(annotation: object, value: object, where: str) -> object:
    annotation = types.unwrap_type(cast(type, annotation))
    if isinstance(value, Mapping):
        kind = _input_class(annotation)
        return arguments(kind, cast("Mapping[str, Any]", value), where) if kind else dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        (item,) = typing.get_args(annotation) or (object,)
        return [_value(item, element, f"{where}[{index}]") for index, element in enumerate(value)]
    return value


def _input_class(annotation: object) -> type | None:
    """The input class that an annotation allows, if it is not a plain mapping."""
    if isinstance(annotation, type) and types.is_input_type(annotation):
        return annotation
    for argument in typing.get_args(annotation):
        if typing.get_origin(annotation) is typing.Union and (found := _input_class(types.unwrap_type(argument))):
            return found
    return None
