"""What a check finds: objects of the input with their findings, and complaints about files that are not manifests."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Object = dict[str, Any]

DEFAULT_NAMESPACE = "default"


class Severity(StrEnum):
    """An error means that something will not run; a warning fails the check only with `--strict`."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing to say about an object or a file.

    `code` is a short name of its kind (`unknown-field`, `policy`, `no-devices`, …), `hint` what to write instead,
    `path` the field of the object, such as `spec.containers[0].image`.
    """

    severity: Severity
    code: str
    message: str
    hint: str = ""
    path: str = ""


def error(code: str, message: str, hint: str = "", path: str = "") -> Finding:
    """A finding of severity error."""
    return Finding(Severity.ERROR, code, message, hint, path)


def warning(code: str, message: str, hint: str = "", path: str = "") -> Finding:
    """A finding of severity warning."""
    return Finding(Severity.WARNING, code, message, hint, path)


def note(code: str, message: str, hint: str = "", path: str = "") -> Finding:
    """A finding of severity note."""
    return Finding(Severity.NOTE, code, message, hint, path)


UNCHECKED = "unchecked"
"""Code of an error that is the check's, not the manifest's: the question could not be put."""


@dataclass(eq=False)
class Item:
    """One object of the input. `lines` maps field paths to lines of the file; `line` is where the object begins."""

    file: str
    line: int
    obj: Object
    lines: dict[str, int] = field(default_factory=dict)
    namespace_given: str | None = None
    findings: list[Finding] = field(default_factory=list)
    placement: str = ""
    skipped: bool = False

    @property
    def api_version(self) -> str:
        return _text(self.obj.get("apiVersion"))

    @property
    def kind(self) -> str:
        return _text(self.obj.get("kind"))

    @property
    def metadata(self) -> Object:
        metadata = self.obj.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def name(self) -> str:
        """The name, or the prefix of a generated one."""
        return _text(self.metadata.get("name")) or _text(self.metadata.get("generateName"))

    @property
    def namespace(self) -> str:
        """The namespace that the object would go to."""
        return _text(self.metadata.get("namespace")) or self.namespace_given or DEFAULT_NAMESPACE

    @property
    def title(self) -> str:
        """For instance `Pod my-project/train`; the namespace only where the manifest states one."""
        where = _text(self.metadata.get("namespace"))
        name = self.name or "(no name)"
        return f"{self.kind} {where}/{name}" if where else f"{self.kind} {name}"

    @property
    def failed(self) -> bool:
        """Whether anything found means that the object will not run."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def add(self, *findings: Finding) -> None:
        """Add findings, each only once."""
        self.findings += [finding for finding in findings if finding not in self.findings]

    def line_of(self, path: str) -> int:
        """The line of a field, or of the nearest one around it that the file has."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.line


@dataclass(frozen=True)
class Complaint:
    """A finding about a file, or about a part of it that is no object."""

    file: str
    line: int
    finding: Finding


@dataclass
class Report:
    """The outcome of a check. `where` says what was asked, for instance `a lab of this command's own`."""

    items: list[Item]
    complaints: list[Complaint]
    where: str

    def count(self, severity: Severity) -> int:
        """How many findings have that severity."""
        found = [finding for item in self.items for finding in item.findings]
        found += [complaint.finding for complaint in self.complaints]
        return sum(finding.severity is severity for finding in found)

    def exit_code(self, strict: bool = False) -> int:
        """0 all fine, 1 something will not run, 2 some question could not be put."""
        findings = [finding for item in self.items for finding in item.findings]
        findings += [complaint.finding for complaint in self.complaints]
        if any(finding.code == UNCHECKED and finding.severity is Severity.ERROR for finding in findings):
            return 2
        failing = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
        return int(any(finding.severity in failing for finding in findings))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
