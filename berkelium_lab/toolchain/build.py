"""The build of one tool: generated files, Go's build, the version check, and the move to its place."""

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from berkelium_lab.toolchain.errors import ToolchainError
from berkelium_lab.toolchain.failures import build_failure
from berkelium_lab.toolchain.go import Go
from berkelium_lab.toolchain.layout import BUILD_FLAGS, Layout
from berkelium_lab.toolchain.processes import CommandFailed
from berkelium_lab.toolchain.progress import Progress, ToolProgress, duration
from berkelium_lab.toolchain.table import Tool


def build(layout: Layout, tool: Tool, go: Go, progress: Progress) -> None:
    """Builds `tool` into its place in the cache; the caller holds the lock of the tool's module.

    The program appears there whole or not at all. What an earlier, interrupted build left is removed; what that build
    compiled is in Go's own cache and is not compiled again.

    Raises ToolchainError when a command fails, the program's version is not the module's, or the module is changed
    meanwhile; Cancelled after an interruption.
    """
    follow = ToolProgress(progress, tool.name)
    place = layout.binary(tool)
    partial = layout.partial(tool)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, partial, ignore_errors=True)
        log = stack.enter_context(layout.log(tool).open("w", encoding="utf-8"))

        def on_line(line: str) -> None:
            print(line, file=log, flush=True)
            follow.line(line)

        try:
            program = _compile(layout, tool, go, follow, on_line)
            if layout.binary(tool) != place:
                raise ToolchainError(f"{layout.module(tool)} was changed while {tool.name} was built. Build it again.")
            _check_version(layout, tool, go, program, on_line)
        except CommandFailed as failure:
            raise build_failure(tool.name, failure, follow.lines, layout.log(tool)) from failure
        size = _install(program, place)
    progress.finished(f"{tool.name} {layout.version(tool)}: built in {duration(follow.seconds)}, {size >> 20} MiB")


def _compile(layout: Layout, tool: Tool, go: Go, follow: ToolProgress, on_line: Callable[[str], None]) -> Path:
    flags = ["-ldflags", layout.linker_flags(tool)]
    if tool.generated:
        flags += ["-overlay", str(_generate(layout, tool, go, on_line))]
    follow.expect(go.list_dependencies("{{if .Stale}}{{.ImportPath}}{{end}}", tool, flags, on_line))
    program = layout.partial(tool) / tool.name
    go.run(["build", "-v", *BUILD_FLAGS, *flags, "-o", str(program), tool.package], tool, on_line)
    return program


def _generate(layout: Layout, tool: Tool, go: Go, on_line: Callable[[str], None]) -> Path:
    """Makes the tool's generated files outside the checkout; returns the overlay that shows them to Go inside it."""
    # Go compares an overlay's paths with the real path of its working directory.
    module, partial = layout.module(tool).resolve(), layout.partial(tool)
    overlay = partial / "overlay.json"
    replacements = {str(module / file.name): str(partial / file.name) for file in tool.generated}
    overlay.write_text(json.dumps({"Replace": replacements}), encoding="utf-8")
    for file in tool.generated:
        # Go cannot say where the sources lie before the files that the package embeds exist.
        (partial / file.name).touch()
    template = f'{{{{with .Module}}}}{{{{if eq .Path "{tool.module}"}}}}{{{{.Dir}}}}{{{{end}}}}{{{{end}}}}'
    directories = set(go.list_dependencies(template, tool, ["-overlay", str(overlay)], on_line))
    if len(directories) != 1:
        raise ToolchainError(f"{layout.module(tool)} imports no package of {tool.module}, whose files it embeds.")
    sources = Path(directories.pop())
    for file in tool.generated:
        document = json.loads((sources / file.source).read_text(encoding="utf-8"))
        if file.versioned:
            document["version"] = layout.version(tool)
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        (partial / file.name).write_text(text, encoding="utf-8")
    return overlay


def _check_version(layout: Layout, tool: Tool, go: Go, program: Path, on_line: Callable[[str], None]) -> None:
    """A linker flag that names no variable is ignored by Go without a word, so the program is asked."""
    if not tool.version_arguments:
        return
    printed: list[str] = []

    def collect(line: str) -> None:
        printed.append(line)
        on_line(line)

    home = layout.partial(tool)
    environment = {**go.environment(tool), "HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    go.groups.run([str(program), *tool.version_arguments], home, environment, collect)
    version = layout.version(tool)
    if not re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", "\n".join(printed)):
        raise ToolchainError(
            f"{tool.name} was built from {tool.module} v{version}, but says of itself:\n"
            + "\n".join(f"    {line}" for line in printed[-5:])
            + "\nThe variables of its entry in berkelium_lab/toolchain/table.py do not fit this version."
        )


def _install(program: Path, place: Path) -> int:
    """Moves a program to its place in one step, its contents safely on the disk before; returns its size in bytes."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with program.open("rb") as file:
        os.fsync(file.fileno())
    program.replace(place)
    return place.stat().st_size
