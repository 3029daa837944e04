"""What is built, and the removal of what is not needed any more."""

import shutil
from contextlib import ExitStack
from pathlib import Path

from filelock import Timeout
from pydantic import BaseModel

from berkelium_lab.toolchain.ensure import ready_binaries
from berkelium_lab.toolchain.errors import ToolchainError
from berkelium_lab.toolchain.layout import Layout, is_program


class ToolStatus(BaseModel):
    """One tool: where it is or will be, and whether it is there. `size_mib` is None for one that is not built."""

    name: str
    version: str
    built: bool
    path: Path
    size_mib: int | None


class ToolchainStatus(BaseModel):
    """All tools; `source` is the checkout's `tools/` or, with `$BERKELIUM_TOOLS`, that directory."""

    source: Path
    platform: str
    tools: list[ToolStatus]

    @property
    def complete(self) -> bool:
        return all(tool.built for tool in self.tools)

    def version(self, name: str) -> str:
        """The version of the tool `name`, which must be one."""
        return next(tool.version for tool in self.tools if tool.name == name)


def status(layout: Layout | None = None) -> ToolchainStatus:
    """Raises ToolchainError when a go.mod is wrong or `$BERKELIUM_TOOLS` lacks a binary."""
    layout = layout or Layout()
    ready = ready_binaries(layout)
    tools: list[ToolStatus] = []
    for tool in layout.tools:
        path = ready.path(tool.name) if ready else layout.binary(tool)
        built = is_program(path)
        size = path.stat().st_size >> 20 if built else None
        tools.append(ToolStatus(name=tool.name, version=layout.version(tool), built=built, path=path, size_mib=size))
    source = ready.directory if ready else layout.source
    return ToolchainStatus(source=source, platform=str(layout.platform), tools=tools)


def clean(layout: Layout | None = None, *, everything: bool = False) -> int:
    """Removes the builds of other states of `tools/`, or all builds with `everything`; returns the bytes freed.

    Go's own caches are not touched. Raises ToolchainError while another process builds.
    """
    layout = layout or Layout()
    if not layout.root.is_dir():
        return 0
    with ExitStack() as stack:
        for directory in sorted({tool.directory for tool in layout.tools}):
            try:
                stack.enter_context(layout.lock(directory).acquire(timeout=0))
            except Timeout:
                raise ToolchainError(f"Another process builds {directory} now. Try again when it is done.") from None
        before = _size(layout.root)
        for path in _removable(layout, everything):
            shutil.rmtree(path, ignore_errors=True)
        return before - _size(layout.root)


def _removable(layout: Layout, everything: bool) -> list[Path]:
    kept = set() if everything else {layout.binary(tool).parent for tool in layout.tools} | {layout.assembled()}
    builds = [build for home in layout.root.iterdir() if home.is_dir() for build in home.iterdir() if build.is_dir()]
    return [build for build in builds if build not in kept]


def _size(root: Path) -> int:
    """Bytes on the disk below `root`; a file with several names counts once."""
    files = {status.st_ino: status.st_size for file in root.rglob("*") if file.is_file() for status in [file.stat()]}
    return sum(files.values())
