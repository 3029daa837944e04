"""Where the tools are built and found, and the keys that tell one build from another.

Below the cache directory, for each platform:

    tools/<platform>/<tool>/<key>/<tool>    a built program
    tools/<platform>/<tool>/partial/        a build in progress; under the lock of the tool's module
    tools/<platform>/<tool>/build.log       the whole output of the last build
    tools/<platform>/bin/<key>/             all programs of one state of the checkout, as hard links
    tools/<platform>/<module>.lock

A tool's key is a digest of its module's files, of what its entry in the table says of the program and of the flags of
the build: changing one module rebuilds that module's tools and no other. Go's own release is not part of it.
"""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from filelock import FileLock

from berkelium_lab import paths
from berkelium_lab.toolchain import gomod, table
from berkelium_lab.toolchain.errors import ToolchainError
from berkelium_lab.toolchain.table import Tool

SOURCE = Path(__file__).parents[2] / "tools"
BUILD_FLAGS = ("-trimpath", "-mod=readonly")
LINKER_FLAGS = ("-s", "-w")
BUILD_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
KEY_LENGTH = 16

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Platform:
    """An operating system and architecture by Go's names."""

    system: str
    architecture: str

    def __str__(self) -> str:
        return f"{self.system}-{self.architecture}"


def this_platform() -> Platform:
    machine = platform.machine().lower()
    return Platform(platform.system().lower(), _ARCHITECTURES.get(machine, machine))


@dataclass(frozen=True)
class Layout:
    """The tools of one checkout (`source` is its `tools/` directory) and their place in the cache."""

    source: Path = SOURCE
    tools: tuple[Tool, ...] = table.ALL
    cache: Path = field(default_factory=lambda: paths.cache_dir() / "tools")
    platform: Platform = field(default_factory=this_platform)

    @property
    def root(self) -> Path:
        return self.cache / str(self.platform)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.tools)

    def module(self, tool: Tool) -> Path:
        return self.source / tool.directory

    def go_mod(self, tool: Tool) -> Path:
        return self.module(tool) / "go.mod"

    def version(self, tool: Tool) -> str:
        return gomod.module_version(self.go_mod(tool), tool.module)

    def linker_flags(self, tool: Tool) -> str:
        """The value of `-ldflags`: stripped, with the tool's version where the program expects it."""
        version = self.version(tool)
        major, minor, *_ = [*version.split("."), "0"]
        values = {"version": version, "major": major, "minor": minor}
        assignments = [f"-X {name}={value.format(**values)}" for name, value in tool.variables]
        return " ".join([*LINKER_FLAGS, *assignments])

    def key(self, tool: Tool) -> str:
        entry = [tool.name, tool.package, tool.module, tool.variables, [asdict(file) for file in tool.generated]]
        recipe = [entry, BUILD_FLAGS, LINKER_FLAGS, BUILD_ENVIRONMENT]
        digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode())
        for file in _files(self.module(tool)):
            digest.update(f"\n{file.relative_to(self.source).as_posix()}\n".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()[:KEY_LENGTH]

    def home(self, tool: Tool) -> Path:
        """The directory of all builds of a tool."""
        return self.root / tool.name

    def binary(self, tool: Tool) -> Path:
        return self.home(tool) / self.key(tool) / tool.name

    def partial(self, tool: Tool) -> Path:
        return self.home(tool) / "partial"

    def log(self, tool: Tool) -> Path:
        return self.home(tool) / "build.log"

    def missing(self) -> list[Tool]:
        return [tool for tool in self.tools if not is_program(self.binary(tool))]

    def lock(self, directory: str) -> FileLock:
        """The lock that a process holds while it builds the tools of the module `directory`."""
        self.root.mkdir(parents=True, exist_ok=True)
        return FileLock(self.root / f"{directory}.lock")

    def assembled(self) -> Path:
        """The directory that holds the programs of this state of the checkout under their plain names."""
        keys = " ".join(self.key(tool) for tool in self.tools)
        return self.root / "bin" / hashlib.sha256(keys.encode()).hexdigest()[:KEY_LENGTH]

    def assemble(self) -> Path:
        """Fills `assembled()` from the built programs and returns it. Several processes may do so at once."""
        directory = self.assembled()
        directory.mkdir(parents=True, exist_ok=True)
        for tool in self.tools:
            target = directory / tool.name
            if not is_program(target):
                _link(self.binary(tool), target)
        return directory


def is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _link(source: Path, target: Path) -> None:
    """Hard links: a program that looks for others beside itself, as the Pulumi CLI does, finds them."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        temporary.hardlink_to(source)
    except OSError:
        shutil.copy2(source, temporary)
    temporary.replace(target)
    temporary.unlink(missing_ok=True)


def _files(module: Path) -> Iterator[Path]:
    if not (module / "go.mod").is_file():
        raise ToolchainError(
            f"{module} holds no go.mod. The tools are built from a checkout of the project: run the command there, "
            "or set BERKELIUM_TOOLS to a directory of ready binaries."
        )
    for file in sorted(module.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(module).parts)
        if file.is_file() and not hidden:
            yield file
