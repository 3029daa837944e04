"""ResourceSlices follow the plugin pods: when they appear, change and vanish."""

import logging

import pytest

from berkelium_lab import fleet as fleets
from berkelium_lab.hardware.amd_controller import AmdController
from berkelium_lab.hardware.crashes import Crashes
from berkelium_lab.hardware.grace import Grace
from berkelium_lab.hardware.inventory import inventory
from berkelium_lab.hardware.nvidia_controller import NvidiaController
from berkelium_lab.hardware.pods import Container, Role
from tests.unit.hardware_world import World

HARDWARE = inventory(fleets.load("berkelium"))
MIG = "DynamicMIG=true,"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def driver(world: World, clock: Clock | None = None) -> NvidiaController:
    """The NVIDIA driver on every node of the world."""
    crashes = Crashes(world.api)
    controller = NvidiaController(world.cluster, world.publisher, crashes, HARDWARE, True, (1, 37))
    if clock is not None:
        controller._grace = Grace(1.0, clock)
    return controller


def test_a_running_plugin_publishes_a_complete_pool_named_after_its_node() -> None:
    world = World("h100-1")
    world.plugin("h100-1", gates=MIG)
    driver(world).reconcile()
    bodies = world.written("created")
    assert len(bodies) == 9
    for body in bodies:
        assert body["metadata"]["generateName"] == "h100-1-gpu.nvidia.com-"
        assert body["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Node", "name": "h100-1", "uid": "uid-h100-1", "controller": True}
        ]
        assert body["spec"]["driver"] == "gpu.nvidia.com"
        assert body["spec"]["nodeName"] == "h100-1"
        assert body["spec"]["pool"] == {"name": "h100-1", "generation": 1, "resourceSliceCount": 9}


def test_newer_versions_number_their_slices() -> None:
    world = World("h100-1")
    world.plugin("h100-1", gates=MIG, tag="v0.4.1")
    driver(world).reconcile()
    prefixes = sorted(body["metadata"]["generateName"] for body in world.written("created"))
    assert prefixes == [f"{index:05x}-gpu.nvidia.com-h100-1-" for index in range(9)]


def test_nothing_is_written_when_nothing_changed() -> None:
    world = World("h100-1", "a40-1")
    world.plugin("h100-1", gates=MIG)
    world.plugin("a40-1")
    controller = driver(world)
    controller.reconcile()
    before = list(world.log)
    controller.reconcile()
    driver(world).reconcile()
    assert world.log == before


def test_a_node_without_a_plugin_pod_publishes_nothing() -> None:
    world = World("h100-1", "h100-2")
    world.plugin("h100-1")
    driver(world).reconcile()
    assert world.held("h100-1")
    assert not world.held("h100-2")


def test_slices_outlive_the_pod_for_a_moment_and_then_vanish() -> None:
    world, clock = World("h100-1"), Clock()
    pod = world.plugin("h100-1", gates=MIG)
    controller = driver(world, clock)
    controller.reconcile()
    world.end(pod)
    assert controller.reconcile() == pytest.approx(1.0)
    assert len(world.held("h100-1")) == 9
    clock.now = 1.0
    assert controller.reconcile() is None
    assert world.held("h100-1") == []


def test_a_replaced_pod_of_the_same_version_and_gates_leaves_the_slices_alone() -> None:
    world, clock = World("h100-1"), Clock()
    pod = world.plugin("h100-1", gates=MIG)
    controller = driver(world, clock)
    controller.reconcile()
    before = world.held("h100-1")
    world.end(pod)
    controller.reconcile()
    world.plugin("h100-1", gates=MIG)
    clock.now = 0.5
    controller.reconcile()
    clock.now = 5.0
    controller.reconcile()
    assert world.held("h100-1") == before


def test_changed_gates_make_a_new_generation_before_the_old_one_is_deleted() -> None:
    world = World("h100-1")
    pod = world.plugin("h100-1", gates=MIG)
    controller = driver(world)
    controller.reconcile()
    world.end(pod)
    world.plugin("h100-1", gates="DynamicMIG=false,")
    world.log.clear()
    controller.reconcile()
    assert [verb for verb, _ in world.log] == ["created", *["deleted"] * 9]
    assert world.written("created")[0]["spec"]["pool"]["generation"] == 2
    assert [published.count for published in world.held("h100-1")] == [1]


def test_a_slice_that_somebody_deleted_comes_back() -> None:
    world = World("h100-1")
    world.plugin("h100-1", gates=MIG)
    controller = driver(world)
    controller.reconcile()
    world.slices.drop(world.held("h100-1")[3].name)
    controller.reconcile()
    assert len(world.held("h100-1")) == 9


def test_gates_with_which_the_driver_ends_publish_nothing_and_show_on_the_pod() -> None:
    world = World("h100-1")
    pod = world.plugin("h100-1", gates="DynamicMIG=true,MPSSupport=true,")
    controller = driver(world)
    controller.reconcile()
    controller.reconcile()
    assert world.held("h100-1") == []
    ((kind, name, body),) = world.written("patched")
    assert (kind, name) == ("Pod", pod.name)
    (status,) = body["status"]["containerStatuses"]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert {c["type"]: c["status"] for c in body["status"]["conditions"]} == {
        "Ready": "False",
        "ContainersReady": "False",
    }
    (event,) = world.written("created")
    assert event["involvedObject"]["uid"] == pod.uid
    assert "DynamicMIG is currently mutually exclusive with MPSSupport" in event["message"]


def test_the_fault_of_25_12_0_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World("a40-1")
    world.plugin("a40-1", gates=MIG)
    controller = driver(world)
    with caplog.at_level(logging.WARNING):
        controller.reconcile()
        controller.reconcile()
    assert world.held("a40-1") == []
    assert caplog.text.count("publishes nothing: NVIDIA A40 cannot do MIG") == 1


def test_of_two_plugin_pods_on_a_node_the_older_is_obeyed_and_the_conflict_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World("h100-1")
    world.plugin("h100-1", "second", gates="", created="2")
    world.plugin("h100-1", "first", gates=MIG, created="1")
    controller = driver(world)
    controller.reconcile()
    controller.reconcile()
    assert len(world.held("h100-1")) == 9
    assert caplog.text.count("drivers/first-h100-1 is obeyed, drivers/second-h100-1 not") == 1


def test_a_pool_of_which_a_slice_is_refused_is_withdrawn_and_not_tried_again() -> None:
    world = World("h100-1")
    world.refuse = lambda body: "sharedCounters" in body["spec"]
    world.plugin("h100-1", gates=MIG)
    controller = driver(world)
    controller.reconcile()
    controller.reconcile()
    assert world.held("h100-1") == []
    assert len(world.written("refused")) == 1


def test_the_compute_domain_container_publishes_for_its_own_driver() -> None:
    world = World("h100-1")
    world.pod(Role.NVIDIA_PLUGIN, "h100-1", "plugin", Container("compute-domains", "x/y:v25.12.0", (), (), {}))
    driver(world).reconcile()
    (body,) = world.written("created")
    assert body["spec"]["driver"] == "compute-domain.nvidia.com"


def test_the_amd_plugin_publishes_while_its_pod_runs() -> None:
    world, clock = World("mi100-1"), Clock()
    container = Container("plugin", "docker.io/rocm/k8s-gpu-dra-driver:v1.0.1", ("gpu-kubeletplugin",), (), {})
    pod = world.pod(Role.AMD_PLUGIN, "mi100-1", "dra", container)
    controller = AmdController(world.cluster, world.publisher, world.api, HARDWARE, Grace(1.0, clock))
    controller.reconcile()
    (published,) = world.held("mi100-1")
    assert published.driver == "gpu.amd.com"
    assert published.prefix == "mi100-1-gpu.amd.com-"
    world.end(pod)
    controller.reconcile()
    clock.now = 1.0
    controller.reconcile()
    assert world.held("mi100-1") == []


def test_the_two_drivers_leave_each_others_slices_alone() -> None:
    world = World("mi100-1", "a40-1")
    container = Container("plugin", "docker.io/rocm/k8s-gpu-dra-driver:v1.0.1", ("gpu-kubeletplugin",), (), {})
    world.pod(Role.AMD_PLUGIN, "mi100-1", "dra", container)
    world.plugin("a40-1")
    AmdController(world.cluster, world.publisher, world.api, HARDWARE, Grace(0.0)).reconcile()
    nvidia = driver(world)
    nvidia._grace = Grace(0.0)
    nvidia.reconcile()
    assert [published.driver for published in world.held("mi100-1")] == ["gpu.amd.com"]
    assert [published.driver for published in world.held("a40-1")] == ["gpu.nvidia.com"]
