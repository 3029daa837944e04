"""The AMD DRA driver and the node labeller on every node, as long as their pods run there."""

import logging
from dataclasses import dataclass, field
from functools import partial

from berkelium_lab.api import Api
from berkelium_lab.hardware import amd
from berkelium_lab.hardware.cluster import Cluster
from berkelium_lab.hardware.devices import NothingPublished
from berkelium_lab.hardware.grace import WIPE_SECONDS, Grace
from berkelium_lab.hardware.inventory import NodeHardware
from berkelium_lab.hardware.pods import Pod, Role
from berkelium_lab.hardware.publisher import Key, Publisher
from berkelium_lab.hardware.slices import Pool, pool

log = logging.getLogger(__name__)


@dataclass
class AmdController:
    """Publishes for each node what its running plugin pod would, and labels the nodes of running labeller pods.

    Labels stay when the labeller is gone, as they do on a real node.
    """

    cluster: Cluster
    publisher: Publisher
    api: Api
    hardware: dict[str, NodeHardware]
    _grace: Grace[Key] = field(default_factory=lambda: Grace(WIPE_SECONDS))
    _pools: dict[str, Pool | None] = field(default_factory=dict)

    name = "AMD driver"

    def reconcile(self) -> float | None:
        """See `controller.Controller`."""
        self._label()
        plugins = {pod.uid: pod for pod in self.cluster.running(Role.AMD_PLUGIN)}
        self._pools = {
            uid: self._pools[uid] if uid in self._pools else self._pool(pod) for uid, pod in plugins.items()
        }  # fmt: skip
        pools = {pool.key: pool for pool in self._pools.values() if pool is not None}
        self.publisher.publish(pools.values(), self.cluster.node_uids())
        orphans = self.publisher.held_for([amd.DRIVER], self.hardware) - pools.keys()
        expired, wait = self._grace.expired(orphans)
        self.publisher.withdraw(expired)
        return wait

    def _pool(self, pod: Pod) -> Pool | None:
        container = pod.containers[0]
        hardware = self.hardware.get(pod.node, NodeHardware(pod.node))
        try:
            return pool(amd.DRIVER, pod.node, False, partial(amd.gpu_slices, hardware, amd.dialect(container.tag)))
        except NothingPublished as reason:
            log.warning("%s on %s publishes nothing: %s", pod.key, pod.node, reason)
            return None

    def _label(self) -> None:
        nodes = {node.name: node for node in self.cluster.nodes.items()}
        for pod in self.cluster.running(Role.AMD_LABELLER):
            hardware = self.hardware.get(pod.node)
            if hardware is None or hardware.model is None or pod.node not in nodes:
                continue
            labels = amd.node_labels(hardware.model, len(hardware.gpus))
            if not labels.items() <= nodes[pod.node].labels.items():
                self.cluster.nodes.put(self.api.patch("v1", "Node", pod.node, {"metadata": {"labels": labels}}))
