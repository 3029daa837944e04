"""A report for people, for programs, and for a pull request."""

import json
from collections.abc import Iterator
from typing import Any

from berkelium_lab.check.findings import Complaint, Finding, Item, Report, Severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def text(report: Report) -> str:
    """One block per object, and a line with the sum."""
    blocks = [_block(item) for item in report.items]
    blocks += [_complaint(complaint) for complaint in report.complaints]
    return "\n".join([*blocks, _sum(report)])


def _block(item: Item) -> str:
    lines = [f"{_mark(item):8}{item.file}:{item.line}  {item.title}"]
    if item.placement:
        lines.append(f"        {item.placement}")
    for finding in _ordered(item.findings):
        lines += _lines(finding, item.line_of(finding.path) if finding.path else None)
    return "\n".join(lines)


def _ordered(findings: list[Finding]) -> list[Finding]:
    """The gravest first; a note whose advice an error gives too is left out."""
    advice = {finding.hint for finding in findings if finding.severity is Severity.ERROR and finding.hint}
    kept = [f for f in findings if f.severity is not Severity.NOTE or f.hint not in advice]
    return sorted(kept, key=lambda finding: list(Severity).index(finding.severity))


def _mark(item: Item) -> str:
    if item.failed:
        return "FAIL"
    if item.skipped:
        return "skipped"
    return "warning" if any(f.severity is Severity.WARNING for f in item.findings) else "ok"


def _complaint(complaint: Complaint) -> str:
    mark = "FAIL" if complaint.finding.severity is Severity.ERROR else complaint.finding.severity
    return "\n".join([f"{mark:8}{complaint.file}:{complaint.line}", *_lines(complaint.finding, None)])


def _lines(finding: Finding, line: int | None) -> Iterator[str]:
    where = f" (line {line})" if line else ""
    first, *more = finding.message.splitlines() or [""]
    yield f"        {finding.severity}: {first}{where}"
    yield from (f"          {text}" for text in more)
    yield from (f"          | {text}" for text in finding.hint.splitlines())


def _sum(report: Report) -> str:
    failed = sum(item.failed for item in report.items)
    skipped = sum(item.skipped and not item.failed for item in report.items)
    unread = sum(c.finding.severity is Severity.ERROR for c in report.complaints)
    parts = [f"{len(report.items) - failed - skipped} fine", f"{failed} will not run"]
    parts += [f"{skipped} skipped"] if skipped else []
    parts += [f"{unread} parts unreadable"] if unread else []
    warnings = report.count(Severity.WARNING)
    parts += [f"{warnings} warnings"] if warnings else []
    return f"{len(report.items)} objects in {report.where}: {', '.join(parts)}"


def as_json(report: Report, strict: bool) -> str:
    """The whole report as one JSON document."""
    document: dict[str, Any] = {
        "where": report.where,
        "exitCode": report.exit_code(strict),
        "objects": [_object(item) for item in report.items],
        "files": [
            {"file": c.file, "line": c.line, **_finding(c.finding, c.line)} for c in report.complaints
        ],
    }  # fmt: skip
    return json.dumps(document, indent=2, ensure_ascii=False)


def _object(item: Item) -> dict[str, Any]:
    return {
        "file": item.file,
        "line": item.line,
        "apiVersion": item.api_version,
        "kind": item.kind,
        "namespace": item.metadata.get("namespace"),
        "name": item.name,
        "verdict": "fails" if item.failed else "skipped" if item.skipped else "fine",
        "placement": item.placement or None,
        "findings": [_finding(finding, item.line_of(finding.path)) for finding in item.findings],
    }


def _finding(finding: Finding, line: int) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "message": finding.message,
        "hint": finding.hint or None,
        "path": finding.path or None,
        "line": line,
    }


def github(report: Report) -> str:
    """Workflow commands that GitHub shows beside the lines of a pull request."""
    lines = []
    for item in report.items:
        for finding in item.findings:
            lines.append(_command(finding, item.file, item.line_of(finding.path), item.title))
    for complaint in report.complaints:
        lines.append(_command(complaint.finding, complaint.file, complaint.line, "berkelium check"))
    return "\n".join([*lines, _sum(report)])


def _command(finding: Finding, file: str, line: int, title: str) -> str:
    message = f"{finding.message}\n{finding.hint}".strip()
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    properties = {"file": file, "line": str(line), "title": title}
    stated = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {stated}::{escaped}"


def _property(value: str) -> str:
    for sign, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C")):
        value = value.replace(sign, code)
    return value
