"""What one can say about a lab: which parts run, which have died and what they said last."""

from pathlib import Path
from typing import Literal

import psutil
from pydantic import BaseModel, Field

from berkelium_lab import processes
from berkelium_lab.control_plane import API_SERVER, COMPONENTS, ETCD, Component, Site
from berkelium_lab.credentials import ADMIN
from berkelium_lab.errors import LabError
from berkelium_lab.health import LOG_LINES, Health
from berkelium_lab.state import LabState

MIB = 1024 * 1024

Condition = Literal["running", "degraded", "stopped", "absent"]


class ComponentStatus(BaseModel):
    """One component: `alive` that its process runs, `serves` that it also answers; `memory_mib` with its children.

    `complaint` says what is wrong; `last_lines` of its log are given when something is.
    """

    name: str
    pid: int | None = None
    alive: bool = False
    serves: bool = False
    memory_mib: int = 0
    port: int | None = None
    complaint: str | None = None
    log: Path
    last_lines: list[str] = Field(default_factory=list)


class LabStatus(BaseModel):
    """One lab. `condition` is `running` (every component serves), `degraded` (some do), `stopped` (none runs, the
    data is kept) or `absent` (there is no such lab); `running` is true for the first only."""

    name: str
    condition: Condition
    running: bool
    directory: Path
    kubeconfig: Path | None = None
    server: str | None = None
    fleet: str | None = None
    nodes: int = 0
    nodes_ready: int = 0
    memory_mib: int = 0
    components: list[ComponentStatus] = Field(default_factory=list)


def absent(name: str, directory: Path) -> LabStatus:
    """The status of a lab that does not exist."""
    return LabStatus(name=name, condition="absent", running=False, directory=directory)


def of(state: LabState, site: Site) -> LabStatus:
    """The status of a lab that exists, running or not."""
    health = Health(site)
    components = [_component(component, state, site, health) for component in COMPONENTS]
    serves = {component.name for component in components if component.serves}
    # Without etcd the API server answers its health check for a while yet, and keeps every other request waiting.
    nodes = _nodes_ready(site) if {API_SERVER.name, ETCD.name} <= serves else []
    condition = _condition(components)
    return LabStatus(
        name=state.name,
        condition=condition,
        running=condition == "running",
        directory=site.directory,
        kubeconfig=site.credentials.kubeconfig(ADMIN),
        server=site.url(API_SERVER.name) if API_SERVER.name in site.ports else None,
        fleet=state.fleet,
        nodes=len(nodes),
        nodes_ready=sum(nodes),
        memory_mib=sum(component.memory_mib for component in components),
        components=components,
    )


def _condition(components: list[ComponentStatus]) -> Condition:
    if all(component.serves for component in components):
        return "running"
    return "degraded" if any(component.alive for component in components) else "stopped"


def _component(component: Component, state: LabState, site: Site, health: Health) -> ComponentStatus:
    record = state.processes.get(component.name)
    process = processes.find(record, site.directory) if record else None
    log = site.log(component.name)
    status = ComponentStatus(name=component.name, log=log)
    status.port = site.ports.get(component.listeners[0]) if component.listeners else None
    if process is None:
        status.complaint = "not running" if record is None else f"process {record.pid} has ended"
    else:
        status.pid, status.alive, status.memory_mib = process.pid, True, _memory(process)
        status.complaint = health.complaint(component)
        status.serves = status.complaint is None
    if status.complaint:
        status.last_lines = processes.tail(log, LOG_LINES)
    return status


def _memory(process: psutil.Process) -> int:
    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            total += each.memory_info().rss
    except psutil.Error:
        pass
    return round(total / MIB)


def _nodes_ready(site: Site) -> list[bool]:
    """For each node whether it is ready; none when the API server does not answer."""
    import urllib3

    from berkelium_lab.api import ApiError, connect
    from berkelium_lab.start import is_ready

    try:
        api = connect(site.credentials.kubeconfig(ADMIN))
        nodes = api.request("GET", "/api/v1/nodes", timeout=urllib3.Timeout(connect=2, read=5)).body["items"]
        return [is_ready(node) for node in nodes]
    except (ApiError, LabError, urllib3.exceptions.HTTPError):
        return []
