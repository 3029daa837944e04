"""Fleet files: what they give, and what a user reads when one is wrong."""

from pathlib import Path

import pytest
import yaml

from berkelium_infra import catalog
from berkelium_lab import fleet as fleets

GROUP = {"name": "h100", "model": "h100", "count": 2, "gpusPerNode": 8, "cpu": "192", "memory": "2Ti"}


def write(directory: Path, values: object, name: str = "fleet.yaml") -> Path:
    path = directory / name
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def fault(directory: Path, **changes: object) -> str:
    """The message for a fleet of one group in which `changes` were made."""
    path = write(directory, {"nvlinkDomainAttribute": True, "nodeGroups": [{**GROUP, **changes}]})
    with pytest.raises(fleets.FleetError) as caught:
        fleets.load(path)
    message = str(caught.value)
    assert str(path) in message
    return message


def test_the_berkelium_fleet_has_two_nodes_of_every_model_of_the_catalog_and_a_control_plane() -> None:
    fleet = fleets.load("berkelium")
    count = {group.model: group.count for group in fleet.node_groups}
    assert count == {None: 1, **{model.key: 2 for model in catalog.MODELS}}


def test_b300_h200_and_h100_nodes_have_eight_gpus_and_the_others_four() -> None:
    fleet = fleets.load("berkelium")
    gpus = {group.model: group.gpus_per_node for group in fleet.node_groups if group.model}
    assert gpus == {"b300": 8, "h200": 8, "h100": 8, "a100": 4, "a40": 4, "mi100": 4}


def test_the_upstream_fleet_is_the_same_hardware_without_the_nvlink_domain_attribute() -> None:
    berkelium, upstream = fleets.load("berkelium"), fleets.load("upstream")
    assert upstream.node_groups == berkelium.node_groups
    assert berkelium.nvlink_domain_attribute
    assert not upstream.nvlink_domain_attribute


def test_nodes_are_numbered_within_their_group() -> None:
    names = {node["metadata"]["name"] for node in fleets.nodes(fleets.load("berkelium"))}
    assert {"control-plane-1", "h200-1", "h200-2", "mi100-2"} <= names
    assert len(names) == 13


def test_nodes_carry_no_trace_of_their_gpus() -> None:
    for node in fleets.nodes(fleets.load("berkelium")):
        assert set(node["status"]["allocatable"]) == {"cpu", "memory", "pods", "ephemeral-storage"}
        assert not [key for key in node["metadata"]["labels"] if "gpu" in key or "nvidia" in key or "amd.com" in key]


def test_only_the_control_plane_node_is_tainted_and_labelled_as_such() -> None:
    key = "node-role.kubernetes.io/control-plane"
    nodes = {node["metadata"]["name"]: node for node in fleets.nodes(fleets.load("berkelium"))}
    assert nodes["control-plane-1"]["spec"]["taints"] == [{"key": key, "effect": "NoSchedule"}]
    assert [name for name, node in nodes.items() if key in node["metadata"]["labels"]] == ["control-plane-1"]
    assert [name for name, node in nodes.items() if node["spec"].get("taints")] == ["control-plane-1"]


def test_a_fleet_can_extend_another_file_beside_it(tmp_path: Path) -> None:
    write(tmp_path, {"nvlinkDomainAttribute": True, "nodeGroups": [GROUP]}, "base.yaml")
    path = write(tmp_path, {"extends": "base.yaml", "nvlinkDomainAttribute": False})
    fleet = fleets.load(path)
    assert fleet.node_groups[0].node_names == ("h100-1", "h100-2")
    assert not fleet.nvlink_domain_attribute


def test_a_fleet_that_extends_itself_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"extends": "fleet.yaml"})
    with pytest.raises(fleets.FleetError, match="extends itself"):
        fleets.load(path)


def test_an_unknown_fleet_names_those_that_exist() -> None:
    with pytest.raises(fleets.FleetError, match=r"nowhere: no such fleet.*berkelium, upstream"):
        fleets.load("nowhere")


def test_an_unknown_key_is_refused_with_its_place(tmp_path: Path) -> None:
    assert "nodeGroups[0].gpuCount: unknown key" in fault(tmp_path, gpuCount=8)


def test_an_unknown_model_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    message = fault(tmp_path, model="h300")
    assert "nodeGroups[0]: model: 'h300'" in message
    assert "b300, h200, h100, a100, a40, mi100" in message


def test_a_wrong_type_is_refused_with_the_value(tmp_path: Path) -> None:
    assert "nodeGroups[0].count:" in (message := fault(tmp_path, count="two"))
    assert "'two'" in message


def test_a_missing_number_of_gpus_is_refused(tmp_path: Path) -> None:
    assert "gpusPerNode is missing" in fault(tmp_path, gpusPerNode=0)


def test_gpus_without_a_model_are_refused(tmp_path: Path) -> None:
    assert "need a model" in fault(tmp_path, model=None)


def test_every_gpu_needs_a_pcie_root_when_any_has_one(tmp_path: Path) -> None:
    assert "pcieRoots has 1 entries for 8 GPUs" in fault(tmp_path, pcieRoots=["pci0000:44"])


def test_a_malformed_pcie_root_is_refused(tmp_path: Path) -> None:
    assert "nodeGroups[0].pcieRoots[0]" in fault(tmp_path, pcieRoots=["pci0000"] * 8)


def test_mig_mode_of_a_model_without_mig_is_refused(tmp_path: Path) -> None:
    assert "migMode is true, but NVIDIA A40" in fault(tmp_path, model="a40", migMode=True)


def test_two_groups_that_make_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"nvlinkDomainAttribute": True, "nodeGroups": [GROUP, GROUP]})
    with pytest.raises(fleets.FleetError, match="two nodes would be named h100-1"):
        fleets.load(path)


def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("nodeGroups: [", encoding="utf-8")
    with pytest.raises(fleets.FleetError, match=r"fleet\.yaml: cannot be read as YAML"):
        fleets.load(path)
