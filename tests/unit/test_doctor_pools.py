"""The doctor on resource pools, by the rules of the scheduler's allocator."""

from tests.unit.doctor_world import World, healthy

SUBJECT = "pool/gpu.nvidia.com/h100-1"


def devices(world: World) -> dict:
    """The spec of the slice with the devices of the H100 node."""
    return world.one("ResourceSlice", "h100-devices")["spec"]


def test_a_pool_with_too_few_slices_is_incomplete() -> None:
    world = healthy()
    world.remove("ResourceSlice", "h100-sharedCounters")
    problems = world.problems()
    assert ("error", "pool-incomplete", SUBJECT) in problems
    assert world.only("pool-incomplete").evidence == ("generation 1: 1 slices, wanted 2",)


def test_a_pool_whose_slices_disagree_on_their_number_is_incomplete() -> None:
    world = healthy()
    devices(world)["pool"]["resourceSliceCount"] = 3
    assert world.problems() == {("error", "pool-incomplete", SUBJECT)}
    assert world.only("pool-incomplete").evidence == ("generation 1: 2 slices, wanted 2, 3",)


def test_only_the_newest_generation_counts() -> None:
    world = healthy()
    devices(world)["pool"]["generation"] = 2
    assert ("error", "pool-incomplete", SUBJECT) in world.problems()
    world.one("ResourceSlice", "h100-sharedCounters")["spec"]["pool"]["generation"] = 2
    assert world.problems() == set()


def test_two_devices_of_one_name_make_a_pool_invalid() -> None:
    world = healthy()
    devices(world)["devices"].append(dict(devices(world)["devices"][0]))
    assert world.problems() == {("error", "pool-invalid", SUBJECT)}
    assert world.only("pool-invalid").evidence == ("device gpu-0 is published 2 times",)


def test_a_counter_set_that_nobody_declares_makes_a_pool_invalid() -> None:
    world = healthy()
    devices(world)["devices"][1]["consumesCounters"] = [{"counterSet": "gpu-7-counters", "counters": {"memory": {}}}]
    assert world.problems() == {("error", "pool-invalid", SUBJECT)}
    assert "counter set gpu-7-counters, which the pool does not declare" in world.only("pool-invalid").evidence[0]


def test_a_counter_that_its_set_lacks_makes_a_pool_invalid() -> None:
    world = healthy()
    consumed = [{"counterSet": "gpu-0-counters", "counters": {"memory": {}, "ofa-engines": {}}}]
    devices(world)["devices"][1]["consumesCounters"] = consumed
    assert world.problems() == {("error", "pool-invalid", SUBJECT)}
    assert "uses ofa-engines, which counter set gpu-0-counters does not have" in world.only("pool-invalid").evidence[0]


def test_mig_devices_whose_counters_were_dropped_are_an_error() -> None:
    world = healthy()
    partition = devices(world)["devices"][1]
    del partition["consumesCounters"]
    assert world.problems() == {("error", "pool-uncounted", SUBJECT)}
    assert world.only("pool-uncounted").evidence == ("gpu-0-mig-0",)


def test_mig_devices_that_exist_already_need_no_counters() -> None:
    world = healthy()
    partition = devices(world)["devices"][1]
    del partition["consumesCounters"]
    partition["attributes"]["uuid"] = {"string": "MIG-1"}
    assert world.problems() == set()
