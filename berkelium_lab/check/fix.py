"""Manifests with what can be mended mechanically: stale forms renewed, limits stated as requests too.

Comments, order and quotes stay, and documents in which nothing is to be mended stay byte for byte. Amounts of CPU and
memory are the author's: where they are missing, a comment marks the container.
"""

import io
import json
import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from berkelium_lab.check import mending, yaml_reader
from berkelium_lab.check.reading import InputError
from berkelium_lab.check.shapes import claim_spec, containers, dig, entries, joined, pod_template
from berkelium_lab.check.yaml_reader import Chunk, UnreadableYaml

MARK = "berkelium check: state"
_WIDTH = 10_000


@dataclass
class Mended:
    """The text of a file after mending; `changes` and `left` say what was done and what is left to the author."""

    text: str
    changes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def mend_file(file: Path) -> Mended:
    """Mend one file. Raises `InputError` when it cannot be read as text."""
    try:
        return mend(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as fault:
        raise InputError(f"{file} cannot be read: {fault}") from None


def mend(text: str, file: str) -> Mended:
    """Mend the text of a file of that name. What is no YAML is left as it is, and said so."""
    result = Mended("")
    if text.lstrip().startswith("{"):
        return _mend_json(text, file, result)
    end = 0
    for chunk in yaml_reader.chunks(text):
        result.text += text[end : chunk.start] + _mend_chunk(text[chunk.start : chunk.end], chunk, file, result)
        end = chunk.end
    result.text += text[end:]
    return result


def _mend_json(text: str, file: str, result: Mended) -> Mended:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as fault:
        result.left.append(f"{file}:{fault.lineno}: left as it is, not JSON: {fault.msg}")
        result.text = text
        return result
    _mend_all(value, f"{file}:1", "", result)
    result.text = json.dumps(value, indent=2, ensure_ascii=False) + "\n" if result.changes else text
    return result


def _mend_chunk(text: str, chunk: Chunk, file: str, result: Mended) -> str:
    where = f"{file}:{chunk.line}"
    yaml = _yaml(text)
    try:
        # Refuses aliases that expand without end, too.
        yaml_reader.read(chunk)
        value = yaml.load(text)
    except (UnreadableYaml, YAMLError, ValueError) as fault:
        problem = fault.problem if isinstance(fault, UnreadableYaml) else str(fault).splitlines()[0]
        result.left.append(f"{where}: left as it is, not YAML: {problem}")
        return text
    before = len(result.changes)
    missing = _mend_all(value, where, "", result)
    if len(result.changes) > before:
        written = io.StringIO()
        yaml.dump(value, written)
        text = ("\n" if text.startswith("\n") else "") + written.getvalue().removeprefix("\n")
    return _marked(text, missing)


def _marked(text: str, missing: dict[str, str]) -> str:
    """The text with a comment behind the name of each container that lacks something, where there is none yet."""
    (chunk,) = yaml_reader.chunks(text)
    places = yaml_reader.read(chunk).lines
    lines = text.split("\n")
    for path, what in missing.items():
        number = places.get(f"{path}.name", places.get(path, 0)) - 1
        if 0 <= number < len(lines) and "#" not in lines[number]:
            lines[number] = f"{lines[number].rstrip()} # {MARK} {what}"
    return "\n".join(lines)


def _yaml(text: str) -> YAML:
    """A round trip that indents lists as the text does."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    # Otherwise [{name: gpu}] would become [name: gpu].
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.width = _WIDTH
    step = _step(text)
    if _indents_lists(text):
        yaml.indent(mapping=step, sequence=step + 2, offset=step)
    else:
        yaml.indent(mapping=step, sequence=2, offset=0)
    return yaml


def _step(text: str) -> int:
    """By how much the keys of a mapping stand deeper than the key above them."""
    found = re.search(r"^[\w.-]+:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*( +)[\w.\"'/-]+:", text, re.MULTILINE)
    return len(found[1]) if found else 2


def _indents_lists(text: str) -> bool:
    """Whether the entries of lists stand deeper than the key above them."""
    indent_of_key: int | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        if indent_of_key is not None and stripped.startswith("- "):
            return indent > indent_of_key
        indent_of_key = indent if stripped.endswith(":") and not stripped.startswith("- ") else None
    return False


def _mend_all(value: Any, where: str, at: str, result: Mended) -> dict[str, str]:
    """Mend an object, or each object of a List; what containers still lack, by their paths below `at`."""
    if not isinstance(value, MutableMapping):
        return {}
    if str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        found: dict[str, str] = {}
        for index, member in enumerate(value["items"]):
            found |= _mend_all(member, where, joined(at, f"items[{index}]"), result)
        return found
    title = f"{value.get('kind')} {dig(value, 'metadata.name')}"
    for what in [*_claims(value), *_pods(value)]:
        result.changes.append(f"{where}: {title}: {what}")
    return _missing(value, f"{where}: {title}", at, result)


def _claims(obj: Any) -> Iterator[str]:
    if mending.renew_version(obj):
        yield f"apiVersion is {mending.RESOURCE_API}"
    found = claim_spec(obj)
    if not found:
        return
    if mending.renew_class_name(found[0]):
        yield "resourceClassName is a device request"
    for index, request in mending.device_requests(found[0]):
        if mending.wrap_in_exactly(request):
            yield f"request {request.get('name', index)} has its fields under exactly"


def _pods(obj: Any) -> Iterator[str]:
    found = pod_template(obj)
    if not found:
        return
    for _, claim in entries(dig(found[0], "spec.resourceClaims")):
        if mending.flatten_source(claim):
            yield f"claim {claim.get('name')} names its source directly"
    if obj.get("kind") == "Pod":
        # The API server fills in a bare pod's requests from its limits; a template's it does not.
        return
    for container, _ in containers(found[0]):
        added = mending.copy_limits(container)
        if added:
            yield f"container {container.get('name')} requests the {' and '.join(added)} of its limits"


def _missing(obj: Any, where: str, at: str, result: Mended) -> dict[str, str]:
    template = pod_template(obj)
    if template is None:
        return {}
    found = {}
    for container, path in containers(template[0]):
        missing = mending.missing_amounts(container)
        if obj.get("kind") == "Pod":
            # The requests that the API server takes from the limits are not missing.
            missing = [name for name in missing if name.replace("requests.", "limits.") in missing]
        if missing:
            result.left.append(f"{where}: container {container.get('name')} lacks {', '.join(missing)}: yours to state")
            found[joined(at, template[1], path)] = ", ".join(missing)
    return found
