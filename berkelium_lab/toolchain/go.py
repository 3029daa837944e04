"""The Go command: found, checked for its release, and run with an environment that leaves nothing to chance."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from berkelium_lab.toolchain import gomod
from berkelium_lab.toolchain.errors import ToolchainError
from berkelium_lab.toolchain.layout import BUILD_ENVIRONMENT, BUILD_FLAGS, Layout
from berkelium_lab.toolchain.processes import ProcessGroups
from berkelium_lab.toolchain.table import Tool

_MARK = "berkelium:"
_INSTEAD = "or set BERKELIUM_TOOLS to a directory of ready binaries."


@dataclass(frozen=True)
class Go:
    """Runs Go for the tools of a layout; `groups` is what stops it."""

    executable: str
    groups: ProcessGroups
    layout: Layout

    def environment(self, tool: Tool) -> dict[str, str]:
        """The user's environment, for its proxies and caches, with what decides about the program fixed."""
        return {
            **os.environ,
            **BUILD_ENVIRONMENT,
            "GO111MODULE": "on",
            "GOOS": self.layout.platform.system,
            "GOARCH": self.layout.platform.architecture,
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            "GOTMPDIR": str(self.layout.partial(tool)),
        }

    def run(self, arguments: Sequence[str], tool: Tool, on_line: Callable[[str], None]) -> None:
        """Runs Go in the tool's module, its temporary files in the tool's partial build.

        Raises CommandFailed and Cancelled.
        """
        self.groups.run([self.executable, *arguments], self.layout.module(tool), self.environment(tool), on_line)

    def list_dependencies(
        self,
        template: str,
        tool: Tool,
        flags: Sequence[str],
        on_line: Callable[[str], None],
    ) -> list[str]:
        """What `template` (of `go list`) says of the tool's packages, where it says anything, in no order.

        Downloads what is missing, and as a build does, writes nothing into the module. Raises as `run`.
        """
        found: list[str] = []

        def collect(line: str) -> None:
            if line.startswith(_MARK):
                found.append(line.removeprefix(_MARK))
            else:
                on_line(line)

        self.run(["list", "-deps", "-f", _MARK + template, *BUILD_FLAGS, *flags, tool.package], tool, collect)
        return [text for text in found if text]


def find_go(layout: Layout, tools: Sequence[Tool], groups: ProcessGroups) -> Go:
    """The Go of `$PATH`.

    Raises ToolchainError when there is none, or it is older than a tool's go.mod asks for.
    """
    needed = max(gomod.required_go(layout.go_mod(tool)) for tool in tools)
    wanted = "Go {}.{}.{} or later is needed to build the lab's tools".format(*needed)
    install = f"Install it from https://go.dev/dl/ and have its bin directory in PATH, {_INSTEAD}"
    executable = shutil.which("go")
    if executable is None:
        raise ToolchainError(f"{wanted}, and there is no `go` in PATH. {install}")
    found = _release(executable)
    release = gomod.parse_go_release(found)
    if release is not None and release < needed:
        raise ToolchainError(f"{wanted}; {executable} is {found}. {install}")
    return Go(executable, groups, layout)


def clean_caches() -> None:
    """Empties Go's build and module caches, which all Go projects of the user share. Raises ToolchainError."""
    executable = shutil.which("go")
    if executable is None:
        raise ToolchainError("There is no `go` in PATH to clean Go's caches with.")
    done = subprocess.run([executable, "clean", "-cache", "-modcache"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolchainError(f"`go clean -cache -modcache` failed:\n{done.stderr.strip()}")


def _release(executable: str) -> str:
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}
    done = subprocess.run(
        [executable, "env", "GOVERSION"], cwd="/", env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ToolchainError(f"`{executable} env GOVERSION` failed:\n{done.stderr.strip()}")
    return done.stdout.strip()
