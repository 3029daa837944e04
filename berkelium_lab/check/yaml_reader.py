"""YAML as Kubernetes reads it, with line numbers: JSON values out of a file's documents, nothing expanded blindly.

PyYAML's own loader differs from the Kubernetes clients' in ways that would change a manifest: it makes dates of
`2024-01-01` and numbers of `12:30:00`, keeps the last of two equal keys without a word, and expands aliases without
end. Every document is read by itself, so that a fault in one leaves the others readable.
"""

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # PyYAML without libyaml: slower, the same result
    from yaml import SafeLoader as _Base

MAX_EXPANSION = 100_000
"""How many values aliases may add to a document."""

MAX_DEPTH = 500

_START = re.compile(r"^---(?=[ \t\r\n]|$)", re.MULTILINE)
_END = re.compile(r"^\.\.\.[ \t]*\r?$", re.MULTILINE)
_NO_CONTENT = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n|[ \t]*(?:#[^\n]*)?\Z)*\Z")
_TAG = "tag:yaml.org,2002:"


class UnreadableYaml(Exception):
    """A document cannot be read; `line` is a line of the file, `problem` a sentence without a full stop."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass
class Document:
    """One document: its value, the line of each field by path, and the paths of keys that stand twice in a mapping.

    Of a key that stands twice, `lines` has the second.
    """

    value: Any
    line: int
    lines: dict[str, int] = field(default_factory=dict)
    duplicates: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Chunk:
    """The text of one document without its `---`; `line` is the file's line on which the text begins."""

    text: str
    line: int
    start: int
    end: int


class _Loader(_Base):  # pyright: ignore[reportGeneralTypeIssues]
    pass


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """PyYAML's rules for plain scalars, without dates and base 60, and with exponents without a point."""
    replaced = {f"{_TAG}{kind}" for kind in ("timestamp", "int", "float")}
    kept = {
        first: [(tag, pattern) for tag, pattern in rules if tag not in replaced]
        for first, rules in _Base.yaml_implicit_resolvers.items()
    }
    integer = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$")
    real = re.compile(
        r"^[-+]?(?:(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$"
    )
    for first in "-+.0123456789":
        kept[first] = [*kept.get(first, []), (f"{_TAG}int", integer), (f"{_TAG}float", real)]
    return kept


_Loader.yaml_implicit_resolvers = _resolvers()


def chunks(text: str) -> Iterator[Chunk]:
    """The documents of a file that have any content, as text."""
    starts = [0, *(match.end() for match in _START.finditer(text))]
    ends = [*(match.start() for match in _START.finditer(text)), len(text)]
    line, counted = 1, 0
    for start, end in zip(starts, ends, strict=True):
        line, counted = line + text.count("\n", counted, start), start
        piece = _END.sub("", text[start:end])
        if not _NO_CONTENT.match(piece):
            yield Chunk(piece, line, start, end)


def read(chunk: Chunk) -> Document:
    """The document's value and lines. Raises `UnreadableYaml`."""
    try:
        root = yaml.compose(chunk.text, _Loader)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        problem = " ".join(part for part in (fault.context, fault.problem) if part)
        raise UnreadableYaml(problem, chunk.line + (mark.line if mark else 0)) from None
    except (yaml.YAMLError, RecursionError, ValueError) as fault:
        raise UnreadableYaml(str(fault).splitlines()[0] if str(fault) else "nested too deeply", chunk.line) from None
    if root is None:
        return Document(None, chunk.line)
    _refuse_expansion(root, chunk.line)
    document = Document(None, chunk.line + _first_line(root))
    document.value = _Reading(chunk.line, document).value(root, "", 0)
    return document


def _first_line(root: Node) -> int:
    if isinstance(root, MappingNode) and root.value:
        return root.value[0][0].start_mark.line
    return root.start_mark.line


def _refuse_expansion(root: Node, first: int) -> None:
    """Count what the aliases of a document expand to, without expanding them."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: Node, depth: int) -> int:
        if id(node) in open_nodes:
            raise UnreadableYaml("an alias contains itself", first + node.start_mark.line)
        if depth > MAX_DEPTH:
            raise UnreadableYaml(f"nested more than {MAX_DEPTH} levels deep", first + node.start_mark.line)
        if id(node) not in sizes:
            open_nodes.add(id(node))
            sizes[id(node)] = 1 + sum(size(child, depth + 1) for child in _children(node))
            open_nodes.discard(id(node))
        return sizes[id(node)]

    total = size(root, 0)
    if total > len(sizes) + MAX_EXPANSION:
        raise UnreadableYaml(f"its aliases expand to {total:,} values; write the values out", first)


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    elif isinstance(node, MappingNode):
        for key, child in node.value:
            yield key
            yield child


class _Reading:
    """Turns nodes into values; the first line of each path is kept."""

    def __init__(self, first: int, document: Document) -> None:
        self._first = first
        self._document = document
        self._scalars = yaml.constructor.SafeConstructor()

    def value(self, node: Node, path: str, depth: int) -> Any:
        if path:
            self._document.lines.setdefault(path, self._line(node))
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if isinstance(node, SequenceNode):
            return [self.value(child, f"{path}[{index}]", depth + 1) for index, child in enumerate(node.value)]
        assert isinstance(node, MappingNode)
        return self._mapping(node, path, depth)

    def _mapping(self, node: MappingNode, path: str, depth: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                for source in reversed(value_node.value if isinstance(value_node, SequenceNode) else [value_node]):
                    if not isinstance(source, MappingNode):
                        raise UnreadableYaml("<< needs a mapping", self._line(key_node))
                    merged |= self._mapping(source, path, depth + 1)
                continue
            key = self._key(key_node)
            below = f"{path}.{key}" if path else key
            if key in own:
                self._document.duplicates.append(below)
            self._document.lines[below] = self._line(key_node)
            own[key] = self.value(value_node, below, depth + 1)
        return merged | own

    def _key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode):
            raise UnreadableYaml("a key is a mapping or a list, where a name is wanted", self._line(node))
        value = self._scalar(node)
        if isinstance(value, bool):
            return str(value).lower()
        assert isinstance(value, Hashable)
        return node.value if not isinstance(value, str) else value

    def _scalar(self, node: ScalarNode) -> Any:
        kind = node.tag.removeprefix(_TAG)
        try:
            if kind == "null":
                return None
            if kind == "bool":
                return self._scalars.construct_yaml_bool(node)
            if kind == "int":
                return self._integer(node)
            if kind == "float":
                return self._scalars.construct_yaml_float(node)
        except (ValueError, KeyError):
            raise UnreadableYaml(f"{node.value!r} is no {kind}", self._line(node)) from None
        return node.value

    def _integer(self, node: ScalarNode) -> int:
        if "0o" in node.value:
            return int(node.value.replace("_", ""), 0)
        return self._scalars.construct_yaml_int(node)

    def _line(self, node: Node) -> int:
        return self._first + node.start_mark.line
