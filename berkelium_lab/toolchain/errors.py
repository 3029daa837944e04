"""The error of the toolchain."""

from berkelium_infra.errors import UserError


class ToolchainError(UserError):
    """The tools cannot be had: Go is missing, a build failed, a directory lacks a binary. The text says what to do."""
