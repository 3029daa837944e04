#!/usr/bin/env python3
"""Helm post-renderer of the NVIDIA DRA driver's chart: manifest on stdin, changed manifest on stdout.

The chart has no switch for three things that the stack needs, so they are done here, as told by annotations that the
values give to the kubelet plugin's pods (`kubeletPlugin.podAnnotations`), where a preview shows them:

- `berkelium.io/postrender-drop-device-classes`: comma-separated names of the DeviceClasses that somebody else owns.
- `berkelium.io/postrender-split-by`: a node label. The kubelet plugin's DaemonSet then runs where it is "true", and a
  copy of it with the feature gate DynamicMIG off, named `…-whole-gpu`, where it is "false".
- `berkelium.io/postrender-init-resources`: requests and limits, as JSON, of the init container; the chart ignores its
  own key for them.

Helm starts this with the caller's PATH and not in a virtual environment, hence Python 3.9 and its standard library
only. Documents without a change are passed on byte by byte. Whatever is not exactly as expected ends the run with
status 1, one line on stderr and nothing on stdout, so that Helm leaves the release as it is.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    Step = str | tuple[str, str]

PREFIX = "berkelium.io/postrender-"
DROP = PREFIX + "drop-device-classes"
SPLIT = PREFIX + "split-by"
INIT_RESOURCES = PREFIX + "init-resources"

PLUGIN_SUFFIX = "-kubelet-plugin"
COPY_SUFFIX = "-whole-gpu"

TEMPLATE = ("spec", "template")
POD = (*TEMPLATE, "spec")
SELECTOR = ("spec", "selector", "matchLabels")

_KEY = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s"'#\[{&*!|>%@`-][^:#]*?)\s*:(?:\s+(?P<value>.*))?$""")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
_LABEL = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./]*")


class Unexpected(Exception):
    """The manifest is not what this program was written for; the text says what was expected and what was found."""


class Field(NamedTuple):
    """One `key: value` in block style: where it begins, the text behind the colon, the line after its last one."""

    line: int
    column: int
    value: str
    end: int


def scalar(text: str) -> str | None:
    """The string that a one-line YAML scalar stands for; None if it is no such scalar."""
    text = text.strip()
    if text.startswith('"'):
        match = re.match(r'("(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")\s*(?:#.*)?$', text)
        return json.loads(match[1], strict=False) if match else None
    if text.startswith("'"):
        match = re.match(r"'((?:[^']|'')*)'\s*(?:#.*)?$", text)
        return match[1].replace("''", "'") if match else None
    text = re.sub(r"(^|\s)#.*$", "", text).rstrip()
    return None if text[:1] in tuple("{[|>&*!%@`") else text


def significant(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#") and not line.startswith("---")


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class Document:
    """One YAML document in block style as lines, read and changed at paths.

    A path is a series of keys; a pair ("name", "x") in it picks the item of a list whose field `name` is `x`. Lists may
    be indented below their key or not: charts have both.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def __str__(self) -> str:
        return f"{self.text('kind')} {self.text('metadata', 'name')}"

    def is_a(self, kind: str) -> bool:
        """Whether the document is of that kind; one of comments alone is of none."""
        return any(map(significant, self.lines)) and self.text("kind") == kind

    def _body(self, start: int, end: int) -> list[int]:
        return [i for i in range(start, end) if significant(self.lines[i])]

    def _fields(self, start: int, end: int, column: int | None = None) -> dict[str, Field]:
        """The fields of the mapping in these lines; its first key stands at `column` where `- ` is before it."""
        body = self._body(start, end)
        if not body:
            return {}
        column = indent_of(self.lines[body[0]]) if column is None else column
        # The dashes of a list that is not indented below its key stand in the key's column, but are no keys.
        heads = body[:1] + [
            i for i in body[1:] if indent_of(self.lines[i]) <= column and not re.match(r" *-(\s|$)", self.lines[i])
        ]
        found: dict[str, Field] = {}
        for i, limit in zip(heads, [*heads[1:], end]):  # noqa: B905 - `strict` is not in Python 3.9
            match = _KEY.match(self.lines[i][column:].rstrip("\r\n"))
            key = scalar(match["key"]) if match else None
            if not match or not key or key in found or (i != heads[0] and indent_of(self.lines[i]) != column):
                raise Unexpected(f"expected another `key: value` in block style, found {self.lines[i].strip()!r}")
            found[key] = Field(i, column, match["value"] or "", limit)
        return found

    def items(self, *path: Step) -> list[dict[str, Field]]:
        """The items of the list at a path, each as the fields of its mapping; empty where nothing is."""
        field = self.mapping(*path[:-1]).get(str(path[-1]))
        body = self._body(field.line + 1, field.end) if field else []
        starts = [i for i in body if indent_of(self.lines[i]) == indent_of(self.lines[body[0]])]
        dashes = [re.match(r" *- +(?=[^\s-])", self.lines[i]) for i in starts]
        if field and (scalar(field.value) != "" or not all(dashes)):
            raise Unexpected(f"expected a list of mappings in block style at {where(path)}, found {field.value!r}")
        limits = [*starts[1:], field.end if field else 0]
        return [self._fields(i, limits[n], dash.end()) for n, (i, dash) in enumerate(zip(starts, dashes)) if dash]  # noqa: B905

    def mapping(self, *path: Step) -> dict[str, Field]:
        """The fields of the mapping at a path; empty where nothing is."""
        if not path:
            return self._fields(0, len(self.lines))
        if isinstance(path[-1], tuple):
            key, value = path[-1]
            chosen = [item for item in self.items(*path[:-1]) if key in item and scalar(item[key].value) == value]
            if len(chosen) != 1:
                raise Unexpected(f"expected one item at {where(path)}, found {len(chosen)}")
            return chosen[0]
        field = self.mapping(*path[:-1]).get(path[-1])
        if field and scalar(field.value) != "" and field.value.strip() != "{}":
            raise Unexpected(f"expected a mapping in block style at {where(path)}, found {field.value!r}")
        return self._fields(field.line + 1, field.end) if field else {}

    def text(self, *path: Step) -> str:
        """The string at a path; raises Unexpected if there is none on one line."""
        field = self.mapping(*path[:-1]).get(str(path[-1]))
        value = scalar(field.value) if field else None
        if field is None or value is None or self._body(field.line + 1, field.end):
            raise Unexpected(
                f"expected a string on one line at {where(path)}, found {field.value if field else 'none'}"
            )
        return value

    def set(self, value: str, *path: Step) -> None:
        """Replaces the string at a path that has one."""
        self.text(*path)
        field = self.mapping(*path[:-1])[str(path[-1])]
        line = self.lines[field.line].rstrip("\r\n")
        self.lines[field.line] = f"{line[: len(line) - len(field.value)].rstrip()} {json.dumps(value)}\n"

    def put(self, key: str, value: object, *path: Step) -> None:
        """Adds a field, whose value is a string or a mapping, at the end of the mapping at a path."""
        last = max(self.mapping(*path).values())
        end = max([last.line, *self._body(last.line, last.end)]) + 1
        self.lines[end - 1] = self.lines[end - 1].rstrip("\n") + "\n"
        self.lines[end:end] = rendered(key, value, last.column)


def rendered(key: str, value: object, column: int) -> list[str]:
    head = " " * column + key + ":"
    if isinstance(value, dict):
        return [head + "\n", *(line for k, v in value.items() for line in rendered(k, v, column + 2))]
    return [f"{head} {json.dumps(value)}\n"]


def where(path: tuple[Step, ...]) -> str:
    return ".".join(step if isinstance(step, str) else f"[{step[0]}={step[1]}]" for step in path)


def documents(manifest: str) -> list[Document]:
    """The documents of a manifest; joined again they are the manifest. A separator belongs to what follows it."""
    parts: list[list[str]] = [[]]
    for line in re.findall(r"[^\n]*\n|[^\n]+", manifest):
        if line.startswith("---") and not re.match(r"---\s*(#.*)?$", line):
            raise Unexpected(f"expected nothing behind the separator of documents, found {line!r}")
        if line.startswith("---") and parts[-1]:
            parts.append([])
        parts[-1].append(line)
    return [Document(part) for part in parts]


def intent(plugin: Document) -> dict[str, str]:
    """What the annotations ask for, by annotation."""
    known = (DROP, SPLIT, INIT_RESOURCES)
    annotations = (*TEMPLATE, "metadata", "annotations")
    asked = {key: plugin.text(*annotations, key) for key in plugin.mapping(*annotations) if key.startswith(PREFIX)}
    if DROP not in asked:
        raise Unexpected(f"expected the pod annotation {DROP} (empty to drop nothing) on {plugin}, found none")
    for key in asked:
        if key not in known:
            raise Unexpected(f"expected no annotation {PREFIX}* but {', '.join(known)}, found {key}")
    return {key: asked.get(key, "").strip() for key in known}


def drop_classes(docs: list[Document], names: list[str]) -> list[Document]:
    classes = [doc for doc in docs if doc.is_a("DeviceClass")]
    dropped = [doc for doc in classes if doc.text("metadata", "name") in names]
    if sorted(str(doc) for doc in dropped) != sorted(f"DeviceClass {name}" for name in names):
        found = ", ".join(map(str, classes)) or "none"
        raise Unexpected(f"expected each of the DeviceClasses {', '.join(names)} once, to drop it, found {found}")
    return [doc for doc in docs if doc not in dropped]


def state_init_resources(plugin: Document, text: str) -> None:
    inits = plugin.items(*POD, "initContainers")
    if len(inits) != 1 or "name" not in inits[0] or "resources" in inits[0]:
        raise Unexpected(f"expected one init container without resources in {plugin}, found {len(inits)} or with some")
    name = scalar(inits[0]["name"].value) or ""
    plugin.put("resources", amounts_of(text), *POD, "initContainers", ("name", name))


def amounts_of(text: str) -> dict[str, dict[str, str]]:
    """The resources that the annotation states: requests and limits, each of cpu and memory."""
    try:
        amounts: Any = json.loads(text)
        keys = [sorted(amounts), *(sorted(amount) for amount in amounts.values())]
        quantities = [quantity for amount in amounts.values() for quantity in amount.values()]
        if keys == [["limits", "requests"], *[["cpu", "memory"]] * 2] and all(map(_QUANTITY.fullmatch, quantities)):
            return amounts
    except (ValueError, TypeError, AttributeError):
        pass
    raise Unexpected(f"expected {INIT_RESOURCES} to state cpu and memory of requests and limits as JSON, found {text}")


def switch_gate_off(plugin: Document) -> None:
    """Turns DynamicMIG off in every container that has feature gates; the container `gpus` must have them."""
    switched = []
    for container in plugin.items(*POD, "containers"):
        name = scalar(container["name"].value) or "" if "name" in container else ""
        env = (*POD, "containers", ("name", name), "env")
        if not any("name" in item and scalar(item["name"].value) == "FEATURE_GATES" for item in plugin.items(*env)):
            continue
        gates = plugin.text(*env, ("name", "FEATURE_GATES"), "value")
        off, count = re.subn(r"(^|,)DynamicMIG=true(?=,|$)", r"\1DynamicMIG=false", gates)
        if count != 1:
            raise Unexpected(f"expected DynamicMIG=true once in FEATURE_GATES of container {name}, found {gates!r}")
        plugin.set(off, *env, ("name", "FEATURE_GATES"), "value")
        switched.append(name)
    if "gpus" not in switched:
        raise Unexpected(f"expected a container gpus with FEATURE_GATES in {plugin}, found {switched or 'none'}")


def select_nodes(plugin: Document, label: str, value: str) -> None:
    if plugin.mapping(*POD, "nodeSelector"):
        plugin.put(label, value, *POD, "nodeSelector")
        return
    empty = plugin.mapping(*POD).get("nodeSelector")
    if empty:
        del plugin.lines[empty.line : empty.end]
    plugin.put("nodeSelector", {label: value}, *POD)


def split(plugin: Document, label: str) -> list[Document]:
    """The DaemonSet for the nodes where the label is "true", and its copy without DynamicMIG for "false"."""
    selector = [*plugin.mapping("spec", "selector"), *plugin.mapping(*SELECTOR)]
    if len(selector) != 2:
        raise Unexpected(f"expected one label in the selector of {plugin}, found {', '.join(selector) or 'none'}")
    key = selector[1]
    component = plugin.text(*SELECTOR, key)
    if plugin.text(*TEMPLATE, "metadata", "labels", key) != component:
        raise Unexpected(f"expected the pod label {key}={component}, as the selector of {plugin} has it, found another")
    if not _LABEL.fullmatch(label) or label in plugin.mapping(*POD, "nodeSelector"):
        raise Unexpected(f"expected {SPLIT} to name a label that no node selector of the values has, found {label!r}")

    copy = Document(list(plugin.lines))
    switch_gate_off(copy)
    copy.set(plugin.text("metadata", "name") + COPY_SUFFIX, "metadata", "name")
    copy.set(component + COPY_SUFFIX, *SELECTOR, key)
    copy.set(component + COPY_SUFFIX, *TEMPLATE, "metadata", "labels", key)
    select_nodes(plugin, label, "true")
    select_nodes(copy, label, "false")
    plugin.lines[-1] = plugin.lines[-1].rstrip("\n") + "\n"
    return [plugin, copy]


def post_render(manifest: str) -> str:
    """The manifest as the stack wants it; raises Unexpected."""
    docs = documents(manifest)
    plugins = [doc for doc in docs if doc.is_a("DaemonSet")]
    if len(plugins) != 1 or not plugins[0].text("metadata", "name").endswith(PLUGIN_SUFFIX):
        raise Unexpected(
            f"expected one DaemonSet, named *{PLUGIN_SUFFIX}, found {', '.join(map(str, plugins)) or 'none'}"
        )
    (plugin,) = plugins
    asked = intent(plugin)
    docs = drop_classes(docs, [name.strip() for name in asked[DROP].split(",") if name.strip()])
    if asked[INIT_RESOURCES]:
        state_init_resources(plugin, asked[INIT_RESOURCES])
    if asked[SPLIT]:
        for doc in docs:
            if doc.is_a("NetworkPolicy") and doc.text("metadata", "name").endswith(PLUGIN_SUFFIX):
                raise Unexpected(f"expected no {doc} beside a split, since it covers one of both DaemonSets, found one")
        docs = [part for doc in docs for part in (split(doc, asked[SPLIT]) if doc is plugin else [doc])]
    return "".join(line for doc in docs for line in doc.lines)


def main() -> int:
    try:
        changed = post_render(sys.stdin.buffer.read().decode("utf-8"))
    except (Unexpected, UnicodeDecodeError) as error:
        print(f"post-renderer of the NVIDIA chart: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(changed.encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
