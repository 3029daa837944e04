"""Adoption of a cluster that already runs: what of the stack exists there, and what taking it over would change."""

from berkelium_lab.adopt.declared import AdoptError, Declared, declared
from berkelium_lab.adopt.finding import Adoption, Found, find
from berkelium_lab.adopt.recorded import recorded_in_lab, recorded_in_stack
from berkelium_lab.adopt.stack_file import read_adopt, write_adopt

__all__ = [
    "AdoptError",
    "Adoption",
    "Declared",
    "Found",
    "declared",
    "find",
    "read_adopt",
    "recorded_in_lab",
    "recorded_in_stack",
    "write_adopt",
]
