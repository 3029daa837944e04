"""The labels that nodes get for their GPUs, by NodeFeatureRules, and by which workloads and the stack select them."""

from collections.abc import Collection

from berkelium_infra.catalog import AMD, NVIDIA
from berkelium_infra.gpu import GpuModel

MODEL_LABEL = "berkelium.io/gpu-model"
DYNAMIC_MIG_LABEL = "berkelium.io/dynamic-mig"
"""Named after the mode that the stack chose, not after what the hardware could do."""

# What the vendors' charts look for: the NVIDIA chart's node affinity, and the selector of a DeviceConfig.
VENDOR_LABELS = {NVIDIA: "feature.node.kubernetes.io/pci-10de.present", AMD: "feature.node.kubernetes.io/amd-gpu"}

RULES_NAME = "berkelium-gpus"
"""Name of the NodeFeatureRule, which has one rule per GPU model."""


def labels(model: GpuModel, dynamic_mig_models: Collection[str]) -> dict[str, str]:
    """The labels of a node with GPUs of `model`; `dynamic_mig_models` are the keys of those in that mode."""
    found = {MODEL_LABEL: model.key, VENDOR_LABELS[model.vendor]: "true"}
    if model.vendor is NVIDIA:
        found[DYNAMIC_MIG_LABEL] = "true" if model.key in dynamic_mig_models else "false"
    return found
