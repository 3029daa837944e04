"""Which devices a class selects, as far as that can be told without the scheduler.

A selector of this project is a chain of `&&` over comparisons of the driver and of string attributes with literals;
these are evaluated here. Any other term is left open, since only CEL itself can tell: the answer is then None unless
another term is false.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from berkelium_lab.api import Object

_TEXT = r"(?:\"[^\"\\]*\"|'[^'\\]*')"
_DRIVER = re.compile(rf"device\.driver\s*==\s*(?P<value>{_TEXT})")
_ATTRIBUTE = re.compile(
    rf"device\.attributes\[(?P<domain>{_TEXT})\]\."
    r"(?:(?P<plain>\w+)|\?(?P<optional>\w+)\.orValue\((?P<default>" + _TEXT + r")\))"
    rf"\s*(?:==\s*(?P<value>{_TEXT})|in\s*(?P<values>\[[^\]]*\]))"
)


class MissingAttribute(Exception):
    """A selector asks for an attribute that the device lacks: an error that stops the whole pod's scheduling."""


@dataclass(frozen=True)
class _Term:
    """One comparison; `attribute` is qualified by its domain, None for the driver. `default` makes it optional."""

    attribute: str | None
    values: frozenset[str]
    default: str | None = None

    def holds(self, driver: str, attributes: Mapping[str, str]) -> bool:
        if self.attribute is None:
            return driver in self.values
        value = attributes.get(self.attribute, self.default)
        if value is None:
            raise MissingAttribute(self.attribute)
        return value in self.values


@dataclass(frozen=True)
class Selector:
    """A chain of terms, all of which must hold; they are tried in order. None stands for a term that is left open."""

    terms: tuple[_Term | None, ...]

    @property
    def open(self) -> bool:
        """Whether some term cannot be evaluated here."""
        return None in self.terms

    @property
    def drivers(self) -> frozenset[str] | None:
        """The drivers whose devices it can select; None when it does not say."""
        named = [term.values for term in self.terms if term and term.attribute is None]
        return frozenset.intersection(*named) if named else None

    def may_match(self, driver: str, attributes: Mapping[str, str]) -> bool:
        """Whether a device is selected as far as can be told; an error selects nothing."""
        try:
            return self.matches(driver, attributes) is not False
        except MissingAttribute:
            return False

    def matches(self, driver: str, attributes: Mapping[str, str]) -> bool | None:
        """Whether a device with these qualified attributes is selected; None when it hangs on an open term.

        Raises `MissingAttribute`, unless an earlier term is false or open.
        """
        answer: bool | None = True
        for term in self.terms:
            try:
                if term is None:
                    answer = None
                elif not term.holds(driver, attributes):
                    return False
            except MissingAttribute:
                if answer is None:
                    return None
                raise
        return answer


def parse(expressions: list[str]) -> Selector:
    """The selector that all the expressions of a class make together."""
    terms: list[_Term | None] = []
    for expression in expressions:
        # Both bind less tightly than &&, so the parts between && would be no terms.
        whole = "||" in expression or " ? " in expression
        terms += [None] if whole else [_term(part.strip()) for part in expression.split("&&")]
    return Selector(tuple(terms))


def _term(text: str) -> _Term | None:
    if driver := _DRIVER.fullmatch(text):
        return _Term(None, frozenset([_unquoted(driver["value"])]))
    found = _ATTRIBUTE.fullmatch(text)
    if found is None:
        return None
    values = [found["value"]] if found["value"] else re.findall(_TEXT, found["values"])
    default = _unquoted(found["default"]) if found["default"] else None
    name = f"{_unquoted(found['domain'])}/{found['plain'] or found['optional']}"
    return _Term(name, frozenset(_unquoted(value) for value in values), default)


def _unquoted(text: str) -> str:
    return text[1:-1]


def expressions(device_class: Object) -> list[str]:
    """The CEL expressions of a DeviceClass."""
    selectors = (device_class.get("spec") or {}).get("selectors") or []
    return [selector["cel"]["expression"] for selector in selectors if "cel" in selector]


def attributes(driver: str, device: Object) -> dict[str, str]:
    """A device's attributes as text, each name qualified by its domain, which is the driver's where none is written."""
    return {
        name if "/" in name else f"{driver}/{name}": str(next(iter(value.values())))
        for name, value in (device.get("attributes") or {}).items()
    }
