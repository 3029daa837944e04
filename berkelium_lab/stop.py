"""Ending a lab's processes in an order in which each can still reach what it depends on."""

from collections.abc import Mapping
from pathlib import Path

from berkelium_lab import processes
from berkelium_lab.control_plane import API_SERVER, CLIENTS, ETCD
from berkelium_lab.processes import ProcessRecord

LAST_SECONDS = 5

_ORDER = (CLIENTS, (API_SERVER,), (ETCD,))


def stop_components(records: Mapping[str, ProcessRecord], directory: Path) -> list[str]:
    """Stop the components in `records` that run, clients first and etcd last, and children that outlive them.

    Returns the names of the components that ran.
    """
    stopped: list[str] = []
    for group in _ORDER:
        recorded = {each.name: records[each.name] for each in group if each.name in records}
        running = {name: process for name, record in recorded.items() if (process := processes.find(record, directory))}
        processes.stop(running.values(), max(each.stop_seconds for each in group))
        orphans = [each for record in recorded.values() for each in processes.left_of(record, directory)]
        processes.stop(orphans, LAST_SECONDS)
        stopped += running
    return stopped


def stop_everything(records: Mapping[str, ProcessRecord], directory: Path) -> list[str]:
    """As `stop_components`, and after that whatever else belongs to the lab: a deployment that is under way, and
    processes that were started but never recorded."""
    stopped = stop_components(records, directory)
    left = processes.belonging_to(directory)
    processes.stop(left, LAST_SECONDS)
    return [*stopped, *(f"process {process.pid}" for process in left)]
