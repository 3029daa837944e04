"""Whether a live admission policy says what its file says, and which namespaces a selector covers."""

from collections.abc import Iterator
from typing import Any

from berkelium_lab.api import Object

# What the API server writes where nothing is written (pkg/apis/admissionregistration/v1/defaults.go).
_DEFAULTS = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "scope": "*",
}


def differences(declared: Any, live: Any, path: str = "spec") -> Iterator[str]:
    """The paths at which two values differ, defaults that the API server writes left aside."""
    if isinstance(declared, dict) and isinstance(live, dict):
        declared, live = _without_defaults(declared), _without_defaults(live)
        for key in sorted(declared.keys() | live.keys()):
            yield from differences(declared.get(key), live.get(key), f"{path}.{key}")
    elif isinstance(declared, list) and isinstance(live, list) and len(declared) == len(live):
        for index, (one, other) in enumerate(zip(declared, live, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif declared != live:
        yield path


def _without_defaults(value: dict[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if inner != _DEFAULTS.get(key, _DEFAULTS)}


def selects(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a label selector covers an object with these labels; no selector covers everything."""
    selector = selector or {}
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_holds(expression, labels) for expression in selector.get("matchExpressions") or [])


def _holds(expression: Object, labels: dict[str, str]) -> bool:
    present, value = expression["key"] in labels, labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return present and value in expression["values"]
        case "NotIn":
            return not present or value not in expression["values"]
        case "Exists":
            return present
        case _:
            return not present


def excluded_names(selector: Object | None, label: str) -> set[str]:
    """The values of the label that the selector leaves out by name."""
    expressions = (selector or {}).get("matchExpressions") or []
    return {
        value
        for expression in expressions
        if expression["key"] == label and expression["operator"] == "NotIn"
        for value in expression["values"]
    }
