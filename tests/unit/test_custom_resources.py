"""Custom resources against the schemas of their CRDs: the provider drops a key that it does not know without a word."""

from typing import Any

import pytest

from tests.unit import program
from tests.unit.custom_resources import faults
from tests.unit.program import DEVICE_CONFIG, RULE

AMD_SETTINGS = [
    {},
    {"driver": {"install": True, "registry": "registry.example.com/amd", "registrySecret": "registry"}},
    {"devicePlugin": True, "draDriver": False, "devicePluginImage": "docker.io/rocm/k8s-device-plugin:1.0"},
    {"nodeSelector": {"pool": "amd"}, "tolerations": [{"operator": "Exists"}]},
]


@pytest.mark.parametrize("amd", AMD_SETTINGS)
def test_the_device_config_is_valid_by_its_crd(amd: dict[str, Any]) -> None:
    registered = program.run("prod", {"amd": amd})
    assert faults(registered[DEVICE_CONFIG, "berkelium-amd"].inputs) == []


def test_the_node_feature_rule_is_valid_by_its_crd() -> None:
    assert faults(program.run("prod")[RULE, "berkelium-gpus"].inputs) == []


def test_a_misspelt_key_would_be_found() -> None:
    resource = program.run("prod")[DEVICE_CONFIG, "berkelium-amd"].inputs
    driver = resource["spec"]["draDriver"]
    driver["enabled"] = driver.pop("enable")
    (fault,) = faults(resource)
    assert "enabled" in fault


def test_the_device_config_names_no_image_that_may_change_and_switches_every_default_off() -> None:
    spec = program.run("prod")[DEVICE_CONFIG, "berkelium-amd"].inputs["spec"]
    assert spec["driver"] == {"enable": False}
    assert spec["devicePlugin"] == {"enableDevicePlugin": False, "enableNodeLabeller": False}
    assert spec["draDriver"]["enable"] is True
    assert spec["draDriver"]["image"] == "docker.io/rocm/k8s-gpu-dra-driver:v1.0.1"
    assert spec["selector"] == {"feature.node.kubernetes.io/amd-gpu": "true"}
    assert spec["metricsExporter"] == spec["testRunner"] == spec["configManager"] == {"enable": False}
    assert "latest" not in str(spec)


def test_a_driver_installation_names_its_registry_and_brings_the_kernel_module_manager() -> None:
    registered = program.run("prod", {"amd": AMD_SETTINGS[1]})
    driver = registered[DEVICE_CONFIG, "berkelium-amd"].inputs["spec"]["driver"]
    assert driver["enable"] is True
    # The operator appends the tag itself.
    assert driver["image"] == "registry.example.com/amd/amdgpu-driver"
    assert driver["version"] == "30.20.1"
    assert driver["imageRegistrySecret"] == {"name": "registry"}
    kmm = registered[program.RELEASE, "amd-gpu-operator"].inputs["values"]["kmm"]
    assert (kmm["enabled"], kmm["watch"]) == (True, True)


def test_the_device_config_is_deleted_in_the_background() -> None:
    metadata = program.run("prod")[DEVICE_CONFIG, "berkelium-amd"].inputs["metadata"]
    assert metadata["annotations"] == {"pulumi.com/deletionPropagationPolicy": "background"}
