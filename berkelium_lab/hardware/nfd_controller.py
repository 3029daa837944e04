"""The nfd-workers on every node, and the one nfd-master process that stands for the release's master pods."""

import json
import logging
from dataclasses import dataclass, field

from berkelium_lab.api import Api
from berkelium_lab.hardware import nfd
from berkelium_lab.hardware.cluster import NODE_FEATURES, Cluster
from berkelium_lab.hardware.grace import Grace
from berkelium_lab.hardware.inventory import NodeHardware
from berkelium_lab.hardware.nfd_master import NfdMaster
from berkelium_lab.hardware.pods import Pod, Role

log = logging.getLogger(__name__)

WORKER_GRACE_SECONDS = 3.0
"""How long a NodeFeature outlives its worker, so that the rollout of a new worker moves no label.

On a real cluster it lives as long as the worker's DaemonSet, which owns it too.
"""


@dataclass
class NfdController:
    """Keeps a NodeFeature for every node with a running worker."""

    cluster: Cluster
    api: Api
    master: NfdMaster
    hardware: dict[str, NodeHardware]
    _grace: Grace[tuple[str, str]] = field(default_factory=lambda: Grace(WORKER_GRACE_SECONDS))
    _written: dict[tuple[str, str], str] = field(default_factory=dict)
    _configs: dict[str, nfd.WorkerConfig] = field(default_factory=dict)

    name = "node-feature-discovery"

    def reconcile(self) -> float | None:
        """See `controller.Controller`."""
        delays = (
            self._node_features(),
            self.master.follow(self.cluster.running(Role.NFD_MASTER), self._crd_uids()),
        )
        return min((delay for delay in delays if delay is not None), default=None)

    def _node_features(self) -> float | None:
        if not self.cluster.served(NODE_FEATURES):
            self._written.clear()
            return None
        workers = {(pod.namespace, pod.node): pod for pod in self.cluster.running(Role.NFD_WORKER)}
        self._configs = {pod.uid: self._configs.get(pod.uid) or self._config(pod) for pod in workers.values()}
        held = {(feature.namespace, feature.name) for feature in self.cluster.node_features.items()}
        for key, pod in workers.items():
            self._write(key, pod, key in held)
        return self._sweep(set(workers), held)

    def _write(self, key: tuple[str, str], pod: Pod, exists: bool) -> None:
        hardware = self.hardware.get(pod.node, NodeHardware(pod.node))
        manifest = nfd.node_feature(hardware, pod, self._configs[pod.uid])
        text = json.dumps(manifest, sort_keys=True)
        if exists and self._written.get(key) == text:
            return
        self.cluster.node_features.put(self.api.apply(manifest, manager="nfd-worker"))
        self._written[key] = text

    def _sweep(self, workers: set[tuple[str, str]], held: set[tuple[str, str]]) -> float | None:
        ours = {
            (f.namespace, f.name) for f in self.cluster.node_features.items() if nfd.WORKER_VERSION in f.annotations
        }
        expired, wait = self._grace.expired((held & ours) - workers)
        for namespace, name in expired:
            self.api.delete("nfd.k8s-sigs.io/v1alpha1", "NodeFeature", name, namespace)
            self.cluster.node_features.drop(name, namespace)
            log.info("%s: NodeFeature removed, no worker runs there", name)
        return wait

    def _config(self, pod: Pod) -> nfd.WorkerConfig:
        for name in pod.config_maps:
            config_map = self.api.get("v1", "ConfigMap", name, pod.namespace)
            text = ((config_map or {}).get("data") or {}).get(nfd.WORKER_CONFIG_KEY)
            if text is not None:
                return nfd.worker_config(text)
        return nfd.WorkerConfig()

    def _crd_uids(self) -> frozenset[str]:
        return frozenset(crd.uid for crd in self.cluster.crds.items() if crd.name.endswith(".nfd.k8s-sigs.io"))
