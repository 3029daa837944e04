"""A tool is built again when, and only when, something that goes into it has changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from berkelium_lab.toolchain import ToolchainError
from berkelium_lab.toolchain.layout import Platform
from tests.unit.toolchain_workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path).set_up()


def keys(workshop: Workshop) -> dict[str, str]:
    layout = workshop.layout()
    return {tool.name: layout.key(tool) for tool in layout.tools}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_raising_a_version_changes_the_keys_of_that_modules_tools_only(workshop: Workshop) -> None:
    before = keys(workshop)
    workshop.write_module("smithy", "0.9.1")
    assert changed(before, keys(workshop)) == {"hammer", "tongs"}


@pytest.mark.parametrize("file", ["main.go", "internal/forge.go"])
def test_a_new_file_changes_the_key(workshop: Workshop, file: str) -> None:
    before = keys(workshop)
    path = workshop.source / "anvil" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("package main\n")
    assert changed(before, keys(workshop)) == {"anvil"}


def test_a_renamed_file_changes_the_key(workshop: Workshop) -> None:
    main = workshop.source / "anvil" / "main.go"
    main.write_text("package main\n")
    before = keys(workshop)
    main.rename(main.with_name("other.go"))
    assert changed(before, keys(workshop)) == {"anvil"}


def test_hidden_files_and_the_time_of_a_file_leave_the_key_alone(workshop: Workshop) -> None:
    before = keys(workshop)
    (workshop.source / "anvil" / ".main.go.swp").write_text("an editor's")
    workshop.write_module("anvil", "1.2.3")
    assert changed(before, keys(workshop)) == set()


def test_the_key_does_not_depend_on_where_the_checkout_lies(tmp_path: Path) -> None:
    found: list[dict[str, str]] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        found.append(keys(Workshop(tmp_path / name).set_up()))
    assert found[0] == found[1]


def test_the_key_follows_the_entry_in_the_table(workshop: Workshop) -> None:
    layout = workshop.layout()
    tool = layout.tools[0]
    assert layout.key(tool) != layout.key(replace(tool, variables=(("main.Version", "{version}"),)))


def test_platforms_have_places_of_their_own(workshop: Workshop) -> None:
    layouts = [workshop.layout(Platform("linux", architecture)) for architecture in ("amd64", "arm64")]
    first, second = (layout.binary(layout.tools[0]) for layout in layouts)
    assert first.parts[-4:-2] == ("linux-amd64", "anvil")
    assert second.parts[-4:-2] == ("linux-arm64", "anvil")


def test_the_linker_gets_the_modules_version_in_parts_and_whole(workshop: Workshop) -> None:
    variables = (("p.v", "v{version}"), ("p.major", "{major}"), ("p.minor", "{minor}"))
    tool = replace(workshop.tools[0], variables=variables)
    assert workshop.layout().linker_flags(tool) == "-s -w -X p.v=v1.2.3 -X p.major=1 -X p.minor=2"


def test_a_module_that_is_not_there_is_an_error_that_says_where_tools_come_from(workshop: Workshop) -> None:
    (workshop.source / "anvil" / "go.mod").unlink()
    with pytest.raises(ToolchainError, match=r"anvil holds no go\.mod.*checkout.*BERKELIUM_TOOLS"):
        keys(workshop)
