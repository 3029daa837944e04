"""A small `tools/` with a `go` that compiles nothing: what the toolchain's tests build with.

The fake `go` answers the commands that a build uses. `go build` appends the package to the file `builds`, writes the
program (a shell script that prints its linker flags, and so its version) and obeys the files that a test may put into
its control directory: `fail` (printed, then exit code 1), `hold` (write its own process id and that of a child into
`held.<id>`, then wait until `hold` is gone).
"""

import os
import subprocess
import sys
from pathlib import Path

from berkelium_lab.toolchain.layout import Layout, Platform, this_platform
from berkelium_lab.toolchain.table import Tool

RELEASE = "go1.26.8"

FAKE_GO = """\
#!{python} -S
import os, subprocess, sys, time
from pathlib import Path

control = Path({control!r})
command, *arguments = sys.argv[1:]
if command == "env":
    print((control / "release").read_text())
elif command == "list":
    print("go: downloading example.com/library v1.0.0")
    mark = arguments[arguments.index("-f") + 1].partition("{{{{")[0]
    print(f"{{mark}}\\n{{mark}}example.com/library\\n{{mark}}{{arguments[-1]}}")
elif command == "build":
    package = arguments[-1]
    with (control / "builds").open("a") as log:
        print(package, file=log)
    print("example.com/library", flush=True)
    if (control / "fail").exists():
        print((control / "fail").read_text(), flush=True)
        sys.exit(1)
    if (control / "hold").exists():
        child = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])
        (control / f"new.{{os.getpid()}}").write_text(f"{{os.getpid()}} {{child.pid}}")
        (control / f"new.{{os.getpid()}}").rename(control / f"held.{{os.getpid()}}")
        while (control / "hold").exists():
            time.sleep(0.02)
        child.kill()
    program = Path(arguments[arguments.index("-o") + 1])
    flags = arguments[arguments.index("-ldflags") + 1]
    program.write_text(f"#!/bin/sh\\necho '{{program.name}} {{flags}}'\\n")
    program.chmod(0o755)
    print(package)
else:
    sys.exit(f"the fake go knows no {{command}}")
"""

DRIVER = """\
import signal, sys
from pathlib import Path
from berkelium_lab.toolchain import ToolchainError, ensure_tools
from tests.unit.toolchain_workshop import Workshop

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print(ensure_tools(lambda line: print(line, flush=True), Workshop(Path(sys.argv[1])).layout()).directory)
except ToolchainError as error:
    sys.exit(f"Error: {error}")
"""


def tool(name: str, directory: str | None = None) -> Tool:
    """A tool whose version, that of `example.com/<directory>`, the linker sets and `--version` prints."""
    directory = directory or name
    return Tool(
        name,
        directory=directory,
        package=f"example.com/{directory}/cmd/{name}",
        module=f"example.com/{directory}",
        memory_mib=16,
        variables=(("main.version", "v{version}"),),
    )


class Workshop:
    """Two modules, `anvil` with one tool and `smithy` with two, below `root`; the cache and the fake `go` beside."""

    tools = (tool("anvil"), tool("hammer", "smithy"), tool("tongs", "smithy"))

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root / "tools"
        self.control = root / "control"
        self.bin = root / "bin"

    def set_up(self) -> "Workshop":
        for directory in (self.control, self.bin):
            directory.mkdir()
        go = self.bin / "go"
        go.write_text(FAKE_GO.format(python=sys.executable, control=str(self.control)))
        go.chmod(0o755)
        self.write_release(RELEASE)
        self.write_module("anvil", "1.2.3")
        self.write_module("smithy", "0.9.0")
        return self

    def write_module(self, directory: str, version: str) -> None:
        module = self.source / directory
        module.mkdir(parents=True, exist_ok=True)
        (module / "go.mod").write_text(
            f"module berkelium.io/tools/{directory}\n\ngo 1.26.0\n\nrequire example.com/{directory} v{version}\n"
        )
        (module / "go.sum").write_text(f"example.com/{directory} v{version} h1:digest\n")

    def write_release(self, release: str) -> None:
        (self.control / "release").write_text(release)

    def layout(self, platform: Platform | None = None) -> Layout:
        return Layout(self.source, self.tools, self.root / "cache", platform or this_platform())

    @property
    def builds(self) -> list[str]:
        """The names of the tools that the fake `go` has built or begun to build, sorted."""
        log = self.control / "builds"
        return sorted(Path(line).name for line in log.read_text().splitlines()) if log.exists() else []

    @property
    def hold(self) -> Path:
        return self.control / "hold"

    def held(self) -> list[int]:
        """The process ids of the builds that are, or were, held, and of their children."""
        return [int(number) for file in self.control.glob("held.*") for number in file.read_text().split()]

    def start(self) -> "subprocess.Popen[str]":
        """Another process that makes sure of this workshop's tools."""
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(self.root)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"},
            stdout=(self.control / f"output-{len(list(self.control.glob('output-*')))}").open("w"),
            stderr=subprocess.STDOUT,
            text=True,
        )

    def output(self, number: int) -> str:
        """What the process started as number `number` (from 0) has printed."""
        return (self.control / f"output-{number}").read_text()
