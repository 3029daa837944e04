"""What in a cluster is no longer as the stack last applied it, inside Helm releases as well."""

from berkelium_lab.drift.findings import Difference, Drift, Finding
from berkelium_lab.drift.search import search

__all__ = ["Difference", "Drift", "Finding", "search"]
