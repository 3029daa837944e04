"""Bringing a lab up: what does not run is started, and all of it is undone when that fails."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from berkelium_lab import ports, processes, wait
from berkelium_lab.api import Api, ApiError, connect
from berkelium_lab.control_plane import API_SERVER, CLIENTS, COMPONENTS, ETCD, Component, Site
from berkelium_lab.credentials import ADMIN
from berkelium_lab.errors import LabError
from berkelium_lab.health import Health
from berkelium_lab.interrupts import Interrupts
from berkelium_lab.processes import ProcessRecord
from berkelium_lab.state import LabState, ports_of_other_labs
from berkelium_lab.stop import LAST_SECONDS, stop_components

Report = Callable[[str], None]

SERVE_SECONDS = 60
"""How long one component may take to serve; a machine that is busy building needs more than the usual 3 seconds."""

NODES_SECONDS = 60

_ATTEMPTS = 3


class PortTaken(Exception):
    """A component ended because another program has taken its port since it was chosen."""


class Start:
    """One attempt to bring up every component of a lab that does not run.

    `state` is kept in step with what has been started and is written at every step, so that a later command finds
    the processes whatever becomes of this one.
    """

    def __init__(self, site: Site, state: LabState, interrupts: Interrupts, report: Report) -> None:
        self._site = site
        self._state = state
        self._interrupts = interrupts
        self._report = report
        self._started: dict[str, ProcessRecord] = {}

    def run(self, nodes: list[dict[str, Any]]) -> list[str]:
        """Start what does not run, create the nodes that are missing and wait for all; the names of what was started.

        Raises `LabError`. Whatever goes wrong, interruptions included, ends the processes that were started here.
        """
        try:
            self._start_components()
            self._wait_for_nodes(nodes)
            # One that ends soon after its start has had time to do so.
            self._wait_until_served(*COMPONENTS)
        except BaseException:
            with self._interrupts.held():
                if self._started:
                    self._report(f"stopping {', '.join(self._started)}")
                stop_components(self._started, self._site.directory)
            raise
        return list(self._started)

    def _start_components(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._assign_ports()
                if self._dead(ETCD):
                    self._end_api_server()
                self._start(ETCD)
                self._start(API_SERVER)
                self._start(*CLIENTS)
                return
            except PortTaken as error:
                if attempt == _ATTEMPTS:
                    raise LabError(f"{error}, {_ATTEMPTS} times in a row") from None

    def _dead(self, *components: Component) -> list[Component]:
        directory = self._site.directory
        records = self._state.processes
        return [
            each for each in components if each.name not in records or not processes.find(records[each.name], directory)
        ]

    def _assign_ports(self) -> None:
        """Keep the ports that a lab has, for others have its kubeconfig; replace those that another program took."""
        dead = self._dead(*COMPONENTS)
        lost = {
            listener: component
            for component in dead
            for listener in component.listeners
            if listener not in self._site.ports or not ports.is_free(self._site.ports[listener])
        }
        taken = {*ports_of_other_labs(self._state.name), *self._site.ports.values()}
        self._site.ports.update(ports.pick(lost, taken))
        # Those that talk to a component at its old address have to be told the new one.
        if API_SERVER in lost.values():
            self._restart_later(*CLIENTS)
        self._state.ports = self._site.ports
        self._site.credentials.write_kubeconfigs(f"lab-{self._state.name}", self._site.url(API_SERVER.name))
        self._state.save(self._site.directory)

    def _end_api_server(self) -> None:
        """End an API server that has lost its etcd: its client waits longer and longer, up to two minutes, before it
        looks for etcd again."""
        record = self._state.processes.pop(API_SERVER.name, None)
        if record and (running := processes.find(record, self._site.directory)):
            # Without etcd it does not end when told to.
            processes.stop([running], 1)

    def _restart_later(self, *components: Component) -> None:
        running = {each.name: self._state.processes.pop(each.name) for each in components if not self._dead(each)}
        stop_components(running, self._site.directory)

    def _start(self, *components: Component) -> None:
        """Start those of `components` that do not run, and wait until all of them serve."""
        for component in self._dead(*components):
            self._report(f"starting {component.name}")
            with self._interrupts.held():
                self._started[component.name] = self._state.processes[component.name] = self._launch(component)
                self._state.save(self._site.directory)
        self._wait_until_served(*components)

    def _wait_until_served(self, *components: Component) -> None:
        health = Health(self._site)
        for component in components:
            try:
                health.wait_for(component, self._state.processes[component.name], SERVE_SECONDS)
            except LabError as error:
                if "address already in use" in str(error):
                    raise PortTaken(str(error)) from None
                raise

    def _launch(self, component: Component) -> ProcessRecord:
        if before := self._state.processes.get(component.name):
            processes.stop(processes.left_of(before, self._site.directory), LAST_SECONDS)
        command = component.command(self._site)
        log = self._site.log(component.name)
        try:
            return processes.start(command, self._site.directory, log)
        except OSError as error:
            raise LabError(f"{component.name}: {command[0]} cannot be started: {error.strerror}") from None

    def _wait_for_nodes(self, nodes: list[dict[str, Any]]) -> None:
        api = connect(self._site.credentials.kubeconfig(ADMIN))
        create_missing_nodes(api, nodes)
        try:
            wait.until(lambda: api.get("v1", "Namespace", "default"), "namespace default", NODES_SECONDS)
            wait.until(lambda: all_ready(api, len(nodes)), "nodes Ready", NODES_SECONDS)
        except TimeoutError as error:
            kwok = next(each for each in CLIENTS if each.name == "kwok")
            raise LabError(f"{error}{Health(self._site).explain(kwok)}") from None
        finally:
            api.close()


def create_missing_nodes(api: Api, nodes: list[dict[str, Any]]) -> None:
    """Create those of `nodes` that the API server does not have."""
    present = {node["metadata"]["name"] for node in api.list("v1", "Node")}

    def create(node: dict[str, Any]) -> None:
        try:
            api.create(node)
        except ApiError as error:
            raise LabError(f"node {node['metadata']['name']} of the fleet was refused: {error.message}") from None

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(create, (node for node in nodes if node["metadata"]["name"] not in present)))


def is_ready(node: dict[str, Any]) -> bool:
    """Whether a node's condition Ready is true."""
    conditions = node.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def all_ready(api: Api, count: int) -> bool:
    """Whether `count` nodes are ready. Raises `NotYet` naming those that are not."""
    nodes = api.list("v1", "Node")
    waiting = [node["metadata"]["name"] for node in nodes if not is_ready(node)]
    if waiting or len(nodes) < count:
        raise wait.NotYet(f"{len(nodes) - len(waiting)} of {count} ready; not ready: {', '.join(waiting) or 'none'}")
    return True
