"""The section `adopt` of a stack's file: written and taken out again without a trace."""

from pathlib import Path

import pytest

from berkelium_lab.adopt.stack_file import StackFileError, read_adopt, read_yaml, write_adopt
from tests.unit.program import ROOT, STACKS

PREFIX = "berkelium-infra"
SECTION = {"namespaces": ["my-project"], "deviceClasses": ["gpu.nvidia.com", "mig.nvidia.com"]}

FORMS = {
    "plain": "config:\n  berkelium-infra:context: prod\n",
    "comments": "# top\nconfig:\n  # why\n  berkelium-infra:context: prod  # inline\n  # last\n",
    "salt behind": "config:\n  berkelium-infra:context: prod\nencryptionsalt: v1:abc\n",
    "salt before": "encryptionsalt: v1:abc\nconfig:\n  berkelium-infra:context: prod\n",
    "nested last": "config:\n  berkelium-infra:charts:\n    source: x\n\n# end\n",
    "four spaces": "config:\n    berkelium-infra:context: prod\n",
    "long text": "config:\n  berkelium-infra:context: >-\n    prod\n    and more\n",
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.replace(" ", "-"))
def test_writing_adds_only_the_section_and_removing_it_leaves_every_byte_as_it_was(tmp_path: Path, form: str) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(FORMS[form])
    before = read_yaml(file)
    assert write_adopt(file, PREFIX, SECTION)
    assert read_adopt(file, PREFIX) == SECTION
    after = read_yaml(file)
    assert after["config"].pop("berkelium-infra:adopt") == SECTION
    assert after == before
    assert write_adopt(file, PREFIX, {})
    assert file.read_text() == FORMS[form]


@pytest.mark.parametrize("stack", STACKS)
def test_the_files_of_this_project_come_back_as_they_were(tmp_path: Path, stack: str) -> None:
    file = tmp_path / "stack.yaml"
    original = (ROOT / f"Pulumi.{stack}.yaml").read_bytes()
    file.write_bytes(original)
    write_adopt(file, PREFIX, SECTION)
    write_adopt(file, PREFIX, {"releases": ["x"]})
    assert read_adopt(file, PREFIX) == {"releases": ["x"]}
    write_adopt(file, PREFIX, {})
    assert file.read_bytes() == original


def test_a_file_without_config_gets_one_and_a_missing_line_end_is_no_trouble(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text("encryptionsalt: v1:abc")
    write_adopt(file, PREFIX, SECTION)
    assert read_yaml(file) == {"encryptionsalt": "v1:abc", "config": {"berkelium-infra:adopt": SECTION}}


def test_writing_the_same_again_or_removing_nothing_leaves_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(FORMS["plain"])
    assert not write_adopt(file, PREFIX, {})
    write_adopt(file, PREFIX, SECTION)
    assert not write_adopt(file, PREFIX, SECTION)


def test_a_section_written_by_hand_is_removed_whole(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    by_hand = "  berkelium-infra:adopt:\n    # mine\n    policies:\n      - no-idle-gpu\n    namespaces: [a]\n"
    file.write_text(f"config:\n{by_hand}  berkelium-infra:context: prod\n")
    write_adopt(file, PREFIX, {})
    assert file.read_text() == FORMS["plain"]


def test_names_that_yaml_would_take_for_something_else_stay_names(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(FORMS["plain"])
    write_adopt(file, PREFIX, {"namespaces": ["123", "null", "true", "1e3"]})
    assert read_adopt(file, PREFIX) == {"namespaces": ["123", "null", "true", "1e3"]}


def test_a_long_list_has_an_entry_per_line(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(FORMS["plain"])
    names = [f"namespace-{number}" for number in range(20)]
    write_adopt(file, PREFIX, {"namespaces": names})
    assert "      - namespace-19\n" in file.read_text()
    assert read_adopt(file, PREFIX) == {"namespaces": names}


def test_a_file_in_another_form_is_left_alone_and_the_error_shows_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    text = "config: {berkelium-infra:context: prod}\n"
    file.write_text(text)
    with pytest.raises(StackFileError) as caught:
        write_adopt(file, PREFIX, SECTION)
    assert "namespaces: [my-project]" in str(caught.value)
    assert file.read_text() == text


def test_a_file_that_is_no_yaml_is_one_message(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text("config: [")
    with pytest.raises(StackFileError, match="is no YAML"):
        read_adopt(file, PREFIX)
