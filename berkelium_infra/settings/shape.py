"""From raw configuration to the model: every fault of shape, and the model that is left without the faulty entries."""

from collections.abc import Mapping, Sequence
from typing import cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from berkelium_infra.settings.faults import Fault, listed, unknown
from berkelium_infra.settings.model import Settings
from berkelium_infra.settings.types import FAULT

Location = tuple[int | str, ...]

_SECRET = "registryCredentials"

_KINDS = {
    "string_type": ("is no text", "Write it in quotes."),
    "bool_type": ("is neither true nor false", "Write true or false."),
    "bool_parsing": ("is neither true nor false", "Write true or false."),
    "int_type": ("is no whole number", "Write a whole number."),
    "int_parsing": ("is no whole number", "Write a whole number."),
    "int_from_float": ("is no whole number", "Write a whole number."),
    "tuple_type": ("is no list", "Write a list."),
    "dict_type": ("is no mapping", "Write keys and values."),
    "model_type": ("is no mapping", "Write keys and values."),
    "model_attributes_type": ("is no mapping", "Write keys and values."),
}


def read(raw: Mapping[str, object]) -> tuple[Settings, list[Fault]]:
    """The settings of `raw` (keys as in the stack file) and its faults of shape.

    With faults, each faulty entry of the settings has its default instead, so that the rules, which look at several
    entries at once, can still be asked about the rest.
    """
    removed: set[Location] = set()
    faults: list[Fault] = []
    while True:
        origins: dict[Location, list[int]] = {}
        remaining = _remaining(raw, removed, origins)
        try:
            return Settings.model_validate(remaining), faults
        except ValidationError as error:
            details = error.errors(include_url=False)
        for detail in details:
            location = _original(detail["loc"], origins)
            # Missing only because its faulty value was taken away, which has been reported.
            if not (detail["type"] == "missing" and location in removed):
                faults.append(_fault(detail, location))
            removed.add(_faulty_entry(detail["type"], location))


def _remaining(value: object, removed: set[Location], origins: dict[Location, list[int]], at: Location = ()) -> object:
    """`value` without the entries at the locations `removed`; `origins` gets the original indices of each list."""
    if isinstance(value, Mapping):
        kept = {name: (*at, name) for name in value if (*at, name) not in removed}
        return {name: _remaining(value[name], removed, origins, inner) for name, inner in kept.items()}
    if isinstance(value, list):
        origins[at] = [index for index in range(len(value)) if (*at, index) not in removed]
        return [_remaining(value[index], removed, origins, (*at, index)) for index in origins[at]]
    return value


def _original(location: Location, origins: dict[Location, list[int]]) -> Location:
    original: Location = ()
    for part in location:
        original += (origins[original][part] if isinstance(part, int) and original in origins else part,)
    return original


def key(location: Location) -> str:
    """`("nvidia", "tolerations", 0, "key")` as `nvidia.tolerations[0].key`; pydantic's own marks are left out."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part != "[key]":
            text += f".{part}" if text else part
    return text


def _fault(detail: ErrorDetails, location: Location) -> Fault:
    kind, value = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    at = key(location)
    if _SECRET in location and kind not in ("extra_forbidden", "missing"):
        # Whatever stands there may be a secret in the wrong place.
        return Fault(at, "It is not right.", f"Write {_description(location)}")
    if kind == FAULT:
        return Fault(at, context["problem"], context["remedy"])
    if kind == "extra_forbidden":
        parent = key(location[:-1])
        return unknown(at, str(location[-1]), f"key of {parent}" if parent else "key", _keys(location[:-1]))
    if kind == "missing":
        return Fault(at, "It is missing.", f"Write {_description(location)}")
    if kind in ("enum", "literal_error"):
        choices = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        return Fault(
            at,
            f"{value!r} is not possible here.",
            f"Write {listed(choices)}.",
        )
    if kind == "string_pattern_mismatch":
        return Fault(at, f"{value!r} does not look right.", f"Write {_description(location)}")
    if kind in ("greater_than_equal", "less_than_equal"):
        return Fault(
            at, f"{value!r} is out of range.", f"{detail['msg']}.".replace("Input should be", "Write a number")
        )
    problem, remedy = _KINDS.get(kind, ("is not right", f"{detail['msg']}."))
    return Fault(at, f"{value!r} {problem}.", remedy)


def _faulty_entry(kind: str, location: Location) -> Location:
    """The smallest entry of the raw configuration without which the fault is gone."""
    return location[:-1] if kind == "missing" or location[-1] == "[key]" else location


def _model_at(location: Sequence[int | str]) -> type[BaseModel] | None:
    """The model whose keys stand at `location`, if it is one."""
    model: type[BaseModel] = Settings
    by_name = False
    for part in location:
        if isinstance(part, int) or by_name:
            by_name = False
            continue
        field = next((field for field in model.model_fields.values() if field.alias == part), None)
        nested = _models_in(field.annotation) if field else []
        if field is None or not nested:
            return None
        model, by_name = nested[0], get_origin(field.annotation) is dict
    # A mapping of names to sections is not itself a section.
    return None if by_name else model


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _keys(location: Sequence[int | str]) -> list[str]:
    model = _model_at(location)
    return [cast(str, field.alias) for field in model.model_fields.values()] if model else []


def _description(location: Sequence[int | str]) -> str:
    model = _model_at(location[:-1])
    for field in model.model_fields.values() if model else ():
        if field.alias == location[-1] and field.description:
            return field.description[0].lower() + field.description[1:]
    return "a value."
