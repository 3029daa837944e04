"""What the program registers, for each stack: names, specs, order, provider, outputs."""

from typing import Any

import pytest
import yaml

from berkelium_infra.catalog import DEVICE_CLASSES, MODELS
from berkelium_infra.policies import policy_names
from tests.unit import program
from tests.unit.program import (
    BINDING,
    DEVICE_CLASS,
    DEVICE_CONFIG,
    NAMESPACE,
    POLICY,
    PROVIDER,
    RELEASE,
    ROOT,
    RULE,
    STACK_NAMESPACES,
    STACKS,
    Registered,
)

NVIDIA = (RELEASE, "nvidia-dra-driver-gpu")
AMD = (RELEASE, "amd-gpu-operator")
DISCOVERY = (RELEASE, "node-feature-discovery")
CONFIG = (DEVICE_CONFIG, "berkelium-amd")
RULES = (RULE, "berkelium-gpus")


def orders(registered: Registered) -> dict[str, str]:
    """What the NVIDIA post-renderer is told."""
    return registered[NVIDIA].inputs["values"]["kubeletPlugin"]["podAnnotations"]


def test_every_object_has_an_explicit_name_so_that_nothing_is_auto_named(stack: Registered) -> None:
    for resource in stack.cluster_objects:
        named = resource.inputs if resource.type == RELEASE else resource.inputs["metadata"]
        assert named.get("name"), f"{resource.urn} has no name"
        assert "generateName" not in named


def test_every_object_uses_the_one_explicit_provider(stack: Registered) -> None:
    (provider,) = stack.of(PROVIDER).values()
    for resource in stack.cluster_objects:
        assert resource.request.provider == f"{provider.urn}::cluster-id", resource.urn


@pytest.mark.parametrize("name", STACKS)
def test_the_connection_stays_out_of_the_state(name: str) -> None:
    inputs = program.run(name)[PROVIDER, "cluster"].inputs
    expected = {"kubeconfig": "", "clusterIdentifier": f"berkelium-{name}", "enablePatchForce": "true"}
    # The lab's kubeconfig is made for it, so that its current context is the right one.
    assert inputs == (expected if name == "lab" else expected | {"context": f"berkelium-{name}"})


def test_the_device_classes_are_those_of_the_catalog(stack: Registered) -> None:
    classes = {r.inputs["metadata"]["name"]: r.inputs["spec"] for r in stack.of(DEVICE_CLASS).values()}
    assert classes == {
        known.name: {"selectors": [{"cel": {"expression": known.selector}}]}
        | ({"extendedResourceName": known.extended_resource} if known.extended_resource else {})
        for known in DEVICE_CLASSES
    }
    assert len(classes) == 8


def test_no_two_device_classes_share_an_extended_resource(stack: Registered) -> None:
    names = [r.inputs["spec"].get("extendedResourceName") for r in stack.of(DEVICE_CLASS).values()]
    given = [name for name in names if name]
    assert len(given) == len(set(given)) == 7


def test_helm_can_neither_delete_nor_take_back_a_class_that_a_chart_once_installed(stack: Registered) -> None:
    for name, resource in stack.of(DEVICE_CLASS).items():
        metadata = resource.inputs["metadata"]
        kept = metadata.get("annotations", {}).get("helm.sh/resource-policy") == "keep"
        ours = metadata.get("labels", {}).get("app.kubernetes.io/managed-by") == "pulumi"
        assert (kept, ours) == (True, True), name


ORDER = [
    (DISCOVERY, (NAMESPACE, "node-feature-discovery")),
    (NVIDIA, (NAMESPACE, "nvidia-dra-driver-gpu")),
    (AMD, (NAMESPACE, "kube-amd-gpu")),
    (RULES, DISCOVERY),
    *[(NVIDIA, (DEVICE_CLASS, known.name)) for known in DEVICE_CLASSES],
    *[(release, (BINDING, name)) for release in (NVIDIA, AMD) for name in policy_names()],
    *[((BINDING, name), (POLICY, name)) for name in policy_names()],
    *[((NAMESPACE, "my-project"), (BINDING, name)) for name in policy_names()],
    (CONFIG, AMD),
    (CONFIG, RULES),
    (CONFIG, (NAMESPACE, "kube-amd-gpu")),
]


@pytest.mark.parametrize(("later", "earlier"), ORDER, ids=[f"{a[1]}-after-{b[1]}" for a, b in ORDER])
def test_a_part_waits_for_what_it_depends_on(prod: Registered, later: Any, earlier: Any) -> None:
    assert prod.waits(later, earlier)
    assert not prod.waits(earlier, later)


@pytest.mark.parametrize(
    ("one", "other"), [(NVIDIA, AMD), (NVIDIA, DISCOVERY), (AMD, DISCOVERY), (NVIDIA, RULES), (AMD, RULES)]
)
def test_independent_releases_are_applied_at_the_same_time(prod: Registered, one: Any, other: Any) -> None:
    assert not prod.waits(one, other)
    assert not prod.waits(other, one)


def test_the_releases_have_fixed_names_and_pinned_versions(prod: Registered) -> None:
    found = {
        name: {key: release.inputs.get(key) for key in ("name", "namespace", "chart", "version", "repositoryOpts")}
        for name, release in prod.of(RELEASE).items()
    }
    assert found == {
        "nvidia-dra-driver-gpu": {
            "name": "nvidia-dra-driver-gpu",
            "namespace": "nvidia-dra-driver-gpu",
            "chart": "nvidia-dra-driver-gpu",
            "version": "25.12.0",
            "repositoryOpts": {"repo": "https://helm.ngc.nvidia.com/nvidia"},
        },
        "amd-gpu-operator": {
            "name": "amd-gpu-operator",
            "namespace": "kube-amd-gpu",
            "chart": "gpu-operator-charts",
            "version": "v1.5.1",
            "repositoryOpts": {"repo": "https://rocm.github.io/gpu-operator"},
        },
        "node-feature-discovery": {
            "name": "node-feature-discovery",
            "namespace": "node-feature-discovery",
            "chart": "node-feature-discovery",
            "version": "0.18.3",
            "repositoryOpts": {"repo": "https://kubernetes-sigs.github.io/node-feature-discovery/charts"},
        },
    }


def test_a_mirror_replaces_all_repositories_and_a_source_of_one_chart_only_its_own() -> None:
    mirrored = program.run("prod", {"charts": {"source": "oci://registry.example.com/charts/"}})
    assert mirrored[NVIDIA].inputs["chart"] == "oci://registry.example.com/charts/nvidia-dra-driver-gpu"
    assert not any("repositoryOpts" in release.inputs for release in mirrored.of(RELEASE).values())
    single = program.run("prod", {"charts": {"amd": {"source": "berkelium_lab/charts"}}})
    assert single[AMD].inputs["chart"] == "./berkelium_lab/charts/gpu-operator-charts"
    assert "repositoryOpts" in single[NVIDIA].inputs


def test_a_release_that_must_be_replaced_is_deleted_first(stack: Registered) -> None:
    for release in stack.of(RELEASE).values():
        assert release.request.deleteBeforeReplace, release.name


def test_the_nvidia_driver_gets_the_values_of_its_file_and_those_that_the_stack_decides(prod: Registered) -> None:
    values = prod[NVIDIA].inputs["values"]
    static = yaml.safe_load((ROOT / "values/nvidia-dra-driver-gpu-values.yaml").read_text())
    assert static["featureGates"] == {"DynamicMIG": True}
    assert values["featureGates"] == {"DynamicMIG": True}
    assert values["gpuResourcesEnabledOverride"] is True
    assert values["nvidiaDriverRoot"] == "/"
    assert values["kubeletPlugin"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]


def test_the_post_renderer_is_told_to_drop_the_classes_and_to_split_by_kind_of_node(prod: Registered) -> None:
    assert prod[NVIDIA].inputs["postrender"] == "./berkelium_infra/postrender/nvidia_dra_driver.py"
    told = orders(prod)
    assert told["berkelium.io/postrender-drop-device-classes"] == "gpu.nvidia.com,mig.nvidia.com"
    assert told["berkelium.io/postrender-split-by"] == "berkelium.io/dynamic-mig"


@pytest.mark.parametrize(
    ("nvidia", "split", "gate"),
    [
        ({}, True, True),
        ({"splitKubeletPlugin": "on"}, True, True),
        ({"splitKubeletPlugin": "off"}, False, True),
        ({"dynamicMigModels": ["h100"]}, True, True),
        ({"dynamicMigModels": []}, False, False),
        ({"dynamicMigModels": [], "splitKubeletPlugin": "on"}, False, False),
    ],
)
def test_the_kubelet_plugin_is_split_where_models_differ(nvidia: dict[str, Any], split: bool, gate: bool) -> None:
    registered = program.run("prod", {"nvidia": nvidia})
    assert ("berkelium.io/postrender-split-by" in orders(registered)) is split
    assert registered[NVIDIA].inputs["values"]["featureGates"]["DynamicMIG"] is gate


def test_the_rules_label_each_model_of_the_catalog_by_its_pci_devices(prod: Registered) -> None:
    rules = {rule["name"]: rule for rule in prod[RULES].inputs["spec"]["rules"]}
    assert set(rules) == {model.key for model in MODELS}
    assert rules["h200"] == {
        "name": "h200",
        "labels": {
            "berkelium.io/gpu-model": "h200",
            "berkelium.io/dynamic-mig": "true",
            "feature.node.kubernetes.io/pci-10de.present": "true",
        },
        "matchFeatures": [
            {
                "feature": "pci.device",
                "matchExpressions": {
                    "vendor": {"op": "In", "value": ["10de"]},
                    "device": {"op": "In", "value": ["233b"]},
                },
            }
        ],
    }
    assert rules["a40"]["labels"]["berkelium.io/dynamic-mig"] == "false"
    assert rules["mi100"]["labels"] == {
        "berkelium.io/gpu-model": "mi100",
        "feature.node.kubernetes.io/amd-gpu": "true",
    }


def test_a_model_without_dynamic_mig_is_labelled_so_although_its_hardware_could() -> None:
    registered = program.run("prod", {"nvidia": {"dynamicMigModels": ["b300", "h200", "h100"]}})
    labels = {rule["name"]: rule["labels"] for rule in registered[RULES].inputs["spec"]["rules"]}
    assert labels["a100"]["berkelium.io/dynamic-mig"] == "false"
    assert labels["h100"]["berkelium.io/dynamic-mig"] == "true"


def test_a_cluster_with_its_own_node_feature_discovery_gets_the_rules_alone() -> None:
    registered = program.run("prod", {"nodeFeatureDiscovery": {"enabled": False}})
    assert DISCOVERY not in registered.resources
    assert (NAMESPACE, "node-feature-discovery") not in registered.resources
    assert RULES in registered.resources


def test_a_vendor_that_is_switched_off_is_not_installed_but_its_classes_stay() -> None:
    registered = program.run("prod", {"nvidia": {"enabled": False}, "amd": {"enabled": False}})
    assert set(registered.of(RELEASE)) == {"node-feature-discovery"}
    assert CONFIG not in registered.resources
    assert len(registered.of(DEVICE_CLASS)) == 8


def test_the_stack_namespaces_admit_privileged_drivers_and_those_of_users_are_plain(stack: Registered) -> None:
    namespaces = {name: resource.inputs["metadata"].get("labels", {}) for name, resource in stack.of(NAMESPACE).items()}
    assert set(namespaces) == {*STACK_NAMESPACES, "my-project"}
    for name, labels in namespaces.items():
        privileged = labels.get("pod-security.kubernetes.io/enforce") == "privileged"
        assert privileged is (name in STACK_NAMESPACES), name


def test_the_outputs_tell_versions_classes_policies_and_namespaces(stack: Registered) -> None:
    assert stack.outputs == {
        "versions": {
            "node-feature-discovery": "0.18.3",
            "nvidia-dra-driver-gpu": "25.12.0",
            "gpu-operator-charts": "v1.5.1",
        },
        "deviceClasses": {known.name: known.extended_resource for known in DEVICE_CLASSES},
        "policies": dict.fromkeys(policy_names(), "deny"),
        "namespaces": {"stack": list(STACK_NAMESPACES), "projects": ["my-project"]},
    }


def test_a_known_fault_that_the_stack_runs_into_is_logged_as_a_warning(prod: Registered) -> None:
    assert any("#883" in line for line in prod.logged)


def test_an_extra_device_class_is_declared_beside_those_of_the_catalog() -> None:
    extra = {
        "name": "any-nvidia",
        "selector": 'device.driver == "gpu.nvidia.com"',
        "extendedResource": "example.com/any",
    }
    registered = program.run("prod", {"extraDeviceClasses": [extra]})
    assert registered[DEVICE_CLASS, "any-nvidia"].inputs["spec"] == {
        "selectors": [{"cel": {"expression": extra["selector"]}}],
        "extendedResourceName": "example.com/any",
    }
    assert registered.waits(NVIDIA, (DEVICE_CLASS, "any-nvidia"))
    assert registered.outputs["deviceClasses"]["any-nvidia"] == "example.com/any"
