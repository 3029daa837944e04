"""The modules in `tools/` are whole: what the table names is there, and pinned."""

import re
from pathlib import Path

import pytest

from berkelium_lab.toolchain import TOOLS, table
from berkelium_lab.toolchain.layout import SOURCE, Layout
from berkelium_lab.toolchain.table import Tool

MODULES = sorted({tool.directory for tool in table.ALL})


def test_the_tools_are_the_control_plane_kwok_nfd_pulumi_with_its_provider_and_a_linter() -> None:
    assert TOOLS == (
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "nfd-master",
        "device-selectors",
        "actionlint",
        "pulumi",
        "pulumi-resource-kubernetes",
    )


def test_every_directory_in_tools_belongs_to_a_tool() -> None:
    assert sorted(path.name for path in SOURCE.iterdir() if path.is_dir()) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_modules_sums_name_every_module_that_it_requires(module: str) -> None:
    sums = {tuple(line.split()[:2]) for line in (SOURCE / module / "go.sum").read_text().splitlines()}
    requirements = re.findall(r"^(?:require)?\s+(\S+) (v\S+)", (SOURCE / module / "go.mod").read_text(), re.MULTILINE)
    replaced = dict(re.findall(r"(\S+) => (\S+ v\S+)$", (SOURCE / module / "go.mod").read_text(), re.MULTILINE))
    expected = {tuple(replaced.get(path, f"{path} {version}").split()) for path, version in requirements}
    assert expected
    assert {(path, f"{version}/go.mod") for path, version in expected} <= sums


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_named_after_its_directory_and_takes_nothing_from_this_machine(module: str) -> None:
    text = (SOURCE / module / "go.mod").read_text()
    assert text.startswith(f"module berkelium.io/tools/{module}\n")
    assert not re.search(r"=> [./]", text), "a replacement by a local directory"
    assert "://" not in text + (SOURCE / module / "go.sum").read_text()


@pytest.mark.parametrize("tool", table.ALL, ids=lambda tool: tool.name)
def test_a_tools_package_lies_in_the_module_that_gives_its_version(tool: Tool) -> None:
    if tool.package == ".":
        assert (SOURCE / tool.directory / "main.go").is_file()
        return
    assert tool.package.startswith(tool.module)
    text = (SOURCE / tool.directory / "go.mod").read_text()
    assert re.search(rf"^(tool )?\s*{re.escape(tool.package)}$", text, re.MULTILINE), "a `tool` line of go.mod"


def test_one_kubernetes_version_runs_the_whole_control_plane() -> None:
    layout = Layout(cache=Path("unused"))
    kubernetes = [tool for tool in table.ALL if tool.directory == "kubernetes"]
    assert len(kubernetes) == 3
    version = layout.version(kubernetes[0])
    major, minor, patch = version.split(".")
    staging = re.findall(r"k8s\.io/\S+ => k8s\.io/\S+ (v\S+)", (SOURCE / "kubernetes" / "go.mod").read_text())
    assert set(staging) == {f"v0.{minor}.{patch}"}
    for tool in kubernetes:
        assert f".gitVersion=v{version} " in layout.linker_flags(tool)
        assert layout.linker_flags(tool).endswith(
            f".gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}"
        )


def test_the_provider_is_a_release_and_not_a_commit() -> None:
    provider = next(tool for tool in table.ALL if tool.name == "pulumi-resource-kubernetes")
    assert re.fullmatch(r"4\.\d+\.\d+", Layout(cache=Path("unused")).version(provider))


def test_the_readme_says_what_each_tool_is_for() -> None:
    rows = re.findall(r"^\| `(\S+)` \| (.+?) \| \S", (SOURCE / "README.md").read_text(), re.MULTILINE)
    listed = {(module, name) for module, names in rows for name in re.findall(r"`(\S+?)`", names)}
    assert listed == {(tool.directory, tool.name) for tool in table.ALL}
