"""The NVIDIA DRA driver on every node: its kubelet-plugin pods decide what is published."""

import logging
from dataclasses import dataclass
from functools import partial

from berkelium_lab.hardware import nvidia
from berkelium_lab.hardware.cluster import Cluster
from berkelium_lab.hardware.crashes import Crashes
from berkelium_lab.hardware.devices import NothingPublished, Slice
from berkelium_lab.hardware.grace import WIPE_SECONDS, Grace
from berkelium_lab.hardware.inventory import NodeHardware
from berkelium_lab.hardware.nvidia_dialects import Dialect, GateError, dialect, feature_gates
from berkelium_lab.hardware.pods import Pod, Role
from berkelium_lab.hardware.publisher import Key, Publisher
from berkelium_lab.hardware.slices import Pool, pool

log = logging.getLogger(__name__)

_DRIVERS = {"gpus": nvidia.DRIVER, "compute-domains": nvidia.COMPUTE_DOMAIN_DRIVER}


@dataclass
class NvidiaController:
    """Publishes for each node what its running plugin pod would, and withdraws it when the pod is gone.

    Of two plugin pods on one node the older is obeyed; on a real node both would fight over the same pool.
    """

    cluster: Cluster
    publisher: Publisher
    crashes: Crashes
    hardware: dict[str, NodeHardware]
    nvlink_domain_attribute: bool
    server: tuple[int, int]

    name = "NVIDIA driver"

    def __post_init__(self) -> None:
        self._grace: Grace[Key] = Grace(WIPE_SECONDS)
        self._told: dict[tuple[str, str], str] = {}
        self._pools: dict[tuple[str, str], Pool | None] = {}

    def reconcile(self) -> float | None:
        """See `controller.Controller`."""
        plugins = self._plugins()
        wanted = {(pod.uid, name): (pod, name) for pod in plugins.values() for name in _DRIVERS if pod.container(name)}
        # A pod's image and environment never change, so what it publishes is computed once.
        self._pools = {key: pool for key, pool in self._pools.items() if key in wanted}
        for key, (pod, name) in wanted.items():
            if key not in self._pools:
                self._pools[key] = self._pool(pod, name)
        pools = [pool for pool in self._pools.values() if pool is not None]
        self.publisher.publish(pools, self.cluster.node_uids())
        return self._wipe(plugins, {pool.key for pool in pools})

    def _plugins(self) -> dict[str, Pod]:
        """The plugin pod of every node that has one."""
        plugins: dict[str, Pod] = {}
        conflicts: dict[tuple[str, str], str] = {}
        for pod in sorted(self.cluster.running(Role.NVIDIA_PLUGIN), key=lambda pod: (pod.created, pod.name)):
            other = plugins.setdefault(pod.node, pod)
            if other is not pod:
                conflicts[other.uid, pod.uid] = f"two plugin pods on {pod.node}: {other.key} is obeyed, {pod.key} not"
        for pair in conflicts.keys() - self._told.keys():
            log.error("conflict: %s", conflicts[pair])
        self._told = conflicts
        return plugins

    def _pool(self, pod: Pod, name: str) -> Pool | None:
        container = pod.container(name)
        assert container is not None
        driver = _DRIVERS[name]
        try:
            spoken = dialect(container.tag)
            gates = feature_gates(container.env.get("FEATURE_GATES", ""), spoken)
            build = partial(self._build, driver, pod.node, spoken, gates)
            return pool(driver, pod.node, spoken.indexed_names, build)
        except GateError as error:
            self.crashes.report(pod, name, str(error))
        except NothingPublished as reason:
            log.warning("%s on %s publishes nothing: %s", pod.key, pod.node, reason)
        return None

    def _build(self, driver: str, node: str, spoken: Dialect, gates: dict[str, bool]) -> list[Slice]:
        if driver == nvidia.COMPUTE_DOMAIN_DRIVER:
            return nvidia.compute_domain_slices()
        hardware = self.hardware.get(node, NodeHardware(node))
        return nvidia.gpu_slices(hardware, spoken, gates, self.server, self.nvlink_domain_attribute)

    def _wipe(self, plugins: dict[str, Pod], published: set[Key]) -> float | None:
        """Delete what a running plugin no longer publishes at once, and what a vanished one left after a while."""
        orphans = self.publisher.held_for(_DRIVERS.values(), self.hardware) - published
        replaced = {key for key in orphans if key[1] in plugins}
        expired, wait = self._grace.expired(orphans - replaced)
        self.publisher.withdraw([*replaced, *expired])
        return wait
