"""Known faults of the chosen releases that a stack's configuration runs into: worth saying, no reason to stop."""

from berkelium_infra.catalog import MODELS, NVIDIA
from berkelium_infra.settings.model import Settings
from berkelium_infra.settings.projects import shared_models


def splits_kubelet_plugin(settings: Settings) -> bool:
    """Whether the kubelet plugin runs as two DaemonSets, with and without DynamicMIG."""
    chosen = settings.nvidia.dynamic_mig_models
    if not chosen or settings.nvidia.split_kubelet_plugin == "off":
        return False
    others = [model for model in MODELS if model.vendor is NVIDIA and model.key not in chosen]
    if settings.nvidia.split_kubelet_plugin == "on":
        return True
    return any(model.mig_capable or settings.nvidia_driver.splits_kubelet_plugin for model in others)


def warnings(settings: Settings) -> list[str]:
    """One sentence or two per known fault, with the key that avoids it."""
    found: list[str] = []
    driver, nvidia = settings.nvidia_driver, settings.nvidia
    if nvidia.enabled and nvidia.dynamic_mig_models:
        for fault in driver.dynamic_mig_faults:
            if set(fault.models) & set(nvidia.dynamic_mig_models):
                found.append(f"NVIDIA driver {driver.chart.version}: {fault.summary}. {fault.remedy}")
        whole = [model.title for model in MODELS if model.vendor is NVIDIA and not model.mig_capable]
        if driver.splits_kubelet_plugin and not splits_kubelet_plugin(settings):
            found.append(
                f"NVIDIA driver {driver.chart.version} publishes no device at all on a node without MIG when "
                f"DynamicMIG is on there: {', '.join(whole)} will be missing. Write nvidia.splitKubeletPlugin: auto."
            )
    for part, chosen, known in (
        ("nvidia", settings.charts.nvidia, driver.chart),
        ("amd", settings.charts.amd, settings.amd_operator.chart),
        ("nodeFeatureDiscovery", settings.charts.node_feature_discovery, settings.discovery.chart),
    ):
        if chosen.version != known.version:
            found.append(
                f"charts.{part}.version {chosen.version} is not known to versions.py; it is treated as {known.version}."
            )
    for name, project in settings.projects.items():
        found += [
            f"projects.{name}.quota.gpus: {other} hands out the {key} too, and a quota cannot count two classes "
            "together, so it is limited to 0; give it a number of its own to allow it."
            for key, other in shared_models(project.quota.gpus)
        ]
    if settings.amd.enabled and settings.amd.dra_driver:
        operator = settings.amd_operator
        found += [f"AMD operator {operator.chart.version}: {fault}." for fault in operator.faults]
    if settings.amd.enabled and settings.amd.driver.install:
        found.append("amd.driver.install needs cert-manager in the cluster, and reboots nodes with an older module.")
    return found
