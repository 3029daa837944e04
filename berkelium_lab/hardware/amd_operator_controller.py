"""The AMD GPU operator, as long as its controller-manager pod runs."""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from berkelium_lab.api import Api
from berkelium_lab.hardware import amd_operator
from berkelium_lab.hardware.cluster import Cluster
from berkelium_lab.hardware.pods import Role

log = logging.getLogger(__name__)

_API_VERSION, _KIND = "amd.com/v1alpha1", "DeviceConfig"
_MANAGER = "amd-gpu-operator"


@dataclass
class AmdOperatorController:
    """Turns every DeviceConfig into its DaemonSets and status; once for each state of config, nodes and operator."""

    cluster: Cluster
    api: Api
    _done: dict[str, object] = field(default_factory=dict)

    name = "AMD GPU operator"

    def reconcile(self) -> float | None:
        """See `controller.Controller`."""
        operators = self.cluster.running(Role.AMD_OPERATOR)
        configs = self.cluster.device_configs.items()
        self._done = {uid: state for uid, state in self._done.items() if uid in {_uid(config) for config in configs}}
        if operators:
            for config in configs:
                nodes = self._matching_nodes(config)
                state = (config["metadata"]["generation"], _deleted(config), tuple(nodes), operators[0].uid)
                if self._done.get(_uid(config)) != state:
                    self._handle(config, nodes)
                    self._done[_uid(config)] = state
        return None

    def _handle(self, config: dict[str, Any], nodes: list[str]) -> None:
        if _deleted(config):
            self._finalize(config)
            return
        faults = amd_operator.faults(config)
        if not faults and nodes:
            self._deploy(config)
        wanted = amd_operator.conditions(faults, len(nodes), amd_operator.node_selector(config))
        self._set_conditions(config, wanted)
        for condition in wanted:
            if condition.type == "Error":
                log.warning("DeviceConfig %s: %s: %s", _path(config), condition.reason, condition.message)

    def _deploy(self, config: dict[str, Any]) -> None:
        finalizers = config["metadata"].get("finalizers") or []
        if amd_operator.FINALIZER not in finalizers:
            self._patch(config, {"metadata": {"finalizers": [*finalizers, amd_operator.FINALIZER]}})
        made = amd_operator.daemon_sets(config)
        for daemon_set in made:
            self.api.apply(daemon_set, manager=_MANAGER)
        names = {daemon_set["metadata"]["name"] for daemon_set in made}
        self._delete(config, amd_operator.operand_names(config) - names)
        log.info("DeviceConfig %s: %s", _path(config), ", ".join(sorted(names)) or "nothing to deploy")

    def _finalize(self, config: dict[str, Any]) -> None:
        self._delete(config, amd_operator.operand_names(config))
        finalizers = config["metadata"].get("finalizers") or []
        if amd_operator.FINALIZER in finalizers:
            rest = [finalizer for finalizer in finalizers if finalizer != amd_operator.FINALIZER]
            self._patch(config, {"metadata": {"finalizers": rest}})
            log.info("DeviceConfig %s finalized", _path(config))

    def _delete(self, config: dict[str, Any], names: set[str]) -> None:
        for name in sorted(names):
            self.api.delete("apps/v1", "DaemonSet", name, config["metadata"]["namespace"])

    def _set_conditions(self, config: dict[str, Any], wanted: list[amd_operator.Condition]) -> None:
        status = config.get("status") or {}
        before = {entry["type"]: entry for entry in status.get("conditions") or []}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entries = []
        for condition in wanted:
            old = before.get(condition.type, {})
            since = old["lastTransitionTime"] if old.get("status") == condition.status else now
            entries.append({**vars(condition), "lastTransitionTime": since})
        observed = config["metadata"]["generation"]
        if entries == status.get("conditions") and status.get("observedGeneration") == observed:
            return
        self._patch(config, {"status": {"conditions": entries, "observedGeneration": observed}}, "status")

    def _patch(self, config: dict[str, Any], body: object, subresource: str | None = None) -> None:
        metadata = config["metadata"]
        self.api.patch(
            _API_VERSION, _KIND, metadata["name"], body, metadata["namespace"], subresource=subresource
        )  # fmt: skip

    def _matching_nodes(self, config: dict[str, Any]) -> list[str]:
        selector = amd_operator.node_selector(config).items()
        return sorted(node.name for node in self.cluster.nodes.items() if selector <= node.labels.items())


def _uid(config: dict[str, Any]) -> str:
    return config["metadata"]["uid"]


def _deleted(config: dict[str, Any]) -> bool:
    return "deletionTimestamp" in config["metadata"]


def _path(config: dict[str, Any]) -> str:
    return f"{config['metadata']['namespace']}/{config['metadata']['name']}"
