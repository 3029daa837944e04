"""Named patterns of a policy: `policies/<name>/parts/*.yaml` as typed data.

A pattern is a RE2 expression in which `{name}` stands for a fragment and one space for any number of spaces (not
inside square brackets, where a space is a space). Every pattern carries its own examples, which are its unit tests.
"""

import re
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from berkelium_infra.errors import UserError

FastLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader, in C where PyYAML was built with it: ten times as fast."""

REFERENCE = re.compile(r"\{([a-z][a-z-]*)\}")


class PartsError(UserError):
    """A parts file that cannot be read, or a pattern that refers to something unknown."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Pattern(_Strict):
    """One named pattern with texts that it accepts and texts that it rejects."""

    name: str
    about: str = ""
    pattern: str
    accepts: tuple[str, ...]
    rejects: tuple[str, ...]


class Letter(_Strict):
    """A class of statements: the letter that stands for it in a shape, and the patterns that put a statement there."""

    letter: str
    about: str
    patterns: tuple[Pattern, ...]


class Parts(_Strict):
    """All patterns of a policy.

    `looks` decide whether a command is read at all; `fragments` are used by other patterns only; `scanners` cut text
    into pieces; `letters` classify one statement, and the first letter that matches wins (`programs` where it is an
    interpreter's program); `shapes` are searched in the row of letters.
    """

    looks: tuple[Pattern, ...]
    fragments: tuple[Pattern, ...]
    scanners: tuple[Pattern, ...]
    letters: tuple[Letter, ...]
    programs: tuple[Letter, ...]
    shapes: tuple[Pattern, ...]

    def pattern(self, name: str) -> str:
        """The complete RE2 expression of a fragment, scanner or shape, all references resolved."""
        for candidate in (*self.looks, *self.fragments, *self.scanners):
            if candidate.name == name:
                return self._resolved(candidate, spaces=candidate in self.fragments)
        for shape in self.shapes:
            if shape.name == name:
                return self._resolved(shape, spaces=False)
        raise PartsError(f"no pattern is called {name!r}")

    def statement(self, pattern: Pattern) -> str:
        """The expression of one pattern of a letter; it must match a whole statement."""
        return self._resolved(pattern, spaces=True)

    def letter(self, letter: Letter) -> str:
        """The expression that matches the statements for which a letter stands."""
        return f"^(?:{'|'.join(self.statement(pattern) for pattern in letter.patterns)}) *&?$"

    def any_shape(self) -> str:
        """One expression that finds any of the shapes that are idle."""
        return "|".join(f"(?:{self.pattern(shape.name)})" for shape in self.shapes)

    def _resolved(self, pattern: Pattern, spaces: bool) -> str:
        text = re.sub(r"\s*\n\s*", "", pattern.pattern)
        if spaces:
            text = _any_number_of_spaces(text)

        def replacement(reference: re.Match[str]) -> str:
            return f"(?:{self.pattern(reference[1])})"

        return REFERENCE.sub(replacement, text)


def _any_number_of_spaces(pattern: str) -> str:
    """Every single space outside square brackets becomes ` +`, unless it already carries a repetition."""
    out: list[str] = []
    in_brackets = False
    for index, char in enumerate(pattern):
        escaped = index > 0 and pattern[index - 1] == "\\"
        if char == "[" and not escaped and not in_brackets:
            in_brackets = True
        elif char == "]" and not escaped:
            in_brackets = False
        repeated = pattern[index + 1 : index + 2] in {"*", "+", "?"}
        out.append(" +" if char == " " and not in_brackets and not repeated else char)
    return "".join(out)


def load(directory: Path) -> Parts:
    """Reads `parts/`, one file per group; raises `PartsError` with the file, the key and what is wrong."""
    groups = {path.stem: path for path in sorted(directory.glob("*.yaml"))}
    if unknown := set(groups) - set(Parts.model_fields):
        raise PartsError(
            f"{directory}: {', '.join(sorted(unknown))} is no group; write {', '.join(Parts.model_fields)}"
        )
    read = {group: yaml.load(path.read_text(encoding="utf-8"), Loader=FastLoader) for group, path in groups.items()}
    try:
        return Parts.model_validate(read)
    except ValidationError as error:
        first = error.errors()[0]
        group, *inside = map(str, first["loc"])
        raise PartsError(f"{directory / group}.yaml: {'.'.join(inside) or 'file'}: {first['msg']}") from None
