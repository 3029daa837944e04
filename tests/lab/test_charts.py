"""The releases of the three charts on a real API server: what Helm rendered and the post-renderer made of it."""

import copy

import pytest

from berkelium_infra.catalog import CHART_DEVICE_CLASSES, MODELS
from berkelium_lab.api import Api, ApiError
from berkelium_lab.errors import LabError
from berkelium_lab.wait import NotYet, until
from berkelium_lab.workspace import deploy
from tests.lab.conftest import LabFactory

COMPONENT = "nvidia-dra-driver-gpu-component"
DRIVER_NAMESPACE, OPERATOR_NAMESPACE, NFD_NAMESPACE = "nvidia-dra-driver-gpu", "kube-amd-gpu", "node-feature-discovery"

DEVICE_CONFIG = {
    "apiVersion": "amd.com/v1alpha1",
    "kind": "DeviceConfig",
    "metadata": {"name": "tried", "namespace": OPERATOR_NAMESPACE},
    "spec": {"driver": {"enable": False}, "devicePlugin": {}, "draDriver": {"enable": True}},
}


def plugins(api: Api) -> dict[str, dict]:
    """The kubelet plugin's DaemonSets by the value of the node label that they are split by."""
    found = api.list("apps/v1", "DaemonSet", DRIVER_NAMESPACE)
    return {each["spec"]["template"]["spec"]["nodeSelector"]["berkelium.io/dynamic-mig"]: each for each in found}


def gates(daemon_set: dict) -> str:
    (gpus,) = [each for each in daemon_set["spec"]["template"]["spec"]["containers"] if each["name"] == "gpus"]
    return next(variable["value"] for variable in gpus["env"] if variable["name"] == "FEATURE_GATES")


def test_the_kubelet_plugin_runs_as_two_daemonsets_of_one_release(deployed: Api) -> None:
    found = plugins(deployed)
    assert {value: each["metadata"]["name"] for value, each in found.items()} == {
        "true": "nvidia-dra-driver-gpu-kubelet-plugin",
        "false": "nvidia-dra-driver-gpu-kubelet-plugin-whole-gpu",
    }
    assert "DynamicMIG=true," in gates(found["true"])
    assert "DynamicMIG=false," in gates(found["false"])
    assert {each["metadata"]["annotations"]["meta.helm.sh/release-name"] for each in found.values()} == {
        "nvidia-dra-driver-gpu"
    }


def test_each_nvidia_node_runs_exactly_one_kubelet_plugin_the_one_of_its_kind(deployed: Api) -> None:
    def running() -> dict[str, list[str]]:
        result: dict[str, list[str]] = {}
        for pod in deployed.list("v1", "Pod", DRIVER_NAMESPACE, label_selector=COMPONENT):
            if pod["status"].get("phase") == "Running":
                model = pod["spec"]["nodeName"].rpartition("-")[0]
                result.setdefault(model, []).append(pod["metadata"]["labels"][COMPONENT])
        return result

    whole = "kubelet-plugin-whole-gpu"
    expected = {
        model.key: ["kubelet-plugin" if model.mig_capable else whole] * 2
        for model in MODELS
        if model.vendor.name == "NVIDIA"
    }

    def settled() -> bool:
        if (seen := running()) != expected:
            raise NotYet(str(seen))
        return True

    assert until(settled, "one kubelet plugin on each NVIDIA node", 60)


def test_the_owned_classes_are_not_helms_and_the_charts_third_one_is(deployed: Api) -> None:
    owners = {
        each["metadata"]["name"]: (each["metadata"].get("labels") or {}).get("app.kubernetes.io/managed-by")
        for each in deployed.list("resource.k8s.io/v1", "DeviceClass")
    }
    assert {name: owners[name] for name in CHART_DEVICE_CLASSES} == dict.fromkeys(CHART_DEVICE_CLASSES, "pulumi")
    assert owners["vfio.gpu.nvidia.com"] == "Helm"


def test_every_container_of_the_releases_states_cpu_and_memory(deployed: Api) -> None:
    incomplete = []
    for namespace in (DRIVER_NAMESPACE, OPERATOR_NAMESPACE, NFD_NAMESPACE):
        for kind in ("DaemonSet", "Deployment"):
            for owner in deployed.list("apps/v1", kind, namespace):
                # What the AMD operator makes of a DeviceConfig belongs to no release and cannot be given resources.
                if "meta.helm.sh/release-name" not in (owner["metadata"].get("annotations") or {}):
                    continue
                pod = owner["spec"]["template"]["spec"]
                for container in (*(pod.get("initContainers") or ()), *pod["containers"]):
                    stated = container.get("resources") or {}
                    if any({"cpu", "memory"} - stated.get(part, {}).keys() for part in ("requests", "limits")):
                        incomplete.append(f"{owner['metadata']['name']}/{container['name']}")
    assert incomplete == []


def test_nfd_labels_each_gpu_node_by_its_vendor(deployed: Api) -> None:
    for model in MODELS:
        label = f"feature.node.kubernetes.io/pci-{model.vendor.pci_id}.present"
        node = deployed.get("v1", "Node", f"{model.key}-1")
        assert node is not None
        assert node["metadata"]["labels"].get(label) == "true"


def tried(api: Api, block: str, key: str, value: object) -> dict:
    config = copy.deepcopy(DEVICE_CONFIG)
    config["spec"][block][key] = value
    return api.create(config, dry_run=True)["spec"]


def test_the_device_config_crd_switches_device_plugin_and_labeller_on_unless_told_otherwise(deployed: Api) -> None:
    defaults = tried(deployed, "devicePlugin", "hostNetwork", False)["devicePlugin"]
    assert (defaults["enableDevicePlugin"], defaults["enableNodeLabeller"]) == (True, True)


@pytest.mark.parametrize(
    ("block", "key", "value", "refusal"),
    [
        ("draDriver", "enabled", True, 'unknown field "spec.draDriver.enabled"'),
        ("draDriver", "image", "docker.io/rocm/driver:V1", "spec.draDriver.image in body should match"),
        ("draDriver", "imagePullPolicy", "Sometimes", 'Unsupported value: "Sometimes"'),
        ("driver", "enable", "false", "spec.driver.enable in body must be of type boolean"),
        ("driver", "driverType", "vm", 'supported values: "container", "vf-passthrough", "pf-passthrough"'),
    ],
)
def test_the_api_server_refuses_a_device_config_that_amds_crd_refuses(
    deployed: Api, block: str, key: str, value: object, refusal: str
) -> None:
    with pytest.raises(ApiError) as refused:
        tried(deployed, block, key, value)
    assert refusal in refused.value.message


def test_a_value_that_a_stand_in_does_not_implement_stops_the_deployment(labs: LabFactory) -> None:
    lab = labs.up("unimplemented")
    with pytest.raises(LabError, match="/kmm/enabled"):
        deploy(lab, {"amd": {"driver": {"install": True, "registry": "registry.example/amd"}}})
