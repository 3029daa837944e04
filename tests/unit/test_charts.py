"""The stand-in charts and the values of the stack: what can be told without rendering."""

import copy
import json
from functools import reduce
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from berkelium_infra.catalog import MODELS, NVIDIA
from berkelium_infra.charts import local_version, reference
from berkelium_infra.helm import merged
from berkelium_infra.versions import AMD_OPERATORS, NODE_FEATURE_DISCOVERIES, NVIDIA_DRIVERS, Chart
from tests.unit import program
from tests.unit.custom_resources import CHARTS, definitions, faults

VALUES = CHARTS.parents[1] / "values"
NVIDIA_CHART, AMD_CHART, NFD_CHART = "nvidia-dra-driver-gpu", "gpu-operator-charts", "node-feature-discovery"
NAMES = (NVIDIA_CHART, AMD_CHART, NFD_CHART)
STAND_INS = "berkelium_lab/charts"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def values(chart: str) -> dict[str, Any]:
    """The static values of the stack for a chart."""
    return load(VALUES / f"{chart}-values.yaml")


def refusals(chart: str, given: dict[str, Any]) -> set[str]:
    """Paths of the values that the stand-in refuses, given on top of its defaults, as Helm checks them."""
    schema = json.loads((CHARTS / chart / "values.schema.json").read_text(encoding="utf-8"))
    errors = jsonschema.Draft7Validator(schema).iter_errors(merged(load(CHARTS / chart / "values.yaml"), given))
    return {".".join(map(str, error.absolute_path)) for error in errors}


def nested(path: str, value: object) -> dict[str, Any]:
    return reduce(lambda inner, key: {key: inner}, reversed(path.split(".")), value)  # type: ignore[return-value]


PINNED = [each.chart for each in (*NVIDIA_DRIVERS, *AMD_OPERATORS, *NODE_FEATURE_DISCOVERIES)]


@pytest.mark.parametrize("pinned", PINNED, ids=lambda chart: f"{chart.name} {chart.version}")
def test_every_release_that_a_stack_can_choose_has_a_stand_in(pinned: Chart) -> None:
    assert local_version(program.ROOT, STAND_INS, pinned.name, pinned.version) == pinned.version


@pytest.mark.parametrize("pinned", PINNED, ids=lambda chart: f"{chart.name} {chart.version}")
def test_every_stand_in_implements_the_values_of_its_stack(pinned: Chart) -> None:
    found = reference(pinned, pinned.version, STAND_INS, program.ROOT).files
    assert found is not None
    assert refusals(found.name, values(pinned.values)) == set()


UPGRADED = {"charts": {"source": STAND_INS, "nvidia": {"version": "0.4.1"}, "amd": {"version": "v1.5.0"}}}


@pytest.mark.parametrize(
    ("stack", "chosen"), [*[(stack, {}) for stack in program.STACKS], ("lab", UPGRADED)], ids=[*program.STACKS, "other"]
)
def test_a_stand_in_implements_what_the_program_decides(stack: str, chosen: dict[str, Any]) -> None:
    releases = program.run(stack, chosen).of(program.RELEASE).values()
    assert {
        each.inputs["name"]: refusals(Path(each.inputs["chart"]).name, each.inputs["values"]) for each in releases
    } == {
        "nvidia-dra-driver-gpu": set(),
        "amd-gpu-operator": set(),
        "node-feature-discovery": set(),
    }


@pytest.mark.parametrize(
    ("chart", "path", "value"),
    [
        (NVIDIA_CHART, "webhook.enabled", True),
        (NVIDIA_CHART, "kubeletPlugin.networkPolicy.enabled", True),
        (NVIDIA_CHART, "serviceAccount.create", False),
        (NVIDIA_CHART, "selectorLabelsOverride", {"app": "x"}),
        (NVIDIA_CHART, "featureGates.PassthroughSupport", True),
        (AMD_CHART, "kmm.enabled", True),
        (AMD_CHART, "node-feature-discovery.enabled", True),
        (AMD_CHART, "remediation.enabled", True),
        (AMD_CHART, "installdefaultNFDRule", True),
        (AMD_CHART, "crds.defaultCR.install", True),
        (NFD_CHART, "topologyUpdater.enable", True),
        (NFD_CHART, "prometheus.enable", True),
        (NFD_CHART, "worker.mountUsrSrc", True),
        (NFD_CHART, "global", {"imagePullSecrets": [{"name": "registry"}]}),
    ],
)
def test_a_switch_that_a_stand_in_leaves_out_cannot_be_turned(chart: str, path: str, value: object) -> None:
    assert refusals(chart, merged(values(chart), nested(path, value))) == {path}


@pytest.mark.parametrize(
    ("chart", "path", "found"),
    [
        (NVIDIA_CHART, "kubeletPlugin.toleration", "kubeletPlugin"),
        (AMD_CHART, "controllerManager.manager.resource", "controllerManager.manager"),
        (NFD_CHART, "worker.configs", "worker"),
    ],
)
def test_a_value_that_no_template_reads_is_refused(chart: str, path: str, found: str) -> None:
    assert refusals(chart, merged(values(chart), nested(path, {}))) == {found}


def test_amds_stand_in_does_not_render_with_the_defaults_that_it_leaves_out() -> None:
    assert refusals(AMD_CHART, {}) == {
        "node-feature-discovery.enabled",
        "kmm.enabled",
        "remediation.enabled",
        "remediation.installCRDs",
        "installdefaultNFDRule",
        "crds.defaultCR.install",
    }


def released(chart: str) -> dict[str, Any]:
    """The values with which the program releases the chart on the production cluster."""
    (found,) = [
        each.inputs for each in program.run("prod").of(program.RELEASE).values() if chart in each.inputs["chart"]
    ]
    return found["values"]


def resources_in(tree: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every value with the key `resources` that has requests or limits, by path."""
    found = {}
    for key, value in tree.items() if isinstance(tree, dict) else ():
        if key == "resources" and isinstance(value, dict) and {"requests", "limits"} & value.keys():
            found[".".join(path)] = value
        found |= resources_in(value, (*path, key))
    return found


@pytest.mark.parametrize(
    ("chart", "containers"),
    [
        (
            NVIDIA_CHART,
            {
                "kubeletPlugin.containers.gpus",
                "kubeletPlugin.containers.computeDomains",
                "controller.containers.computeDomain",
            },
        ),
        (AMD_CHART, {"controllerManager.manager"}),
        (NFD_CHART, {"master", "worker", "gc"}),
    ],
)
def test_every_container_that_values_can_reach_states_cpu_and_memory(chart: str, containers: set[str]) -> None:
    stated = resources_in(released(chart))
    assert stated.keys() == containers
    for amounts in stated.values():
        assert {kind: amounts[kind].keys() for kind in amounts} == {
            "requests": {"cpu", "memory"},
            "limits": {"cpu", "memory"},
        }


def test_the_init_container_gets_its_resources_from_an_annotation() -> None:
    orders = released(NVIDIA_CHART)["kubeletPlugin"]["podAnnotations"]
    amounts = json.loads(orders["berkelium.io/postrender-init-resources"])
    assert {kind: sorted(amounts[kind]) for kind in amounts} == {
        "requests": ["cpu", "memory"],
        "limits": ["cpu", "memory"],
    }


def test_dynamic_mig_is_on_and_the_chart_is_told_that_no_device_plugin_is_there() -> None:
    given = values(NVIDIA_CHART)
    assert given["featureGates"] == {"DynamicMIG": True}
    assert given["gpuResourcesEnabledOverride"] is True
    assert given["resources"]["computeDomains"]["enabled"] is False


def test_the_nfd_worker_labels_every_gpu_in_the_form_that_nvidias_affinity_asks_for() -> None:
    pci = values(NFD_CHART)["worker"]["config"]["sources"]["pci"]
    assert pci["deviceLabelFields"] == ["vendor"]
    assert {model.pci_class for model in MODELS} <= set(pci["deviceClassWhitelist"])
    terms = load(CHARTS / NVIDIA_CHART / "values.yaml")["kubeletPlugin"]["affinity"]["nodeAffinity"]
    keys = [
        term["matchExpressions"][0]["key"]
        for term in terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    ]
    assert f"feature.node.kubernetes.io/pci-{NVIDIA.pci_id}.present" in keys


def test_no_values_name_an_image_tagged_latest() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in VALUES.glob("*.yaml")}
    assert texts.keys() == {f"{chart}-values.yaml" for chart in NAMES}
    assert [name for name, text in texts.items() if ":latest" in text or "tag: latest" in text] == []


def test_the_charts_bring_the_seven_crds_of_the_originals() -> None:
    assert {crd["metadata"]["name"] for crd in definitions().values()} == {
        "computedomaincliques.resource.nvidia.com",
        "computedomains.resource.nvidia.com",
        "deviceconfigs.amd.com",
        "nodefeaturegroups.nfd.k8s-sigs.io",
        "nodefeaturerules.nfd.k8s-sigs.io",
        "nodefeatures.nfd.k8s-sigs.io",
        "remediationworkflowstatuses.amd.com",
    }


@pytest.mark.parametrize("stack", program.STACKS)
@pytest.mark.parametrize("kind", [program.DEVICE_CONFIG, program.RULE])
def test_the_stacks_custom_resources_have_only_fields_that_their_crd_knows(stack: str, kind: str) -> None:
    registered = program.run(stack).of(kind)
    assert registered
    assert {name: faults(resource.inputs) for name, resource in registered.items()} == {name: [] for name in registered}


DEVICE_CONFIG = {
    "apiVersion": "amd.com/v1alpha1",
    "kind": "DeviceConfig",
    "metadata": {"name": "gpus", "namespace": "kube-amd-gpu"},
    "spec": {
        "selector": {"feature.node.kubernetes.io/amd-gpu": "true"},
        "driver": {"enable": False, "upgradePolicy": {"maxUnavailableNodes": 3}},
        "devicePlugin": {"enableDevicePlugin": False, "enableNodeLabeller": True},
        "draDriver": {
            "enable": True,
            "image": "docker.io/rocm/k8s-gpu-dra-driver:v1.0.1@sha256:" + "0" * 64,
            "tolerations": [{"key": "amd.com/gpu", "operator": "Exists"}],
        },
        "metricsExporter": {"enable": False},
    },
}


def test_a_device_config_as_users_write_it_is_accepted() -> None:
    assert faults(DEVICE_CONFIG) == []


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("draDriver.enabled", True, "spec.draDriver: Additional properties"),
        ("draDriver.enable", "true", "spec.draDriver.enable: 'true' is not of type 'boolean'"),
        (
            "draDriver.image",
            "docker.io/rocm/driver:V1",
            "spec.draDriver.image: 'docker.io/rocm/driver:V1' does not match",
        ),
        ("draDriver.imagePullPolicy", "Sometimes", "spec.draDriver.imagePullPolicy: 'Sometimes' is not one of"),
        ("driver.driverType", "vm", "spec.driver.driverType: 'vm' is not one of"),
        (
            "driver.upgradePolicy.maxParallelUpgrades",
            -1,
            "spec.driver.upgradePolicy.maxParallelUpgrades: -1 is less than",
        ),
        ("metricsExporter.nodePort", 80, "spec.metricsExporter.nodePort: 80 is less than"),
        ("nodeLabeller.enable", True, "spec: Additional properties"),
    ],
)
def test_a_device_config_that_the_operators_crd_refuses_is_refused(path: str, value: object, fault: str) -> None:
    changed = merged(copy.deepcopy(DEVICE_CONFIG), nested(f"spec.{path}", value))
    (found,) = faults(changed)
    assert found.startswith(fault)


RULE = {
    "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
    "kind": "NodeFeatureRule",
    "metadata": {"name": "gpus"},
    "spec": {
        "rules": [
            {
                "name": "a40",
                "labels": {"example.com/gpu": "a40"},
                "matchAny": [
                    {"matchFeatures": [{"feature": "pci.device", "matchName": {"op": "Exists"}}]},
                    {
                        "matchFeatures": [
                            {"feature": "pci.device", "matchExpressions": {"class": {"op": "In", "value": ["0302"]}}}
                        ]
                    },
                ],
            }
        ]
    },
}


def test_a_node_feature_rule_as_users_write_it_is_accepted() -> None:
    assert faults(RULE) == []


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ({"op": "In", "value": [302]}, "302 is not of type 'string'"),
        ({"op": "Equals", "value": ["0302"]}, "'Equals' is not one of"),
        ({"value": ["0302"]}, "'op' is a required property"),
        ({"op": "In", "values": ["0302"]}, "Additional properties are not allowed ('values' was unexpected)"),
    ],
)
def test_a_node_feature_rule_that_nfds_crd_refuses_is_refused(expression: dict[str, Any], fault: str) -> None:
    rule = copy.deepcopy(RULE)
    rule["spec"]["rules"][0]["matchAny"][1]["matchFeatures"][0]["matchExpressions"]["class"] = expression
    (found,) = faults(rule)
    assert fault in found
