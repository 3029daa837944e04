"""What a go.mod says: the version of a module, and the Go release that the module needs."""

import re
from pathlib import Path

from berkelium_lab.toolchain.errors import ToolchainError

_PSEUDO_VERSION = re.compile(r"[-.]\d{14}-[0-9a-f]{12}$")
_RELEASE = re.compile(r"\bv(\d+\.\d+\.\d+\S*)")
_GO_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def module_version(go_mod: Path, module: str) -> str:
    """The version, without its `v`, at which `go_mod` requires `module`.

    A pseudo-version names a commit, not a release: the release is then read from the comment on its line, as in
    `require example.com/x v0.0.0-20260102030405-0123456789ab // v1.2.3`.

    Raises ToolchainError when the module is not required, or a pseudo-version has no such comment.
    """
    required = re.search(
        rf"^\s*(?:require\s+)?{re.escape(module)}[ \t]+v(\S+)[ \t]*(?://(.*))?$", _read(go_mod), re.MULTILINE
    )
    if required is None:
        raise ToolchainError(f"{go_mod}: no line requires {module}, whose version the tool's own is.")
    version, comment = required.group(1), required.group(2) or ""
    if not _PSEUDO_VERSION.search(version):
        return version.removesuffix("+incompatible")
    release = _RELEASE.search(comment)
    if release is None:
        raise ToolchainError(
            f"{go_mod}: {module} is required at a commit (v{version}). "
            "Write the release that it is as a comment at the end of that line, such as: // v1.2.3"
        )
    return release.group(1)


def required_go(go_mod: Path) -> tuple[int, int, int]:
    """The oldest Go release that may build the module, from its `go` line.

    Raises ToolchainError when there is no such line.
    """
    line = re.search(r"^go\s+(\S+)", _read(go_mod), re.MULTILINE)
    release = parse_go_release(line.group(1)) if line else None
    if release is None:
        raise ToolchainError(f"{go_mod}: no `go` line says which Go release the module needs.")
    return release


def parse_go_release(text: str) -> tuple[int, int, int] | None:
    """`go1.26.8` or `1.26rc1` as numbers; None for what names no release, such as a development build."""
    found = _GO_RELEASE.match(text.removeprefix("go"))
    if found is None:
        return None
    major, minor, patch = found.groups(default="0")
    return int(major), int(minor), int(patch)


def _read(go_mod: Path) -> str:
    try:
        return go_mod.read_text(encoding="utf-8")
    except OSError as error:
        raise ToolchainError(f"{go_mod} cannot be read: {error.strerror}.") from error
