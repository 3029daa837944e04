"""What the NVIDIA driver publishes, against what real nodes and the driver's source show."""

import pytest

from berkelium_infra import catalog
from berkelium_lab import fleet as fleets
from berkelium_lab.hardware import nvidia
from berkelium_lab.hardware.devices import Device, NothingPublished, Slice, mebibytes
from berkelium_lab.hardware.inventory import Gpu, NodeHardware, inventory
from berkelium_lab.hardware.nvidia_dialects import dialect, feature_gates

HARDWARE = inventory(fleets.load("berkelium"))
MIG_NODES = ("b300-1", "h200-1", "h100-1", "a100-1")
NEW, OLD = (1, 37), (1, 34)

# Limits of resource.k8s.io/v1 (pkg/apis/resource/types.go): devices with counters, counter sets and counters per slice,
# attributes and capacities per device.
MAX_DEVICES, MAX_COUNTER_SETS, MAX_COUNTERS, MAX_ATTRIBUTES = 64, 8, 32, 32


def published(
    node: str,
    gates: str = "DynamicMIG=true,",
    tag: str = "v25.12.0",
    server: tuple[int, int] = NEW,
    nvlink: bool = True,
    hardware: NodeHardware | None = None,
) -> list[Slice]:
    spoken = dialect(tag)
    return nvidia.gpu_slices(hardware or HARDWARE[node], spoken, feature_gates(gates, spoken), server, nvlink)


def devices(slices: list[Slice]) -> dict[str, Device]:
    return {device["name"]: device for part in slices for device in part.get("devices", [])}


def plain(values: dict[str, dict[str, str]]) -> dict[str, str]:
    return {key: value["value"] for key, value in values.items()}


@pytest.mark.parametrize("node", MIG_NODES)
def test_a_mig_capable_gpu_has_25_mig_devices_beside_itself(node: str) -> None:
    for part in published(node)[1:]:
        assert len(part["devices"]) == 26


@pytest.mark.parametrize(("node", "gpus"), [("b300-1", 8), ("h200-1", 8), ("h100-1", 8), ("a100-1", 4)])
def test_from_kubernetes_135_on_the_counters_come_first_and_then_a_slice_per_gpu(node: str, gpus: int) -> None:
    slices = published(node)
    assert [sorted(part) for part in slices] == [["sharedCounters"], *[["devices"]] * gpus]
    assert [s["name"] for s in slices[0]["sharedCounters"]] == [f"gpu-{i}-counter-set" for i in range(gpus)]


def test_before_kubernetes_135_each_gpus_slice_holds_its_counters_too() -> None:
    slices = published("h100-1", server=OLD)
    assert len(slices) == 8
    for index, part in enumerate(slices):
        assert [s["name"] for s in part["sharedCounters"]] == [f"gpu-{index}-counter-set"]
        assert len(part["devices"]) == 26


@pytest.mark.parametrize("node", [*MIG_NODES, "a40-1"])
@pytest.mark.parametrize("gates", ["DynamicMIG=true", "DynamicMIG=false"])
@pytest.mark.parametrize("tag", ["v25.12.0", "v0.4.1"])
def test_every_slice_is_within_the_limits_of_the_api(node: str, gates: str, tag: str) -> None:
    try:
        slices = published(node, gates, tag)
    except NothingPublished:
        return
    for part in slices:
        assert len(part.get("devices", [])) <= MAX_DEVICES
        assert len(part.get("sharedCounters", [])) <= MAX_COUNTER_SETS
        assert all(len(counter_set["counters"]) <= MAX_COUNTERS for counter_set in part.get("sharedCounters", []))
        for device in part.get("devices", []):
            assert len(device["attributes"]) + len(device["capacity"]) <= MAX_ATTRIBUTES
            assert len(device["name"]) <= 63


def test_mig_devices_are_named_after_gpu_profile_instance_profile_and_first_memory_slice() -> None:
    assert "gpu-4-mig-1g18gb-19-0" in devices(published("h200-1"))
    h100 = devices(published("h100-1"))
    assert {"gpu-0-mig-1g10gb-me-20-3", "gpu-0-mig-3g40gb-9-4", "gpu-0-mig-7g80gb-0-0"} <= h100.keys()


def test_with_dynamic_mig_the_devices_of_a_slice_are_sorted_by_name() -> None:
    for part in published("h100-1")[1:]:
        names = [device["name"] for device in part["devices"]]
        assert names == sorted(names)


def test_the_counter_set_of_an_h100_is_the_captured_one() -> None:
    counter_set = published("h100-1")[0]["sharedCounters"][0]
    assert plain(counter_set["counters"]) == {
        "memory": "81152Mi",
        "multiprocessors": "132",
        "copy-engines": "8",
        "decoders": "7",
        "encoders": "0",
        "jpeg-engines": "7",
        "ofa-engines": "1",
        **{f"memory-slice-{number}": "1" for number in range(8)},
    }


def test_a_whole_gpu_consumes_every_counter_of_its_set() -> None:
    slices = published("h100-1")
    whole = devices(slices)["gpu-3"]
    assert whole["consumesCounters"] == [
        {"counterSet": "gpu-3-counter-set", "counters": slices[0]["sharedCounters"][3]["counters"]}
    ]


def test_a_mig_device_consumes_its_capacity_and_the_memory_slices_that_it_covers() -> None:
    device = devices(published("h100-1"))["gpu-2-mig-2g20gb-14-4"]
    assert plain(device["capacity"]) == {
        "memory": "20096Mi",
        "multiprocessors": "32",
        "copyEngines": "2",
        "decoders": "2",
        "encoders": "0",
        "jpegEngines": "2",
        "ofaEngines": "0",
    }
    (consumed,) = device["consumesCounters"]
    assert consumed["counterSet"] == "gpu-2-counter-set"
    assert plain(consumed["counters"]) == {
        "memory": "20096Mi",
        "multiprocessors": "32",
        "copy-engines": "2",
        "decoders": "2",
        "encoders": "0",
        "jpeg-engines": "2",
        "ofa-engines": "0",
        "memory-slice-4": "1",
        "memory-slice-5": "1",
    }


@pytest.mark.parametrize(
    ("node", "memory"), [("b300-1", "268Gi"), ("h200-1", "143104Mi"), ("h100-1", "81152Mi"), ("a100-1", "80640Mi")]
)
def test_with_dynamic_mig_a_whole_gpu_has_the_memory_of_its_largest_profile(node: str, memory: str) -> None:
    assert devices(published(node))["gpu-0"]["capacity"]["memory"] == {"value": memory}


@pytest.mark.parametrize(
    ("node", "memory"),
    [("b300-1", "275040Mi"), ("h200-1", "143771Mi"), ("h100-1", "81559Mi"), ("a100-1", "80Gi"), ("a40-1", "46068Mi")],
)
def test_without_dynamic_mig_a_gpu_has_all_its_memory_and_no_other_capacity(node: str, memory: str) -> None:
    for device in devices(published(node, "")).values():
        assert device["capacity"] == {"memory": {"value": memory}}
        assert "consumesCounters" not in device


def test_without_dynamic_mig_one_slice_holds_whole_gpus_with_the_attributes_of_a_captured_h100() -> None:
    (only,) = published("h100-1", "", nvlink=False)
    device = next(device for device in only["devices"] if device["name"] == "gpu-1")
    uuid = device["attributes"].pop("uuid")["string"]
    assert uuid.startswith("GPU-")
    assert len(uuid) == 40
    assert device["attributes"] == {
        "addressingMode": {"string": "HMM"},
        "architecture": {"string": "Hopper"},
        "brand": {"string": "Nvidia"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "driverVersion": {"version": "580.126.20"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:56:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:55"},
        "type": {"string": "gpu"},
    }


def test_without_dynamic_mig_the_order_of_the_gpus_begins_anywhere() -> None:
    orders = [[d["name"] for d in published(node, "")[0]["devices"]] for node in HARDWARE if node.startswith("h")]
    assert all(sorted(order) == [f"gpu-{i}" for i in range(8)] for order in orders)
    assert any(order[0] != "gpu-0" for order in orders)


COMMON = {
    "type", "productName", "brand", "architecture", "cudaComputeCapability", "driverVersion", "cudaDriverVersion",
    "resource.kubernetes.io/pciBusID",
}  # fmt: skip
ROOT = "resource.kubernetes.io/pcieRoot"


@pytest.mark.parametrize(
    ("tag", "whole", "mig"),
    [
        ("v25.12.0", {"uuid", ROOT}, {"parentUUID", "profile"}),
        ("v0.4.1", {"uuid", ROOT, "addressingMode"}, {"parentUUID", "profile", ROOT, "addressingMode"}),
    ],
)
def test_which_attributes_dynamic_mig_leaves_depends_on_the_version(tag: str, whole: set[str], mig: set[str]) -> None:
    found = devices(published("h100-1", tag=tag))
    assert set(found["gpu-0"]["attributes"]) == COMMON | whole
    device = found["gpu-0-mig-1g10gb-me-20-3"]
    assert set(device["attributes"]) == COMMON | mig
    assert device["attributes"]["type"] == {"string": "mig"}
    assert device["attributes"]["profile"] == {"string": "1g.10gb+me"}
    assert device["attributes"]["parentUUID"] == found["gpu-0"]["attributes"]["uuid"]


def test_the_berkelium_attribute_names_the_nvlink_domain_of_h200_gpus_only() -> None:
    for node, hardware in HARDWARE.items():
        if hardware.model is None or hardware.model.vendor is not catalog.NVIDIA or hardware.model.key == "a40":
            continue
        found = devices(published(node))
        domains = [found[f"gpu-{gpu.index}"]["attributes"].get("pcieRoot") for gpu in hardware.gpus]
        if hardware.model.key == "h200":
            assert domains == [{"string": "pci0000"}] * 4 + [{"string": "pci0001"}] * 4
        else:
            assert domains == [None] * len(hardware.gpus)


def test_upstream_publishes_no_attribute_that_names_the_nvlink_domain() -> None:
    for device in devices(published("h200-1", nvlink=False)).values():
        assert "pcieRoot" not in device["attributes"]


def test_each_h200_gpu_has_the_pcie_root_that_the_catalog_gives_its_place_in_the_domain() -> None:
    found = devices(published("h200-1"))
    roots = [found[f"gpu-{index}"]["attributes"][ROOT]["string"] for index in range(8)]
    domains = catalog.model("h200").nvlink_domains
    assert roots == [root for domain in domains for root in domain.pcie_roots]
    assert len(set(roots)) == 8


def test_identities_differ_between_gpus_and_are_the_same_on_every_run() -> None:
    gpus = [gpu for hardware in HARDWARE.values() for gpu in hardware.gpus]
    assert len({gpu.uuid for gpu in gpus}) == len(gpus)
    assert inventory(fleets.load("berkelium")) == HARDWARE


def test_at_25_12_0_a_node_whose_gpus_cannot_do_mig_publishes_nothing_with_dynamic_mig() -> None:
    with pytest.raises(NothingPublished, match="empty counter set"):
        published("a40-1")


def test_from_0_4_0_on_a_gpu_that_cannot_do_mig_is_published_whole_and_without_counters() -> None:
    slices = published("a40-1", tag="v0.4.0")
    assert [len(part["devices"]) for part in slices] == [1, 1, 1, 1]
    for device in devices(slices).values():
        assert device["capacity"] == {"memory": {"value": "46068Mi"}}
        assert "consumesCounters" not in device


def test_from_0_4_0_on_an_a100_that_booted_without_mig_is_published_whole() -> None:
    found = devices(published("a100-1", tag="v0.4.1"))
    assert sorted(found) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert found["gpu-0"]["capacity"] == {"memory": {"value": "80Gi"}}


def in_mig_mode(node: str) -> NodeHardware:
    hardware = HARDWARE[node]
    return NodeHardware(hardware.node, hardware.model, hardware.gpus, mig_mode=True)


def test_from_0_4_0_on_an_a100_that_booted_in_mig_mode_has_mig_devices_only() -> None:
    slices = published("a100-1", tag="v0.4.1", hardware=in_mig_mode("a100-1"))
    assert len(slices[0]["sharedCounters"]) == 4
    assert [len(part["devices"]) for part in slices[1:]] == [25, 25, 25, 25]
    assert {device["attributes"]["type"]["string"] for device in devices(slices).values()} == {"mig"}


def test_without_dynamic_mig_gpus_in_mig_mode_vanish() -> None:
    with pytest.raises(NothingPublished, match="MIG mode"):
        published("h100-1", "", hardware=in_mig_mode("h100-1"))


@pytest.mark.parametrize("node", ["control-plane-1", "mi100-1"])
def test_a_node_without_nvidia_gpus_publishes_nothing(node: str) -> None:
    with pytest.raises(NothingPublished, match="no NVIDIA GPU"):
        published(node)


def test_a_new_model_of_the_catalog_needs_nothing_but_an_entry_in_a_fleet() -> None:
    model = catalog.GpuModel(
        key="l4", title="NVIDIA L4", vendor=catalog.NVIDIA, product_name="NVIDIA L4", architecture="Ada Lovelace",
        memory_gb=24, memory_kind="GDDR6", memory_mib=23034, pci_devices=("27b8",), pci_class="0302",
        compute_capability="8.9.0",
    )  # fmt: skip
    gpu = Gpu(0, model, "GPU-x", "0000:01:00.0", "pci0000:00", None)
    found = devices(published("", "", hardware=NodeHardware("l4-1", model, (gpu,))))
    assert found["gpu-0"]["attributes"]["productName"] == {"string": "NVIDIA L4"}
    assert found["gpu-0"]["capacity"] == {"memory": {"value": "23034Mi"}}


def test_the_compute_domain_driver_publishes_one_daemon_and_one_channel() -> None:
    (only,) = nvidia.compute_domain_slices()
    assert only["devices"] == [
        {"name": "daemon-0", "attributes": {"id": {"int": 0}, "type": {"string": "daemon"}}},
        {"name": "channel-0", "attributes": {"id": {"int": 0}, "type": {"string": "channel"}}},
    ]


@pytest.mark.parametrize(
    ("mib", "quantity"), [(81920, "80Gi"), (81559, "81559Mi"), (274432, "268Gi"), (1048576, "1Ti")]
)
def test_memory_is_written_in_the_canonical_form_of_the_api(mib: int, quantity: str) -> None:
    assert mebibytes(mib) == quantity
