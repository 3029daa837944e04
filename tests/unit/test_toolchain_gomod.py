"""A tool's version and the Go release that it needs are read from its go.mod."""

from pathlib import Path

import pytest

from berkelium_lab.toolchain import ToolchainError, gomod

COMMIT = "v4.0.0-20260115033456-f47bc2d6f199"


def write(directory: Path, text: str) -> Path:
    go_mod = directory / "go.mod"
    go_mod.write_text(text)
    return go_mod


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("require example.com/x v1.2.3\n", "1.2.3"),
        ("require (\n\texample.com/x/v2 v2.0.0 // indirect\n\texample.com/x v1.2.3 // indirect\n)\n", "1.2.3"),
        ("require example.com/x v2.0.0+incompatible\n", "2.0.0"),
        ("require example.com/x v1.2.3-rc.1\n", "1.2.3-rc.1"),
        ("replace example.com/x => example.com/fork v9.9.9\n\nrequire example.com/x v1.2.3\n", "1.2.3"),
    ],
)
def test_a_modules_version_is_the_one_that_the_require_line_names(tmp_path: Path, text: str, version: str) -> None:
    assert gomod.module_version(write(tmp_path, text), "example.com/x") == version


@pytest.mark.parametrize("comment", ["v4.25.0", "indirect; v4.25.0"])
def test_the_version_of_a_commit_is_the_release_that_its_comment_names(tmp_path: Path, comment: str) -> None:
    go_mod = write(tmp_path, f"require example.com/x {COMMIT} // {comment}\n")
    assert gomod.module_version(go_mod, "example.com/x") == "4.25.0"


def test_a_commit_without_a_release_in_a_comment_is_an_error_that_says_what_to_write(tmp_path: Path) -> None:
    go_mod = write(tmp_path, f"require example.com/x {COMMIT} // indirect\n")
    with pytest.raises(ToolchainError, match=r"example\.com/x is required at a commit.*// v1\.2\.3"):
        gomod.module_version(go_mod, "example.com/x")


def test_a_module_that_is_not_required_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    go_mod = write(tmp_path, "require example.com/xy v1.0.0\n")
    with pytest.raises(ToolchainError, match=rf"{go_mod}: no line requires example\.com/x,"):
        gomod.module_version(go_mod, "example.com/x")


@pytest.mark.parametrize(("line", "release"), [("go 1.26.6", (1, 26, 6)), ("go 1.26", (1, 26, 0))])
def test_the_go_line_says_which_release_of_go_is_needed(
    tmp_path: Path, line: str, release: tuple[int, int, int]
) -> None:
    assert gomod.required_go(write(tmp_path, f"module example.com/y\n\n{line}\n")) == release


@pytest.mark.parametrize(
    ("text", "release"), [("go1.26.8", (1, 26, 8)), ("go1.27rc1", (1, 27, 0)), ("devel go1.28-abcdef", None)]
)
def test_go_releases_are_read_as_numbers(text: str, release: tuple[int, int, int] | None) -> None:
    assert gomod.parse_go_release(text) == release
