"""The tables of releases: their order, what is nearest to an unlisted one, and what the laboratory knows of each."""

import pytest

from berkelium_infra import versions
from berkelium_infra.components.crds import definitions
from berkelium_infra.versions import AMD_OPERATORS, MOVES, NVIDIA_DRIVERS, order
from berkelium_lab.hardware import amd
from berkelium_lab.hardware.nvidia_dialects import dialect
from tests.unit.custom_resources import CHARTS

TABLES = (NVIDIA_DRIVERS, AMD_OPERATORS, versions.NODE_FEATURE_DISCOVERIES)


@pytest.mark.parametrize(
    ("older", "newer"),
    [("25.8.1", "25.12.0"), ("25.12.0", "0.4.0"), ("0.4.1", "0.5.0"), ("0.9.0", "0.10.0"), ("v1.4.1", "v1.5.0")],
)
def test_the_nvidia_driver_counts_on_after_its_years(older: str, newer: str) -> None:
    assert order(older) < order(newer)


@pytest.mark.parametrize("table", TABLES, ids=["nvidia", "amd", "discovery"])
def test_each_table_goes_from_the_oldest_release_to_the_newest(table: tuple[versions.Entry, ...]) -> None:
    found = [entry.chart.version for entry in table]
    assert found == sorted(found, key=order)


@pytest.mark.parametrize(
    ("asked", "treated_as"), [("25.8.1", "25.12.0"), ("25.12.3", "25.12.0"), ("0.4.0", "0.4.1"), ("0.5.0", "0.4.1")]
)
def test_an_unlisted_driver_is_treated_as_the_nearest_of_its_own_numbering(asked: str, treated_as: str) -> None:
    assert versions.nvidia_driver(asked).chart.version == treated_as


def test_an_unlisted_operator_is_treated_as_the_nearest_older_one() -> None:
    assert versions.amd_operator("v1.6.0").chart.version == "v1.5.1"
    assert versions.amd_operator("v1.5.0").dra_image.endswith(":v1.0.0")


def test_the_releases_of_a_part_keep_their_release_and_namespace_so_that_an_upgrade_happens_in_place() -> None:
    for table in TABLES:
        assert len({(entry.chart.release, entry.chart.namespace, entry.chart.values) for entry in table}) == 1


def test_a_renamed_chart_keeps_the_names_of_the_objects_of_the_one_before_it() -> None:
    first, *later = NVIDIA_DRIVERS
    for driver in later:
        assert driver.chart.name != first.chart.name
        assert driver.name_override == first.chart.name


def test_every_feature_gate_that_a_rule_speaks_of_is_known_to_its_driver_and_to_the_simulated_one() -> None:
    for driver in NVIDIA_DRIVERS:
        simulated = dialect(f"v{driver.chart.version}")
        assert simulated.version == driver.chart.version
        named = {gate for pair in (*driver.exclusions, *driver.requirements) for gate in pair}
        assert named <= set(driver.feature_gates)
        assert set(driver.feature_gates) <= simulated.gates.keys()
        assert set(driver.gates_on_by_default) == {gate for gate, on in simulated.gates.items() if on}
        assert set(map(frozenset, driver.exclusions)) == set(map(frozenset, simulated.exclusive_gates))
        assert set(driver.requirements) == set(simulated.required_gates)
        assert driver.splits_kubelet_plugin is not simulated.whole_gpu_without_mig


def test_the_laboratory_knows_the_driver_image_of_every_operator() -> None:
    for operator in AMD_OPERATORS:
        tag = operator.dra_image.rpartition(":")[2]
        assert amd.dialect(tag).version == tag.removeprefix("v")


def test_the_crds_that_go_before_a_release_are_those_that_its_chart_brings() -> None:
    for driver in NVIDIA_DRIVERS:
        if driver.crds:
            brought = sorted(path.read_text() for path in (CHARTS / driver.chart.name / "crds").glob("*.yaml"))
            assert len(brought) == 2
            assert len(definitions(driver.crds)) == 2
            assert (CHARTS / driver.chart.name / "crds").resolve().name == driver.crds


def test_a_directory_without_crds_is_an_error_and_not_an_upgrade_without_them() -> None:
    with pytest.raises(FileNotFoundError, match="no-such holds no CRD"):
        definitions("no-such")


def test_with_the_newer_crd_the_number_of_nodes_may_be_left_out() -> None:
    (domains,) = [
        each for each in definitions("dra-driver-nvidia-gpu-0.4.1") if "computedomains" in str(each["metadata"])
    ]
    (version,) = domains["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["required"] == ["channel"]
    assert spec["properties"]["numNodes"] == {"type": "integer", "minimum": 0, "default": 0}


def test_the_default_driver_is_not_one_from_which_nothing_leads_back() -> None:
    barriers = [move.to for move in MOVES if move.part == "nvidia" and move.no_way_back]
    assert barriers == ["0.4.0"]
    assert order(versions.NVIDIA_DRIVER) < order(barriers[0])
