"""The doctor on the drivers: a release that is deployed is not yet one that works."""

import pytest

from berkelium_infra.settings import Settings
from berkelium_lab.doctor.expectation import Expectation
from tests.unit.doctor_world import World, healthy, obj, ready


def without_slices(world: World, model: str) -> None:
    """Withdraw what the node of the model publishes."""
    kept = [one for one in world.objects["ResourceSlice"] if one["spec"]["nodeName"] != f"{model}-1"]
    world.objects["ResourceSlice"] = kept


def problems_of(world: World, *ids: str) -> set[tuple[str, str, str]]:
    """The problems with these ids."""
    return {problem for problem in world.problems() if problem[1] in ids}


def test_a_gpu_node_that_publishes_nothing_is_an_error_though_its_plugin_is_ready() -> None:
    world = healthy()
    without_slices(world, "h200")
    assert world.problems() == {
        ("error", "node-without-slices", "gpu-model/h200"),
        ("warning", "class-matches-nothing", "deviceclass/nvidia-h200"),
    }
    assert world.only("node-without-slices").evidence == (
        "h200-1: its kubelet plugin nvidia-plugin-h200 is ready and publishes nothing",
    )


def test_dynamic_mig_on_hardware_without_mig_is_named_as_the_cause() -> None:
    world = healthy()
    without_slices(world, "a40")
    container = world.one("Pod", "nvidia-plugin-a40")["spec"]["containers"][0]
    container["env"] = [{"name": "FEATURE_GATES", "value": "DynamicMIG=true,"}]
    assert "runs with DynamicMIG, which NVIDIA A40 48GB cannot do" in world.only("node-without-slices").evidence[0]


@pytest.mark.parametrize(
    ("taint", "toleration", "cause"),
    [
        ({"key": "maintenance", "effect": "NoSchedule"}, None, "does not tolerate the taint maintenance"),
        ({"key": "maintenance", "effect": "NoSchedule"}, {"key": "maintenance", "operator": "Exists"}, "its affinity"),
        ({"key": "maintenance", "effect": "NoSchedule"}, {"operator": "Exists"}, "its affinity"),
        (
            {"key": "pool", "value": "a", "effect": "NoExecute"},
            {"key": "pool", "value": "b"},
            "not tolerate the taint pool",
        ),
        ({"key": "maintenance", "effect": "PreferNoSchedule"}, None, "its affinity"),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, None, "its affinity"),
    ],
)
def test_a_taint_that_keeps_the_plugin_away_is_named_as_the_cause(
    taint: dict, toleration: dict | None, cause: str
) -> None:
    world = healthy()
    without_slices(world, "h100")
    world.remove("Pod", "nvidia-plugin-h100")
    world.one("Node", "h100-1")["spec"]["taints"] = [taint]
    world.one("DaemonSet", "nvidia-plugin")["spec"]["template"]["spec"]["tolerations"] = (
        [toleration] if toleration else []
    )
    assert cause in world.only("node-without-slices").evidence[0]


def test_a_label_that_the_plugin_wants_is_named_as_the_cause() -> None:
    world = healthy()
    without_slices(world, "h100")
    world.remove("Pod", "nvidia-plugin-h100")
    world.one("DaemonSet", "nvidia-plugin")["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "gpu"}
    assert "nvidia-plugin: wants the label pool=gpu" in world.only("node-without-slices").evidence[0]


def test_a_node_that_is_not_ready_is_named_as_the_cause() -> None:
    world = healthy()
    without_slices(world, "h100")
    world.one("Node", "h100-1")["status"]["conditions"] = [{**ready("Unknown"), "message": "Kubelet stopped"}]
    assert world.only("node-without-slices").evidence == ("h100-1: the node is not ready: Kubelet stopped",)


def test_a_plugin_that_crashes_is_an_error_with_its_words_and_its_group() -> None:
    world = healthy()
    waiting = {"reason": "CrashLoopBackOff", "message": "unrecognized feature gate: Foo"}
    statuses = [{"name": "gpus", "state": {"waiting": waiting}}]
    world.one("Pod", "nvidia-plugin-b300")["status"] = {"conditions": [ready("False")], "containerStatuses": statuses}
    world.one("DaemonSet", "nvidia-plugin")["status"]["numberReady"] = 4
    assert world.problems() == {("error", "plugin-not-ready", "daemonset/nvidia-dra-driver-gpu/nvidia-plugin")}
    evidence = world.only("plugin-not-ready").evidence
    assert "b300: 0 of 1 ready" in evidence
    assert "h200: 1 of 1 ready" in evidence
    assert evidence[-1] == (
        "nvidia-plugin-b300 on b300-1: container gpus CrashLoopBackOff: unrecognized feature gate: Foo"
    )


def test_slices_that_outlive_their_plugin_are_an_error() -> None:
    world = healthy()
    world.remove("Pod", "amd-plugin-mi100")
    assert world.problems() == {("error", "slices-without-plugin", "driver/gpu.amd.com")}
    assert world.only("slices-without-plugin").evidence == ("mi100-1",)


def test_slices_of_a_node_that_is_gone_are_told_as_such() -> None:
    world = healthy()
    world.remove("Pod", "amd-plugin-mi100")
    world.remove("Node", "mi100-1")
    assert world.only("slices-without-plugin").evidence == ("mi100-1 (the node does not exist)",)


def test_a_plugin_pod_on_its_way_out_counts_as_gone() -> None:
    world = healthy()
    world.one("Pod", "amd-plugin-mi100")["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"
    assert world.problems() == {("error", "slices-without-plugin", "driver/gpu.amd.com")}


def test_a_vendor_without_a_plugin_is_an_error() -> None:
    world = healthy()
    world.remove("DaemonSet", "amd-plugin")
    assert world.problems() == {("error", "plugin-missing", "vendor/AMD")}


def test_a_vendor_that_is_switched_off_needs_nothing() -> None:
    world = healthy()
    world.remove("DaemonSet", "amd-plugin")
    world.remove("Pod", "amd-plugin-mi100")
    settings = Settings.model_validate({"projectNamespaces": ["my-project"], "amd": {"enabled": False}})
    assert world.problems(Expectation(settings)) == set()


def test_the_compute_domain_plugin_is_not_taken_for_the_gpu_plugin() -> None:
    world = healthy()
    for kind in ("DaemonSet", "Pod"):
        for one in world.objects[kind]:
            spec = one["spec"]["template"]["spec"] if kind == "DaemonSet" else one["spec"]
            if "nvidia" in one["metadata"]["name"]:
                spec["containers"][0]["command"] = ["compute-domain-kubelet-plugin"]
    assert problems_of(world, "plugin-missing") == {("error", "plugin-missing", "vendor/NVIDIA")}


def test_missing_label_rules_are_an_error() -> None:
    world = healthy()
    world.objects["NodeFeatureRule"].clear()
    assert world.problems() == {("error", "label-rules-missing", "nodefeaturerule/berkelium-gpus")}


def test_a_vendor_without_a_labelled_node_is_a_warning() -> None:
    world = healthy()
    del world.one("Node", "mi100-1")["metadata"]["labels"]["feature.node.kubernetes.io/amd-gpu"]
    assert world.problems() == {("warning", "no-gpu-nodes", "vendor/AMD")}


@pytest.mark.parametrize("label", [None, "gtx-4090", "mi100"])
def test_hardware_that_the_catalog_does_not_know_is_a_warning(label: str | None) -> None:
    world = healthy()
    labels = world.one("Node", "h100-1")["metadata"]["labels"]
    labels.pop("berkelium.io/gpu-model")
    if label:
        labels["berkelium.io/gpu-model"] = label
    assert world.problems() == {("warning", "node-model-unknown", "node/h100-1")}


def test_a_node_that_publishes_only_parts_of_gpus_is_a_warning() -> None:
    world = healthy()
    spec = world.one("ResourceSlice", "a100-devices")["spec"]
    spec["devices"] = spec["devices"][1:]
    assert world.problems() == {
        ("warning", "node-without-whole-gpus", "driver/gpu.nvidia.com"),
        ("warning", "class-matches-nothing", "deviceclass/nvidia-a100"),
    }
    assert world.only("node-without-whole-gpus").evidence == ("a100-1",)


def test_a_deviceconfig_that_the_amd_operator_refuses_is_an_error_with_its_words() -> None:
    world = healthy()
    conditions = [{"type": "Error", "status": "True", "reason": "NoMatchingNodes", "message": "no node matches"}]
    world.add(obj("amd.com/v1alpha1", "DeviceConfig", "berkelium", "kube-amd-gpu", status={"conditions": conditions}))
    assert world.problems() == {("error", "deviceconfig-error", "deviceconfig/kube-amd-gpu/berkelium")}
    assert world.only("deviceconfig-error").evidence == ("NoMatchingNodes: no node matches",)
