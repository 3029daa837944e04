"""The real Go builds a small tool as it builds the lab's: from a module proxy (a directory), with generated files."""

import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from berkelium_lab.toolchain import Toolchain, ToolchainError, ensure_tools
from berkelium_lab.toolchain.layout import Layout
from berkelium_lab.toolchain.table import GeneratedFile, Tool

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="there is no go in PATH")

LIBRARY = "example.com/library"
COMMIT = "v1.0.0-20260115033456-f47bc2d6f199"

TOOL = Tool(
    "parrot",
    directory="parrot",
    package=".",
    module=LIBRARY,
    memory_mib=256,
    variables=((f"{LIBRARY}.Version", "{version}"),),
    generated=(GeneratedFile("schema.json", "spec/schema.json", versioned=True),),
)

LIBRARY_GO = """package library

var Version = "unset"
"""

MAIN_GO = """package main

import (
	_ "embed"
	"os"

	"example.com/library"
)

//go:embed schema.json
var schema []byte

func main() { os.Stdout.WriteString(library.Version + "\\n" + string(schema) + "\\n") }
"""


@dataclass(frozen=True)
class Checkout:
    root: Path

    def layout(self) -> Layout:
        return Layout(self.root / "tools", (TOOL,), self.root / "cache")

    @property
    def module(self) -> Path:
        return self.root / "tools" / "parrot"


def publish(proxy: Path) -> None:
    """Writes the library as a module proxy serves it (go.dev/ref/mod#goproxy-protocol)."""
    versions = proxy / LIBRARY / "@v"
    versions.mkdir(parents=True)
    go_mod = f"module {LIBRARY}\n\ngo 1.26\n"
    (versions / f"{COMMIT}.mod").write_text(go_mod)
    (versions / f"{COMMIT}.info").write_text(json.dumps({"Version": COMMIT}))
    with zipfile.ZipFile(versions / f"{COMMIT}.zip", "w") as archive:
        for name, text in {
            "go.mod": go_mod,
            "library.go": LIBRARY_GO,
            "spec/schema.json": '{\n    "name": "parrot",\n    "version": "0"\n}\n',
        }.items():
            archive.writestr(f"{LIBRARY}@{COMMIT}/{name}", text)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    checkout = Checkout(tmp_path)
    publish(tmp_path / "proxy")
    monkeypatch.delenv("BERKELIUM_TOOLS", raising=False)
    monkeypatch.setenv("GOPROXY", f"file://{tmp_path}/proxy")
    monkeypatch.setenv("GONOSUMDB", "*")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    # Files of a module cache are read-only otherwise, and pytest could not remove the directory.
    monkeypatch.setenv("GOFLAGS", "-modcacherw")
    checkout.module.mkdir(parents=True)
    (checkout.module / "main.go").write_text(MAIN_GO)
    (checkout.module / "go.mod").write_text(
        f"module berkelium.io/tools/parrot\n\ngo 1.26.0\n\nrequire {LIBRARY} {COMMIT} // v4.25.0\n"
    )
    subprocess.run(["go", "mod", "tidy"], cwd=checkout.module, check=True, capture_output=True)
    return checkout


def digest(directory: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.rglob("*") if path.is_file()}


def printed(toolchain: Toolchain) -> list[str]:
    return subprocess.run([toolchain.path("parrot")], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_version_of_go_mod_and_the_generated_file_are_in_the_program_and_nothing_is_in_the_checkout(
    checkout: Checkout,
) -> None:
    before = digest(checkout.module)
    lines: list[str] = []
    built = ensure_tools(lines.append, checkout.layout())
    assert printed(built) == ["4.25.0", '{"name":"parrot","version":"4.25.0"}']
    assert digest(checkout.module) == before
    assert any("parrot 4.25.0: built in" in line for line in lines)


def test_a_programs_debug_information_and_paths_are_stripped(checkout: Checkout) -> None:
    program = ensure_tools(None, checkout.layout()).path("parrot").read_bytes()
    assert b".debug_info" not in program
    assert str(checkout.root).encode() not in program


def test_a_compile_error_is_shown_with_its_file_and_line(checkout: Checkout) -> None:
    (checkout.module / "main.go").write_text(MAIN_GO.replace("library.Version", "library.Edition"))
    with pytest.raises(ToolchainError, match=r"main\.go:13:\d+: undefined: library\.Edition"):
        ensure_tools(None, checkout.layout())


def test_a_module_that_cannot_be_downloaded_is_said_to_be_for_want_of_a_network(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOMODCACHE", str(checkout.root / "empty"))
    # Port 9 (discard) is closed on a loopback interface.
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    with pytest.raises(ToolchainError, match="there is no network, or the module proxy cannot be reached"):
        ensure_tools(None, checkout.layout())


def test_a_module_whose_sum_is_missing_is_not_built(checkout: Checkout) -> None:
    os.truncate(checkout.module / "go.sum", 0)
    with pytest.raises(ToolchainError, match="go mod tidy"):
        ensure_tools(None, checkout.layout())
    assert (checkout.module / "go.sum").read_text() == ""
