"""CEL selectors as text: their terms, the attributes that they read, and a form that is no error on any device."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_QUOTED = re.compile(r"""r?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_ACCESS = re.compile(
    r"""device\.(?P<map>attributes|capacity)\[\s*(?P<quote>["'])(?P<domain>[^"']+)(?P=quote)\s*\]"""
    r"""(?:\.(?P<optional>\??)(?P<name>[A-Za-z_]\w*)|\[\s*(?P<opt2>\??)\s*["'](?P<key>[^"']+)["']\s*\])"""
)
_METHODS = ("orValue", "hasValue", "with", "contains", "size", "exists", "all")
_DEFAULTS = {"string": '""', "version": 'semver("0.0.0")', "int": "0", "bool": "false", "capacity": 'quantity("0")'}


@dataclass(frozen=True)
class Access:
    """One read of an attribute or a capacity; `guarded` where its absence is no error."""

    text: str
    kind: str
    domain: str
    name: str
    guarded: bool

    @property
    def qualified(self) -> str:
        return f"{self.domain}/{self.name}"


def terms(expression: str) -> list[str]:
    """The parts of a conjunction at its top level; the expression itself when it is none."""
    parts, depth, start, index = [], 0, 0, 0
    text = expression.strip()
    while index < len(text):
        quoted = _QUOTED.match(text, index)
        if quoted:
            index = quoted.end()
            continue
        depth += (text[index] in "([{") - (text[index] in ")]}")
        if depth == 0 and text.startswith(("||", "? "), index):
            # A disjunction or a condition binds weaker than the conjunctions around it.
            return [text]
        if depth == 0 and text.startswith("&&", index):
            parts.append(text[start:index].strip())
            start = index = index + 2
            continue
        index += 1
    return [*parts, text[start:].strip()]


def accesses(expression: str) -> Iterator[Access]:
    """The attributes and capacities that an expression reads, in order."""
    for match in _ACCESS.finditer(expression):
        name = match["name"] or match["key"]
        if match["name"] in _METHODS:
            continue
        guarded = bool(match["optional"] or match["opt2"])
        yield Access(match[0], match["map"], match["domain"], name, guarded)


def guarded(expression: str, access: Access, value_type: str, driver: str | None) -> str:
    """The expression with that read made safe, and with the driver asked first when `driver` is given."""
    default = _DEFAULTS.get("capacity" if access.kind == "capacity" else value_type, '""')
    safe = f'device.{access.kind}["{access.domain}"].?{access.name}.orValue({default})'
    text = expression.strip()
    if not access.guarded:
        text = text.replace(access.text, safe)
    if driver and "device.driver" not in text:
        text = f'device.driver == "{driver}" && ' + (f"({text})" if len(terms(text)) == 1 and "||" in text else text)
    return text


def literals(term: str) -> list[str]:
    """The quoted texts of a term that are not names of domains."""
    domains = {access.domain for access in accesses(term)}
    found = [match[1][1:-1] for match in _QUOTED.finditer(term)]
    return [text for text in found if text not in domains]
