"""Files, directories and standard input as objects, each with its place; what is no manifest becomes a complaint."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from berkelium_infra.errors import UserError
from berkelium_lab.check import yaml_reader
from berkelium_lab.check.findings import Complaint, Finding, Item, error, note
from berkelium_lab.check.yaml_reader import Chunk, Document, UnreadableYaml

STANDARD_INPUT = "-"
SUFFIXES = (".yaml", ".yml", ".json")

MAX_BYTES = 8 * 1024 * 1024
"""The largest file that is read: more than 2,000 ordinary objects. The API server takes 3 MiB in one request."""

MAX_OBJECTS = 5_000

_HELM = re.compile(r"\{\{-?\s*(?:\.|\$|/\*|(?:include|template|if|else|range|with|end|define|toYaml|printf|default)\b)")


class InputError(UserError):
    """A path that was given cannot be used at all."""


class Input:
    """What the given files hold: `items` in order, and `complaints` about what is no manifest."""

    def __init__(self, namespace: str | None = None) -> None:
        self.named = True
        """Whether the file at hand was named by the user, or found in a directory among files of other kinds."""
        self.items: list[Item] = []
        self.complaints: list[Complaint] = []
        self._namespace = namespace

    def add(self, file: str, content: bytes) -> None:
        """Take in one file's content."""
        text = self._text(file, content)
        if text is None:
            return
        found = 0
        for chunk in yaml_reader.chunks(text):
            found += 1
            document = self._document(file, chunk)
            if document is not None:
                self._objects(file, document, document.value, document.line, "")
        if not found:
            self._complain(file, 1, note("empty", "the file holds no object"))

    def _text(self, file: str, content: bytes) -> str | None:
        if len(content) > MAX_BYTES:
            size, limit = len(content) / 1024**2, MAX_BYTES // 1024**2
            problem = f"the file has {size:.1f} MB, more than the {limit} MB that are read"
            return self._complain(file, 1, error("too-large", problem, "split it into several files"))
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return self._complain(file, 1, error("not-text", "the file is UTF-16", "save it as UTF-8"))
        if b"\0" in content:
            return self._complain(file, 1, error("not-text", "the file is binary, not YAML or JSON"))
        try:
            return content.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as fault:
            line = content.count(b"\n", 0, fault.start) + 1
            return self._complain(file, line, error("not-text", "the file is not UTF-8 text"))

    def _document(self, file: str, chunk: Chunk) -> Document | None:
        try:
            document = yaml_reader.read(chunk)
        except UnreadableYaml as fault:
            template = _HELM.search(chunk.text)
            if template:
                line = chunk.line + chunk.text.count("\n", 0, template.start())
                return self._complain(file, line, _helm())
            return self._complain(file, fault.line, error("not-yaml", f"cannot be read as YAML: {fault.problem}"))
        return document

    def _objects(self, file: str, document: Document, value: Any, line: int, path: str) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            problem = f"this is {_kind_of(value)}, not a Kubernetes object"
            self._complain(file, line, error("not-an-object", problem))
            return
        kind = value.get("kind")
        if path == "" and not self.named and not {"kind", "apiVersion"} & set(value):
            self._complain(file, line, note("not-a-manifest", "not checked: this is no Kubernetes object"))
            return
        if not (kind and isinstance(kind, str) and isinstance(value.get("apiVersion"), str)):
            problem = "this is no Kubernetes object: apiVersion or kind is missing"
            self._complain(file, line, error("not-an-object", problem, "write both, for instance apiVersion: v1"))
            return
        if kind.endswith("List") and isinstance(value.get("items"), list):
            for index, member in enumerate(value["items"]):
                below = f"{path}.items[{index}]" if path else f"items[{index}]"
                self._objects(file, document, _typed(member, value), document.lines.get(below, line), below)
            return
        if len(self.items) >= MAX_OBJECTS:
            raise InputError(f"{file}: more than {MAX_OBJECTS:,} objects are given; check fewer at a time.")
        item = Item(file, line, value, _below(document.lines, path), self._namespace)
        if _HELM.search(str(value.get("metadata"))) or _HELM.search(str(value.get("spec"))):
            self._complain(file, line, _helm())
            return
        prefix = f"{path}." if path else ""
        for twice in document.duplicates:
            if twice.startswith(prefix):
                field = twice.removeprefix(prefix)
                item.add(error("duplicate-key", f"the key {field} stands twice", "keep one of the two", field))
        self.items.append(item)

    def _complain(self, file: str, line: int, finding: Finding) -> None:
        self.complaints.append(Complaint(file, line, finding))


def read(paths: Iterable[str], standard_input: bytes | None = None, namespace: str | None = None) -> Input:
    """Read the paths; `-` stands for `standard_input`. Objects without a namespace go to `namespace`.

    Raises `InputError` for a path that does not exist or cannot be opened.
    """
    given = Input(namespace)
    for path in paths:
        if path == STANDARD_INPUT:
            given.named = True
            given.add("<stdin>", standard_input or b"")
            continue
        found = list(files(Path(path)))
        if not found:
            finding = note("empty", f"the directory holds no {', '.join(SUFFIXES)} file")
            given.complaints.append(Complaint(path, 1, finding))
        given.named = not Path(path).is_dir()
        for file in found:
            try:
                given.add(str(file), file.read_bytes())
            except OSError as fault:
                raise InputError(f"{file} cannot be read: {fault.strerror}.") from None
    return given


def files(path: Path) -> Iterator[Path]:
    """The file itself, or the manifests below a directory; hidden files and directories are left out."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if file.suffix.lower() in SUFFIXES and file.is_file() and not hidden:
                yield file
    elif path.exists():
        yield path
    else:
        raise InputError(f"{path}: there is no such file or directory.")


def _typed(member: Any, listing: dict[str, Any]) -> Any:
    """An entry of a typed list, such as PodList, may leave out its own kind."""
    kind = listing["kind"].removesuffix("List")
    if isinstance(member, dict) and kind and "kind" not in member:
        return {"apiVersion": listing["apiVersion"], "kind": kind, **member}
    return member


def _below(lines: dict[str, int], path: str) -> dict[str, int]:
    """The lines of one entry of a list, by paths that begin at the entry."""
    if not path:
        return lines
    prefix = f"{path}."
    return _Below(lines, prefix)


class _Below(dict):
    """A view of the lines below a prefix; copying them for each of 2,000 entries would take seconds."""

    def __init__(self, lines: dict[str, int], prefix: str) -> None:
        super().__init__()
        self._lines = lines
        self._prefix = prefix

    def __contains__(self, path: object) -> bool:
        return f"{self._prefix}{path}" in self._lines

    def __getitem__(self, path: str) -> int:
        return self._lines[self._prefix + path]


def _kind_of(value: Any) -> str:
    names = {str: "plain text", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "a value")


def _helm() -> Finding:
    hint = "render the chart first: helm template NAME CHART | berkelium check -"
    return error("template", "this is a Helm template, not a manifest", hint)
