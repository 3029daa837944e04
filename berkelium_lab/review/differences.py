"""What differs between two values of JSON, property by property."""

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from berkelium_lab.review.model import Difference

_ABSENT = object()


def differences(old: object, new: object, path: str = "") -> list[Difference]:
    """What differs between two values of JSON, each with its path; lists of named things are matched by name."""
    return list(_walk(old, new, path))


def _walk(old: Any, new: Any, path: str) -> Iterator[Difference]:
    if old is _ABSENT:
        yield Difference(path=path, change="added", new=new)
    elif new is _ABSENT:
        yield Difference(path=path, change="removed", old=old)
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            yield from _walk(old.get(key, _ABSENT), new.get(key, _ABSENT), _member(path, key))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(old, new, path)
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield Difference(path=path, change="changed", old=old, new=new)


def _member(path: str, key: str) -> str:
    name = f"[{json.dumps(key)}]" if any(sign in key for sign in "./[] ") else key
    return f"{path}{name}" if not path or name.startswith("[") else f"{path}.{name}"


def _lists(old: list[Any], new: list[Any], path: str) -> Iterator[Difference]:
    names = _names(old), _names(new)
    if names[0] is not None and names[1] is not None:
        for name in dict.fromkeys((*names[0], *names[1])):
            yield from _walk(names[0].get(name, _ABSENT), names[1].get(name, _ABSENT), f"{path}[{name}]")
        if names[0].keys() == names[1].keys() and list(names[0]) != list(names[1]):
            yield Difference(path=f"{path} (order)", change="changed", old=list(names[0]), new=list(names[1]))
        return
    texts = [[json.dumps(element, sort_keys=True) for element in side] for side in (old, new)]
    for what, start, end, new_start, new_end in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        common = min(end - start, new_end - new_start)
        for offset in range(common):
            one, other = old[start + offset], new[new_start + offset]
            yield from _walk(one, other, _element(path, new_start + offset, other))
        for index in range(start + common, end):
            yield Difference(path=_element(path, index, old[index]), change="removed", old=old[index])
        for index in range(new_start + common, new_end):
            yield Difference(path=_element(path, index, new[index]), change="added", new=new[index])


def _element(path: str, index: int, value: Any) -> str:
    """The path of an element; a plain value tells itself which one it is."""
    return f"{path}[{index}]" if isinstance(value, dict | list) else f"{path}[]"


def _names(elements: list[Any]) -> dict[str, Any] | None:
    """The elements by name; None unless all have one and no two the same."""
    if not all(isinstance(element, dict) and isinstance(element.get("name"), str) for element in elements):
        return None
    named = {element["name"]: element for element in elements}
    return named if len(named) == len(elements) else None
