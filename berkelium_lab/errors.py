"""Errors of the laboratory that are the user's to read."""

from berkelium_infra.errors import UserError


class LabError(UserError):
    """A lab cannot do what was asked; the text says which part of which lab, and what to do about it."""
