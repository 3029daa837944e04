"""The lab's copy of the project: complete, current, and never written back."""

from pathlib import Path

import pytest

from berkelium_lab.errors import LabError
from berkelium_lab.project_copy import PROJECT, copy_project, take_charts, write_stack
from tests.unit.program import read_yaml


def test_the_copy_holds_what_the_program_reads_and_nothing_of_the_laboratory(tmp_path: Path) -> None:
    copy_project(PROJECT, tmp_path)
    assert (tmp_path / "__main__.py").read_bytes() == (PROJECT / "__main__.py").read_bytes()
    assert (tmp_path / "berkelium_infra" / "cluster.py").is_file()
    assert (tmp_path / "berkelium_lab" / "charts" / "node-feature-discovery" / "Chart.yaml").is_file()
    assert not list(tmp_path.rglob("__pycache__"))
    assert [path.name for path in (tmp_path / "berkelium_lab").iterdir()] == ["charts"]


def test_the_post_renderer_stays_executable(tmp_path: Path) -> None:
    copy_project(PROJECT, tmp_path)
    assert (tmp_path / "berkelium_infra" / "postrender" / "nvidia_dra_driver.py").stat().st_mode & 0o111


def test_what_is_gone_from_the_project_goes_from_the_copy(tmp_path: Path) -> None:
    copy_project(PROJECT, tmp_path)
    stale = tmp_path / "policies" / "withdrawn" / "policy.yaml"
    stale.parent.mkdir(parents=True)
    stale.write_text("kind: X\n")
    copy_project(PROJECT, tmp_path)
    assert not stale.exists()


def test_overrides_are_merged_over_the_stack_file_for_this_run_only(tmp_path: Path) -> None:
    write_stack(copied(tmp_path), tmp_path, "lab", {"charts": {"timeoutSeconds": 90}, "projectNamespaces": ["b"]})
    config = read_yaml(tmp_path / "Pulumi.lab.yaml")["config"]
    assert config["berkelium-infra:charts"] == {"source": "berkelium_lab/charts", "timeoutSeconds": 90}
    assert config["berkelium-infra:projectNamespaces"] == ["b"]
    write_stack(PROJECT, tmp_path, "lab", {})
    assert read_yaml(tmp_path / "Pulumi.lab.yaml") == read_yaml(PROJECT / "Pulumi.lab.yaml")


def test_the_salt_of_the_copy_is_kept_and_the_project_has_none(tmp_path: Path) -> None:
    write_stack(copied(tmp_path), tmp_path, "lab", {})
    stack_file = tmp_path / "Pulumi.lab.yaml"
    stack_file.write_text(stack_file.read_text() + "encryptionsalt: v1:abc\n")
    write_stack(PROJECT, tmp_path, "lab", {"projectNamespaces": []})
    assert read_yaml(stack_file)["encryptionsalt"] == "v1:abc"
    assert "encryptionsalt" not in read_yaml(PROJECT / "Pulumi.lab.yaml")


def test_a_word_that_yaml_once_took_for_a_boolean_stays_a_word(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "Pulumi.yaml").write_text("name: p\n")
    (project / "Pulumi.lab.yaml").write_text("config:\n  p:policies: {no-idle-gpu: off}\n")
    write_stack(project, tmp_path, "lab", {"context": "x"})
    assert read_yaml(tmp_path / "Pulumi.lab.yaml")["config"]["p:policies"] == {"no-idle-gpu": "off"}


def test_the_charts_of_the_caller_get_a_constant_path(tmp_path: Path) -> None:
    given = tmp_path / "somewhere"
    (given / "chart").mkdir(parents=True)
    (given / "chart" / "Chart.yaml").write_text("name: chart\n")
    assert take_charts(str(given), tmp_path) == "charts-given"
    assert (tmp_path / "charts-given" / "chart" / "Chart.yaml").is_file()
    assert take_charts("official", tmp_path) == "official"
    with pytest.raises(LabError, match="nowhere is no directory"):
        take_charts("nowhere", tmp_path)


def test_a_directory_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"has no Pulumi\.yaml"):
        copy_project(tmp_path, tmp_path / "copy")


def copied(to: Path) -> Path:
    """The project, after it has been copied."""
    copy_project(PROJECT, to)
    return PROJECT
