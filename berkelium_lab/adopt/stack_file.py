"""The section `adopt` of a stack's file, written and removed without touching any other byte of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, YAMLError

from berkelium_lab.stack_files import StackFileError, read_yaml

KEY = "adopt"
_WIDTH = 100


def read_adopt(path: Path, prefix: str) -> dict[str, list[str]]:
    """The section `<prefix>:adopt` of the file; empty when it has none."""
    section = (read_yaml(path).get("config") or {}).get(f"{prefix}:{KEY}") or {}
    return {str(part): [str(entry) for entry in entries] for part, entries in section.items()}


def write_adopt(path: Path, prefix: str, section: Mapping[str, Sequence[str]]) -> bool:
    """Make the file's section `<prefix>:adopt` this one; an empty one removes it. False when nothing had to change.

    Raises `StackFileError` when the file is no block of `config:` with a key per line; then it is left alone.
    """
    before = path.read_text(encoding="utf-8")
    wanted = {part: list(entries) for part, entries in section.items() if entries}
    if read_adopt(path, prefix) == wanted and (wanted or f"{prefix}:{KEY}" not in (_config(_parsed(before)))):
        return False
    after = _with(_without(before, f"{prefix}:{KEY}"), f"{prefix}:{KEY}", wanted)
    expected = _parsed(before)
    config = expected["config"] = dict(_config(expected))
    config.pop(f"{prefix}:{KEY}", None)
    if wanted:
        config[f"{prefix}:{KEY}"] = wanted
    if not config:
        del expected["config"]
    if not _says(after, expected):
        raise StackFileError(f"{path} is not written as one key per line; put this under its config:\n{_block(wanted)}")
    path.write_text(after, encoding="utf-8")
    return True


def _says(text: str, content: Mapping[str, Any]) -> bool:
    """Whether the text is YAML with that content."""
    try:
        return _plain(_parsed(text)) == _plain(content)
    except YAMLError:
        return False


def _without(text: str, key: str) -> str:
    """The text without the lines of the key: its own, and the deeper ones that follow."""
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.strip().split(": ")[0].rstrip(":") == key]
    if not starts:
        return text
    start = starts[0]
    end = start + 1
    while end < len(lines) and lines[end].strip() and _indent(lines[end]) > _indent(lines[start]):
        end += 1
    return "".join(lines[:start] + lines[end:])


def _with(text: str, key: str, section: Mapping[str, Sequence[str]]) -> str:
    """The text with the key as the last one of `config:`."""
    if not section:
        return text
    text = text if text.endswith("\n") or not text else f"{text}\n"
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.split("#")[0].rstrip() == "config:"]
    if not starts:
        return f"{text}config:\n{_block(section, key, 2)}"
    last = number = starts[0]
    indent = 2
    for number in range(starts[0] + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.lstrip().startswith("#"):
            if _indent(line) == 0:
                break
            indent = _indent(line) if last == starts[0] else indent
            last = number
    return "".join([*lines[: last + 1], _block(section, key, indent), *lines[last + 1 :]])


def _block(section: Mapping[str, Sequence[str]], key: str = f"berkelium-infra:{KEY}", indent: int = 2) -> str:
    """The section as YAML: a list on one line, or an entry per line when that would be long."""
    space = " " * indent
    lines = [f"{space}{key}:"]
    for part, entries in section.items():
        words = [entry if isinstance(_parsed(entry), str) else f'"{entry}"' for entry in entries]
        line = f"{space}  {part}: [{', '.join(words)}]"
        lines += [line] if len(line) <= _WIDTH else [f"{space}  {part}:", *(f"{space}    - {word}" for word in words)]
    return "\n".join(lines) + "\n"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text) or {}


def _config(content: Mapping[str, Any]) -> Mapping[str, Any]:
    return content.get("config") or {}


def _plain(value: Any) -> Any:
    return {key: _plain(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value
