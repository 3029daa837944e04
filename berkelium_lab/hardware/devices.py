"""The parts that devices of every DRA driver are written with (resource.k8s.io/v1)."""

from typing import Any

Device = dict[str, Any]
Slice = dict[str, Any]
"""The variable part of a ResourceSlice's spec: `devices` or `sharedCounters`, or both."""

PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"


class NothingPublished(Exception):
    """A driver runs and publishes no ResourceSlice for the node; the text says why."""


def text(value: str) -> dict[str, str]:
    """A string attribute."""
    return {"string": value}


def version(value: str) -> dict[str, str]:
    """A version attribute (semantic version, three parts)."""
    return {"version": value}


def integer(value: int) -> dict[str, int]:
    """An integer attribute."""
    return {"int": value}


def value(quantity: str | int) -> dict[str, str]:
    """A capacity or a counter."""
    return {"value": str(quantity)}


def mebibytes(amount: int) -> str:
    """A quantity of memory in the API's canonical form: the largest unit without a fraction (80Gi, 81559Mi)."""
    if amount % 1024:
        return f"{amount}Mi"
    gibibytes = amount // 1024
    return f"{gibibytes}Gi" if gibibytes % 1024 else f"{gibibytes // 1024}Ti"
