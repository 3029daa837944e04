"""A stack's configuration: what is read from it, and every fault that stops it."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from berkelium_infra.settings import PROJECT, PolicyMode, Settings, SettingsError, parse, warnings

GOOD: dict[str, Any] = {"context": "cluster", "clusterIdentifier": "cluster"}
RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
CLASS = {"name": "big", "selector": 'device.driver == "gpu.nvidia.com"'}


def faults(
    stack: str = "prod", project: Path | None = None, secret: Collection[str] | None = None, **entries: Any
) -> dict[str, str]:
    """The faults of a good configuration with some entries replaced: problem and remedy by key."""
    with pytest.raises(SettingsError) as caught:
        parse(GOOD | entries, stack, project or PROJECT, secret)
    return {fault.key: f"{fault.problem} {fault.remedy}" for fault in caught.value.faults}


FAULTS = [
    ({"contxt": "x"}, "contxt", "Write context."),
    ({"kubernetes:context": "x"}, "kubernetes:context", "is no key"),
    ({"nvidia": {"driverroot": "/"}}, "nvidia.driverroot", "Write driverRoot."),
    ({"amd": {"driver": {"instal": True}}}, "amd.driver.instal", "Write install."),
    ({"nvidia": {"resources": {"gpu": RESOURCES}}}, "nvidia.resources.gpu", "Write gpus."),
    ({"nvidia": "on"}, "nvidia", "is no mapping"),
    ({"nvidia": {"enabled": "perhaps"}}, "nvidia.enabled", "Write true or false."),
    ({"nvidia": {"driverRoot": "run/nvidia"}}, "nvidia.driverRoot", "run/nvidia"),
    ({"nvidia": {"splitKubeletPlugin": "maybe"}}, "nvidia.splitKubeletPlugin", "Write auto, on or off."),
    ({"nvidia": {"dynamicMigModels": ["h20"]}}, "nvidia.dynamicMigModels", "Write h200."),
    ({"nvidia": {"dynamicMigModels": ["v100"]}}, "nvidia.dynamicMigModels", "no GPU model of the catalog"),
    ({"nvidia": {"dynamicMigModels": ["a40"]}}, "nvidia.dynamicMigModels", "cannot be partitioned"),
    ({"nvidia": {"dynamicMigModels": ["mi100"]}}, "nvidia.dynamicMigModels", "cannot be partitioned"),
    ({"nvidia": {"dynamicMigModels": ["h100", "h100"]}}, "nvidia.dynamicMigModels", "Write it once."),
    (
        {"nvidia": {"dynamicMigModels": ["h100"], "splitKubeletPlugin": "off"}},
        "nvidia.splitKubeletPlugin",
        "also for b300, h200 or a100",
    ),
    ({"nvidia": {"featureGates": {"MPSSupport": True}}}, "nvidia.featureGates.MPSSupport", "DynamicMIG both on"),
    (
        {"nvidia": {"featureGates": {"PassthroughSupport": True}}},
        "nvidia.featureGates.PassthroughSupport",
        "DynamicMIG both on",
    ),
    (
        {"nvidia": {"featureGates": {"NVMLDeviceHealthCheck": True}}},
        "nvidia.featureGates.NVMLDeviceHealthCheck",
        "Write NVMLDeviceHealthCheck: false",
    ),
    ({"nvidia": {"featureGates": {"TimeSlicing": True}}}, "nvidia.featureGates.TimeSlicing", "TimeSlicingSettings"),
    ({"nvidia": {"featureGates": {"DynamicMIG": False}}}, "nvidia.featureGates.DynamicMIG", "Remove the gate"),
    (
        {"nvidia": {"featureGates": {"IMEXDaemonsWithDNSNames": False}}},
        "nvidia.featureGates.IMEXDaemonsWithDNSNames",
        "ComputeDomainCliques",
    ),
    ({"nvidia": {"featureGates": {"MPSSupport": "maybe"}}}, "nvidia.featureGates.MPSSupport", "true or false"),
    ({"nvidia": {"image": "nvcr.io/nvidia/driver"}}, "nvidia.image", "fixed tag"),
    ({"nvidia": {"image": "nvcr.io/nvidia/driver:latest"}}, "nvidia.image", "instead of latest"),
    ({"nvidia": {"tolerations": [{"value": "x"}]}}, "nvidia.tolerations[0]", "Write key, or operator: Exists."),
    ({"nvidia": {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}}, "nvidia.tolerations[0]", "value"),
    ({"nvidia": {"tolerations": [{"key": "a", "effect": "Never"}]}}, "nvidia.tolerations[0].effect", "NoSchedule"),
    ({"nvidia": {"tolerations": {"key": "a"}}}, "nvidia.tolerations", "Write a list."),
    ({"nvidia": {"nodeSelector": {"a b": "c"}}}, "nvidia.nodeSelector.a b", "is no label key"),
    ({"nvidia": {"nodeSelector": {"pool": "a b"}}}, "nvidia.nodeSelector.pool", "is no label value"),
    (
        {"nvidia": {"resources": {"gpus": RESOURCES | {"requests": {"cpu": "3", "memory": "1Gi"}}}}},
        "nvidia.resources.gpus",
        "requests.cpu 3 is above limits.cpu 2",
    ),
    (
        {"nvidia": {"resources": {"gpus": RESOURCES | {"limits": {"cpu": "2", "memory": "512Mi"}}}}},
        "nvidia.resources.gpus",
        "requests.memory 1Gi is above limits.memory 512Mi",
    ),
    (
        {"amd": {"resources": {"manager": RESOURCES | {"limits": {"cpu": "two", "memory": "2Gi"}}}}},
        "amd.resources.manager.limits.cpu",
        "'two' is no quantity",
    ),
    (
        {"amd": {"resources": {"manager": RESOURCES | {"limits": {"cpu": "0m", "memory": "2Gi"}}}}},
        "amd.resources.manager.limits.cpu",
        "means unlimited",
    ),
    (
        {"nodeFeatureDiscovery": {"resources": {"gc": {"requests": {"cpu": "1", "memory": "1Gi"}}}}},
        "nodeFeatureDiscovery.resources.gc.limits",
        "missing",
    ),
    ({"amd": {"devicePlugin": True}}, "amd.devicePlugin", "Write devicePlugin: false, or draDriver: false."),
    ({"amd": {"draDriver": False}}, "amd.draDriver", "Nothing would hand out the GPUs."),
    ({"amd": {"devicePlugin": True, "draDriver": False}}, "amd.devicePluginImage", "fixed tag"),
    ({"amd": {"driver": {"install": True}}}, "amd.driver.registry", "or driver.install: false"),
    ({"amd": {"driver": {"registry": "https://r.example.com"}}}, "amd.driver.registry", "such as registry.example/amd"),
    ({"amd": {"draImage": "rocm/dra:latest"}}, "amd.draImage", "instead of latest"),
    ({"amd": {"draImage": "rocm/dra:V1"}}, "amd.draImage", "lower case"),
    ({"amd": {"driver": {"version": 30.2}}}, "amd.driver.version", "Write it in quotes."),
    ({"exemptNamespaces": ["kube-*"]}, "exemptNamespaces[0]", "patterns are not understood"),
    ({"exemptNamespaces": ["ok", "Monitoring"]}, "exemptNamespaces[1]", "'Monitoring'"),
    ({"exemptNamespaces": "monitoring"}, "exemptNamespaces", "Write a list."),
    ({"exemptNamespaces": ["a", "a"]}, "exemptNamespaces", "Write it once."),
    ({"exemptNamespaces": ["team"], "projectNamespaces": ["team"]}, "exemptNamespaces", "project namespace"),
    ({"projectNamespaces": ["kube-system"]}, "projectNamespaces", "of the system or of this stack"),
    ({"projectNamespaces": ["kube-amd-gpu"]}, "projectNamespaces", "of the system or of this stack"),
    ({"projectNamespaces": ["a.b"]}, "projectNamespaces[0]", "no name of a namespace"),
    ({"policies": {"no-idle-gpu": "block"}}, "policies.no-idle-gpu", "Write deny, warn, audit or off."),
    ({"policies": {"no-idle-gpus": "deny"}}, "policies.no-idle-gpus", "Write no-idle-gpu."),
    ({"charts": {"nvidia": {"version": "25.12.1"}}}, "charts.nvidia.version", "allowUnknownVersion: true"),
    ({"charts": {"amd": {"version": "1.5.1"}}}, "charts.amd.version", "Write v1.5.0 or v1.5.1"),
    (
        {"charts": {"amd": {"version": "v1.4.1", "allowUnknownVersion": True}}},
        "charts.amd.version",
        "has no DRA driver; the first one is v1.5.0",
    ),
    (
        {"charts": {"nvidia": {"version": "0.4.1"}}, "nvidia": {"image": "registry.example.com/driver:v25.12.0"}},
        "nvidia.image",
        "Its tag says 25.12.0, but charts.nvidia.version is 0.4.1.",
    ),
    (
        {"amd": {"operatorImage": "registry.example.com/gpu-operator:v1.5.0"}},
        "amd.operatorImage",
        "Write the image of that version",
    ),
    ({"nvidia": {"maxUnavailable": 0}}, "nvidia.maxUnavailable", "such as 10%"),
    ({"nvidia": {"maxUnavailable": "200%"}}, "nvidia.maxUnavailable", "such as 10%"),
    ({"charts": {"nodeFeatureDiscovery": {"version": "0.19.0"}}}, "charts.nodeFeatureDiscovery.version", "0.18.3"),
    ({"charts": {"source": "https://example.com"}}, "charts.source", "is no chart source"),
    ({"charts": {"source": "/srv/charts"}}, "charts.source", "relative to the project"),
    ({"charts": {"source": "no/such/directory"}}, "charts.source", "no/such/directory/"),
    ({"charts": {"nvidia": {"source": "no/such"}}}, "charts.nvidia.source", "nvidia-dra-driver-gpu-25.12.0.tgz"),
    ({"charts": {"timeoutSeconds": 5}}, "charts.timeoutSeconds", "30"),
    ({"extraDeviceClasses": [CLASS | {"name": "nvidia-h100"}]}, "extraDeviceClasses[0].name", "already"),
    (
        {"extraDeviceClasses": [CLASS | {"extendedResource": "nvidia.com/gpu"}]},
        "extraDeviceClasses[0].extendedResource",
        "gpu.nvidia.com already",
    ),
    (
        {
            "extraDeviceClasses": [
                CLASS | {"extendedResource": "example.com/big"},
                CLASS | {"name": "bigger", "extendedResource": "example.com/big"},
            ]
        },
        "extraDeviceClasses[1].extendedResource",
        "the device class big already",
    ),
    (
        {"extraDeviceClasses": [CLASS | {"selector": 'device.attributes["x"].y == 1'}]},
        "extraDeviceClasses[0].selector",
        "Begin it with device.driver",
    ),
    ({"extraDeviceClasses": [CLASS | {"extendedResource": "gpu"}]}, "extraDeviceClasses[0].extendedResource", "domain"),
    ({"extraDeviceClasses": [{"name": "x"}]}, "extraDeviceClasses[0].selector", "missing"),
    ({"context": ""}, "context", "kubectl config get-contexts"),
    ({"clusterIdentifier": ""}, "clusterIdentifier", "missing"),
]


@pytest.mark.parametrize(
    ("entries", "key", "says"), FAULTS, ids=[f"{key}-{number}" for number, (_, key, _) in enumerate(FAULTS)]
)
def test_a_fault_is_reported_under_its_key_with_what_to_write(entries: dict[str, Any], key: str, says: str) -> None:
    found = faults(**entries)
    assert list(found) == [key]
    assert says in found[key]


def test_all_faults_come_in_one_message_those_of_rules_beside_those_of_shape() -> None:
    with pytest.raises(SettingsError) as caught:
        parse(
            {
                "clusterIdentifer": "x",
                "nvidia": {
                    "driverRoot": 7,
                    "featureGates": {"MPSSupport": True},
                    "tolerations": [
                        {"key": "ok", "operator": "Exists"},
                        {"value": "x"},
                        {"key": "a", "effect": "Never"},
                    ],
                },
                "amd": {"devicePlugin": True, "driver": {"install": True}},
                "exemptNamespaces": ["Bad", "good", "also bad"],
                "policies": {"no-idle-gpu": "block"},
            },
            "prod",
        )
    assert sorted(fault.key for fault in caught.value.faults) == [
        "amd.devicePlugin",
        "amd.driver.registry",
        "clusterIdentifer",
        "clusterIdentifier",
        "context",
        "exemptNamespaces[0]",
        "exemptNamespaces[2]",
        "nvidia.driverRoot",
        "nvidia.featureGates.MPSSupport",
        "nvidia.tolerations[1]",
        "nvidia.tolerations[2].effect",
        "policies.no-idle-gpu",
    ]
    text = str(caught.value)
    assert text.startswith("Pulumi.prod.yaml has 12 faults")
    assert text.count("\n") == 12


def test_only_the_lab_may_go_without_a_context() -> None:
    assert parse(GOOD | {"context": ""}, "lab").context == ""
    assert list(faults("staging", context="")) == ["context"]


def test_a_chart_version_that_is_not_listed_is_accepted_with_an_explicit_override() -> None:
    settings = parse(GOOD | {"charts": {"nvidia": {"version": "25.12.1", "allowUnknownVersion": True}}}, "prod")
    assert settings.charts.nvidia.version == "25.12.1"
    assert settings.nvidia_driver.chart.version == "25.12.0"
    assert any("25.12.1" in warning for warning in warnings(settings))


def test_gates_that_exclude_dynamic_mig_are_accepted_where_no_model_uses_it() -> None:
    settings = parse(GOOD | {"nvidia": {"dynamicMigModels": [], "featureGates": {"MPSSupport": True}}}, "prod")
    assert settings.nvidia.feature_gates == {"MPSSupport": True}


def test_a_chart_directory_with_another_version_or_chart_is_refused(tmp_path: Path) -> None:
    for name in ("nvidia-dra-driver-gpu", "gpu-operator-charts", "node-feature-discovery"):
        (tmp_path / "charts" / name).mkdir(parents=True)
    for name, said, version in (
        ("nvidia-dra-driver-gpu", "nvidia-dra-driver-gpu", "25.8.1"),
        ("gpu-operator-charts", "something-else", "v1.5.1"),
        ("node-feature-discovery", "node-feature-discovery", "0.18.3"),
    ):
        (tmp_path / "charts" / name / "Chart.yaml").write_text(f"name: {said}\nversion: {version}\n")
    found = faults(project=tmp_path, charts={"source": "charts"})
    assert "'25.8.1'" in found["charts.nvidia.version"]
    assert "is not the chart gpu-operator-charts" in found["charts.source"]
    assert len(found) == 2


def test_the_charts_of_a_part_that_is_switched_off_need_not_be_there(tmp_path: Path) -> None:
    off = {part: {"enabled": False} for part in ("nvidia", "amd", "nodeFeatureDiscovery")}
    assert parse(GOOD | off | {"charts": {"source": "nowhere"}}, "prod", tmp_path).charts.source == "nowhere"


def test_a_policy_that_is_not_listed_denies() -> None:
    settings = parse(GOOD | {"policies": {"no-idle-gpu": "warn"}}, "prod")
    assert settings.policy_mode("no-idle-gpu") is PolicyMode.WARN
    assert settings.policy_mode("require-resources") is PolicyMode.DENY


def test_namespaces_of_the_system_and_of_the_stack_are_always_exempt() -> None:
    settings = parse(GOOD | {"exemptNamespaces": ["monitoring"], "amd": {"enabled": False}}, "prod")
    assert settings.policy_exemptions == (
        "kube-amd-gpu",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "monitoring",
        "node-feature-discovery",
        "nvidia-dra-driver-gpu",
    )


def test_the_known_fault_of_the_a100_is_warned_of_while_it_has_dynamic_mig() -> None:
    assert any("#883" in warning for warning in warnings(Settings()))
    without = parse(GOOD | {"nvidia": {"dynamicMigModels": ["b300", "h200", "h100"]}}, "prod")
    assert warnings(without) == []


def test_a_split_that_is_switched_off_is_warned_of() -> None:
    settings = parse(GOOD | {"nvidia": {"splitKubeletPlugin": "off"}}, "prod")
    assert any("NVIDIA A40 48GB will be missing" in warning for warning in warnings(settings))
