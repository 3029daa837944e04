"""What an nfd-worker publishes for a node: its NodeFeature object.

Of all that the real worker discovers, it holds what the rules of this project and the charts read: the PCI devices, the
node's name and the labels of the `pci` source. Sources: source/pci/pci.go and pkg/nfd-worker of
sigs.k8s.io/node-feature-discovery v0.18.3.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from berkelium_lab.hardware.inventory import NodeHardware
from berkelium_lab.hardware.pods import Pod

WORKER_CONFIG_KEY = "nfd-worker.conf"
MASTER_CONFIG_KEY = "nfd-master.conf"

NODE_NAME_LABEL = "nfd.node.kubernetes.io/node-name"
WORKER_VERSION = "nfd.node.kubernetes.io/worker.version"

_FIELDS = ("class", "vendor", "device")


@dataclass(frozen=True)
class WorkerConfig:
    """The part of the worker's configuration that matters here, with the worker's defaults."""

    device_class_whitelist: tuple[str, ...] = ("03", "0b40", "12")
    device_label_fields: tuple[str, ...] = ("class", "vendor")
    owner_references: bool = True


def worker_config(text: str) -> WorkerConfig:
    """Reads the file `nfd-worker.conf`. Fields that do not exist are ignored, as the worker does."""
    settings = yaml.safe_load(text) or {}
    pci = (settings.get("sources") or {}).get("pci") or {}
    default = WorkerConfig()
    named = pci.get("deviceLabelFields") or ()
    return WorkerConfig(
        device_class_whitelist=tuple(map(str, pci.get("deviceClassWhitelist", default.device_class_whitelist))),
        device_label_fields=tuple(f for f in _FIELDS if f in named) or default.device_label_fields,
        owner_references=not (settings.get("core") or {}).get("noOwnerRefs", False),
    )


def node_feature(hardware: NodeHardware, pod: Pod, config: WorkerConfig) -> dict[str, Any]:
    """The NodeFeature object of the node on which worker `pod` runs."""
    devices = _pci_devices(hardware)
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {
            "name": pod.node,
            "namespace": pod.namespace,
            "labels": {NODE_NAME_LABEL: pod.node},
            "annotations": {WORKER_VERSION: pod.containers[0].tag},
            **({"ownerReferences": _owners(pod)} if config.owner_references else {}),
        },
        "spec": {
            "labels": _labels(devices, config),
            "features": {
                "flags": {},
                "attributes": {"system.name": {"elements": {"nodename": pod.node}}},
                "instances": {"pci.device": {"elements": [{"attributes": device} for device in devices]}},
            },
        },
    }


def _pci_devices(hardware: NodeHardware) -> list[dict[str, str]]:
    if hardware.model is None:
        return []
    model = hardware.model
    device = {"class": model.pci_class, "vendor": model.vendor.pci_id, "device": model.pci_devices[0]}
    return [dict(device) for _ in hardware.gpus]


def _labels(devices: list[dict[str, str]], config: WorkerConfig) -> dict[str, str]:
    labels = {}
    for device in devices:
        if any(device["class"].startswith(prefix.lower()) for prefix in config.device_class_whitelist):
            name = "_".join(device[field] for field in config.device_label_fields)
            labels[f"feature.node.kubernetes.io/pci-{name}.present"] = "true"
    return labels


def _owners(pod: Pod) -> list[dict[str, Any]]:
    inherited = [{**owner, "blockOwnerDeletion": False} for owner in pod.owners]
    return [*inherited, {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}]
