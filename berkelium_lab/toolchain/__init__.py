"""The real programs that the lab runs, built once from their Go modules in `tools/` and kept in the user's cache.

`ensure_tools()` is what a caller needs; `table.py` says what the tools are.
"""

from berkelium_lab.toolchain import table
from berkelium_lab.toolchain.ensure import Toolchain, ensure_tools, find_tools
from berkelium_lab.toolchain.errors import ToolchainError
from berkelium_lab.toolchain.go import clean_caches
from berkelium_lab.toolchain.housekeeping import ToolchainStatus, ToolStatus, clean, status

TOOLS = tuple(tool.name for tool in table.ALL)

__all__ = [
    "TOOLS",
    "ToolStatus",
    "Toolchain",
    "ToolchainError",
    "ToolchainStatus",
    "clean",
    "clean_caches",
    "ensure_tools",
    "find_tools",
    "status",
]
