"""Rules over several entries of the configuration: each yields the faults that it finds."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from berkelium_infra import charts, versions
from berkelium_infra.catalog import DEVICE_CLASSES, MODELS
from berkelium_infra.catalog import NVIDIA as NVIDIA_VENDOR
from berkelium_infra.policies import policy_names
from berkelium_infra.settings.faults import Fault, listed, unknown
from berkelium_infra.settings.model import SYSTEM_NAMESPACES, Settings
from berkelium_infra.settings.tenant_rules import adoption, projects
from berkelium_infra.settings.types import split_image

LAB_STACK = "lab"
"""The stack that may go without a kube context: its kubeconfig is made for it and names one cluster only."""


def check(settings: Settings, stack: str, project: Path, secret: Collection[str] | None) -> list[Fault]:
    """All faults of the rules, in the order of the rules; `secret` as in `parse`."""
    faults: list[Fault] = [
        *_connection(settings, stack),
        *_policies(settings, project),
        *_chart_files(settings, project),
        *adoption(settings, project),
        *_encryption(settings, secret),
    ]
    for rule in _RULES:
        faults += rule(settings)
    return faults


def _connection(settings: Settings, stack: str) -> Iterator[Fault]:
    if not settings.context and stack != LAB_STACK:
        yield Fault(
            "context",
            "It is missing, and nobody may apply to whatever cluster a kubeconfig happens to point at.",
            "Write the name of the cluster's context, as kubectl config get-contexts shows it.",
        )
    if not settings.cluster_identifier:
        yield Fault(
            "clusterIdentifier", "It is missing.", "Write a constant name for the cluster, such as its stack's."
        )


def _encryption(settings: Settings, secret: Collection[str] | None) -> Iterator[Fault]:
    if settings.amd.registry_credentials and secret is not None and "amd" not in secret:
        yield Fault(
            "amd.registryCredentials.password",
            "It is not encrypted, and whoever can read the file or the state can read it.",
            "Change the password, and set it with pulumi config set --path amd.registryCredentials.password --secret.",
        )


def _policies(settings: Settings, project: Path) -> Iterator[Fault]:
    known = policy_names(project)
    for name in settings.policies:
        if name not in known:
            yield unknown(f"policies.{name}", name, "policy", known)


def _chart_versions(settings: Settings) -> Iterator[Fault]:
    listed_versions = {
        "nvidia": [driver.chart.version for driver in versions.NVIDIA_DRIVERS],
        "amd": [operator.chart.version for operator in versions.AMD_OPERATORS],
        "nodeFeatureDiscovery": [entry.chart.version for entry in versions.NODE_FEATURE_DISCOVERIES],
    }
    for part, chart in _chart_settings(settings):
        if part == "amd" and settings.amd.enabled and settings.amd.dra_driver and not _has_dra(chart.version):
            yield Fault(
                "charts.amd.version",
                f"The AMD operator {chart.version} has no DRA driver; the first one is {versions.AMD_FIRST_WITH_DRA}.",
                f"Write {listed(listed_versions[part])}.",
            )
        elif chart.version not in listed_versions[part] and not chart.allow_unknown_version:
            yield Fault(
                f"charts.{part}.version",
                f"{chart.version!r} is not known to berkelium_infra/versions.py.",
                f"Write {listed(listed_versions[part])}, or add charts.{part}.allowUnknownVersion: true.",
            )


def _has_dra(amd_version: str) -> bool:
    return versions.order(amd_version) >= versions.order(versions.AMD_FIRST_WITH_DRA)


def _images(settings: Settings) -> Iterator[Fault]:
    """A mirror's image with the tag of another release: the chart would be upgraded, what it runs would not."""
    known: dict[str, set[str]] = {
        "nvidia": {driver.chart.version for driver in versions.NVIDIA_DRIVERS},
        "amd": {operator.chart.version.removeprefix("v") for operator in versions.AMD_OPERATORS},
    }
    for part, field, image, chart in (
        ("nvidia", "image", settings.nvidia.image, settings.charts.nvidia),
        ("amd", "operatorImage", settings.amd.operator_image, settings.charts.amd),
    ):
        tag = split_image(image)[1].split("@")[0].removeprefix("v") if image else ""
        if tag in known[part] - {chart.version.removeprefix("v")}:
            yield Fault(
                f"{part}.{field}",
                f"Its tag says {tag}, but charts.{part}.version is {chart.version}.",
                "Write the image of that version, or remove the key where no mirror is needed.",
            )


def _chart_settings(settings: Settings):
    yield "nvidia", settings.charts.nvidia
    yield "amd", settings.charts.amd
    yield "nodeFeatureDiscovery", settings.charts.node_feature_discovery


def _chart_files(settings: Settings, project: Path) -> Iterator[Fault]:
    enabled = {
        "nvidia": (settings.nvidia.enabled, settings.nvidia_driver.chart),
        "amd": (settings.amd.enabled, settings.amd_operator.chart),
        "nodeFeatureDiscovery": (settings.node_feature_discovery.enabled, settings.discovery.chart),
    }
    for part, chosen in _chart_settings(settings):
        wanted, chart = enabled[part]
        source = chosen.source or settings.charts.source
        if not wanted or not charts.is_directory(source):
            continue
        at = f"charts.{part}.source" if chosen.source else "charts.source"
        try:
            found = charts.local_version(project, source, chart.name, chosen.version)
        except charts.ChartNotFound as error:
            yield Fault(at, str(error), f"Unpack chart {chart.name} {chosen.version} there, or write another source.")
            continue
        if found != chosen.version:
            yield Fault(
                f"charts.{part}.version",
                f"It is {chosen.version!r}, but {source}/{chart.name} is version {found!r}.",
                "Write that version, or put the right chart there.",
            )


def _models(settings: Settings) -> Iterator[Fault]:
    models = {model.key: model for model in MODELS}
    capable = [model.key for model in MODELS if model.mig_capable]
    for name, count in Counter(settings.nvidia.dynamic_mig_models).items():
        if name not in models:
            yield unknown("nvidia.dynamicMigModels", name, "GPU model of the catalog", capable)
        elif name not in capable:
            yield Fault(
                "nvidia.dynamicMigModels",
                f"{models[name].title} ({name}) cannot be partitioned.",
                f"Remove it; {listed(capable)} can be.",
            )
        elif count > 1:
            yield Fault("nvidia.dynamicMigModels", f"{name} stands there {count} times.", "Write it once.")


def _split(settings: Settings) -> Iterator[Fault]:
    chosen = settings.nvidia.dynamic_mig_models
    left_out = [m.key for m in MODELS if m.vendor is NVIDIA_VENDOR and m.mig_capable and m.key not in chosen]
    if settings.nvidia.split_kubelet_plugin == "off" and chosen and left_out:
        yield Fault(
            "nvidia.splitKubeletPlugin",
            f"Without the split DynamicMIG is on for every node, also for {listed(left_out)}, "
            "which dynamicMigModels leaves out.",
            "Write auto, or name these models in nvidia.dynamicMigModels too.",
        )


def _feature_gates(settings: Settings) -> Iterator[Fault]:
    driver, gates = settings.nvidia_driver, settings.nvidia.feature_gates
    dynamic_mig = bool(settings.nvidia.dynamic_mig_models)
    if "DynamicMIG" in gates and gates["DynamicMIG"] != dynamic_mig:
        yield Fault(
            "nvidia.featureGates.DynamicMIG",
            f"It contradicts nvidia.dynamicMigModels, which says {str(dynamic_mig).lower()}.",
            "Remove the gate; an empty list of models switches DynamicMIG off.",
        )
    for gate in gates:
        if gate not in driver.feature_gates:
            kind = f"feature gate of the NVIDIA driver {driver.chart.version}"
            yield unknown(f"nvidia.featureGates.{gate}", gate, kind, driver.feature_gates)
    on = dict.fromkeys(driver.gates_on_by_default, True) | gates | ({"DynamicMIG": True} if dynamic_mig else {})
    for first, second in driver.exclusions:
        if on.get(first) and on.get(second):
            yield Fault(
                f"nvidia.featureGates.{second}",
                f"The driver {driver.chart.version} does not start with {second} and {first} both on.",
                f"Write {second}: false"
                + (", or nvidia.dynamicMigModels: []." if first == "DynamicMIG" else f", or {first}: false."),
            )
    for gate, needed in driver.requirements:
        if on.get(gate) and not on.get(needed):
            yield Fault(
                f"nvidia.featureGates.{needed}",
                f"The driver {driver.chart.version} does not start with {gate} on and {needed} off.",
                f"Write {gate}: false too, or remove {needed}.",
            )


def _amd(settings: Settings) -> Iterator[Fault]:
    amd = settings.amd
    if not amd.enabled:
        return
    if amd.device_plugin and amd.dra_driver:
        yield Fault(
            "amd.devicePlugin",
            "The device plugin and the DRA driver cannot both hand out one node's GPUs; the operator refuses it.",
            "Write devicePlugin: false, or draDriver: false.",
        )
    elif amd.device_plugin and amd.device_plugin_image is None:
        yield Fault(
            "amd.devicePluginImage",
            "It is missing, and the operator's default is an image tagged latest.",
            "Write an image of rocm/k8s-device-plugin with a fixed tag.",
        )
    if not amd.device_plugin and not amd.dra_driver:
        yield Fault(
            "amd.draDriver", "Nothing would hand out the GPUs.", "Write draDriver: true, or amd.enabled: false."
        )
    if amd.registry_credentials and amd.driver.registry_secret:
        yield Fault(
            "amd.registryCredentials",
            "There is driver.registrySecret as well.",
            "Keep one: the stack makes a Secret of the credentials, or one that is there is named.",
        )
    if amd.driver.install and not amd.driver.registry:
        yield Fault(
            "amd.driver.registry",
            "driver.install needs a registry for the driver images that the operator builds.",
            "Write a registry and project such as registry.example.com/amd, or driver.install: false.",
        )
    for name in ("dra_image", "device_plugin_image", "utils_image", "init_image"):
        image = getattr(amd, name)
        if image and image != image.lower():
            field = type(amd).model_fields[name].alias
            yield Fault(f"amd.{field}", f"{image!r} has upper case letters.", "The DeviceConfig takes lower case only.")


def _device_classes(settings: Settings) -> Iterator[Fault]:
    names = {known.name for known in DEVICE_CLASSES}
    owners = {known.extended_resource: known.name for known in DEVICE_CLASSES if known.extended_resource}
    for index, extra in enumerate(settings.extra_device_classes):
        at = f"extraDeviceClasses[{index}]"
        if extra.name in names:
            yield Fault(f"{at}.name", f"There is a device class {extra.name} already.", "Write another name.")
        if not extra.selector.replace("'", '"').startswith('device.driver == "'):
            yield Fault(
                f"{at}.selector",
                "It does not begin with the driver, so that another driver's device without the attributes it asks for "
                "would stop the scheduling of every pod with this class.",
                'Begin it with device.driver == "gpu.nvidia.com" && (or the driver it is meant for).',
            )
        resource = extra.extended_resource
        if resource and resource in owners:
            yield Fault(
                f"{at}.extendedResource",
                f"{resource} stands for the device class {owners[resource]} already; the API accepts both, and the "
                "class that was created later silently wins.",
                "Write another name, or leave it out.",
            )
        names.add(extra.name)
        owners |= {resource: extra.name} if resource else {}


def _namespaces(settings: Settings) -> Iterator[Fault]:
    for field, names in (
        ("exemptNamespaces", settings.exempt_namespaces),
        ("projectNamespaces", settings.project_namespaces),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield Fault(field, f"{name} stands there {count} times.", "Write it once.")
    for name in dict.fromkeys(settings.project_namespaces):
        if name in (*SYSTEM_NAMESPACES, "default", *settings.stack_namespaces):
            yield Fault("projectNamespaces", f"{name} is a namespace of the system or of this stack.", "Remove it.")
        elif name in settings.exempt_namespaces:
            yield Fault(
                "exemptNamespaces",
                f"{name} is a project namespace; the policies are there for projects.",
                "Remove it from one of the two lists.",
            )


_RULES: tuple[Callable[[Settings], Iterator[Fault]], ...] = (
    _chart_versions,
    _images,
    _models,
    _split,
    _feature_gates,
    _amd,
    _device_classes,
    _namespaces,
    projects,
)
