"""Where charts come from, and the digest by which an edit of local files is noticed."""

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from berkelium_infra.charts import ChartNotFound, digest, local_version, reference
from berkelium_infra.versions import NVIDIA_DRIVER, nvidia_driver
from tests.unit import program
from tests.unit.program import RELEASE, ROOT

CHART = nvidia_driver(NVIDIA_DRIVER).chart


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one chart in `charts`."""
    chart = tmp_path / "charts" / CHART.name
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(f"name: {CHART.name}\nversion: 25.12.0\n")
    (chart / "templates" / "a.yaml").write_text("kind: A\n")
    return tmp_path


def test_a_local_chart_is_named_relative_to_the_project(project: Path) -> None:
    found = reference(CHART, "25.12.0", "charts", project)
    assert (found.chart, found.repository) == ("./charts/nvidia-dra-driver-gpu", None)


def test_a_packed_chart_is_read_as_well(project: Path) -> None:
    packed = project / "packed" / "nvidia-dra-driver-gpu-25.12.0.tgz"
    packed.parent.mkdir()
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(project / "charts" / CHART.name, arcname=CHART.name)
    assert local_version(project, "packed", CHART.name, "25.12.0") == "25.12.0"
    assert reference(CHART, "25.12.0", "packed", project).chart == "./packed/nvidia-dra-driver-gpu-25.12.0.tgz"


def test_several_versions_of_a_chart_lie_in_one_directory_each_under_its_name_and_version(project: Path) -> None:
    newer = project / "charts" / f"{CHART.name}-26.0.0"
    newer.mkdir()
    (newer / "Chart.yaml").write_text(f"name: {CHART.name}\nversion: 26.0.0\n")
    assert local_version(project, "charts", CHART.name, "26.0.0") == "26.0.0"
    assert reference(CHART, "26.0.0", "charts", project).chart == f"./charts/{CHART.name}-26.0.0"
    assert reference(CHART, "25.12.0", "charts", project).chart == f"./charts/{CHART.name}"


def test_a_directory_without_the_chart_says_where_it_was_looked_for(project: Path) -> None:
    with pytest.raises(
        ChartNotFound, match=r"other/Chart\.yaml nor charts/other-1/Chart\.yaml nor charts/other-1\.tgz"
    ):
        local_version(project, "charts", "other", "1")


def test_a_broken_archive_is_reported_as_such(project: Path) -> None:
    (project / "charts" / "other-1.tgz").write_bytes(b"no archive")
    with pytest.raises(ChartNotFound, match=r"has no readable Chart\.yaml"):
        local_version(project, "charts", "other", "1")


def test_the_digest_is_the_same_wherever_the_files_lie_and_whatever_their_times_and_modes(project: Path) -> None:
    first = digest(project / "charts")
    moved = project / "elsewhere" / "charts"
    shutil.copytree(project / "charts", moved)
    for path in moved.rglob("*"):
        path.chmod(0o755)
        os.utime(path, (0, 0))
    (moved / "__pycache__").mkdir()
    (moved / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert digest(moved) == first


def test_the_digest_covers_what_a_chart_links_to(project: Path) -> None:
    linked = project / "linked"
    linked.mkdir()
    (linked / CHART.name).symlink_to(project / "charts" / CHART.name, target_is_directory=True)
    assert digest(linked) == digest(project / "charts")


@pytest.mark.parametrize("edit", ["content", "name", "new file"])
def test_the_digest_changes_with_an_edit(project: Path, edit: str) -> None:
    file = project / "charts" / CHART.name / "templates" / "a.yaml"
    before = digest(project / "charts")
    if edit == "content":
        file.write_text("kind: B\n")
    elif edit == "name":
        file.rename(file.with_name("b.yaml"))
    else:
        file.with_name("b.yaml").write_text("")
    assert digest(project / "charts") != before


def test_the_description_of_a_release_carries_the_digest_of_what_helm_does_not_look_at() -> None:
    renderer = ROOT / "berkelium_infra" / "postrender" / "nvidia_dra_driver.py"
    lab, prod = program.run("lab"), program.run("prod")
    for registered, files in (
        (lab, {"chart": ROOT / "berkelium_lab" / "charts" / CHART.name, "post-renderer": renderer}),
        (prod, {"post-renderer": renderer}),
    ):
        described = registered[RELEASE, CHART.release].inputs["description"]
        assert described == f"{' and '.join(files)} {digest(*files.values())}"
    assert "description" not in prod[RELEASE, "amd-gpu-operator"].inputs
    assert lab[RELEASE, "amd-gpu-operator"].inputs["description"].startswith("chart ")
