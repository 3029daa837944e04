"""What adoption compares: what the program declares, what the state has; and wrong uses of the command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from berkelium_cli.main import cli
from berkelium_lab.adopt import AdoptError, declared
from berkelium_lab.adopt.recorded import recorded_in_stack
from berkelium_lab.stack_files import StackFileError
from tests.unit.program import DEVICE_CLASS, ROOT


def test_what_is_declared_is_what_the_program_declares_for_the_stack_and_its_file(tmp_path: Path) -> None:
    file = tmp_path / "stack.yaml"
    text = (ROOT / "Pulumi.lab.yaml").read_text()
    file.write_text(text.replace("- my-project", "- elsewhere"))
    found = {each.subject: each for each in declared(ROOT, "lab", file)}
    assert "Namespace elsewhere" in found
    assert "Namespace my-project" not in found
    assert found["DeviceClass gpu.nvidia.com"].inputs["metadata"]["name"] == "gpu.nvidia.com"
    driver = found["Release nvidia-dra-driver-gpu/nvidia-dra-driver-gpu"]
    assert driver.is_release
    assert driver.inputs["values"]["nvidiaDriverRoot"] == "/"


def test_a_faulty_stack_file_is_one_message_without_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "stack.yaml"
    file.write_text((ROOT / "Pulumi.lab.yaml").read_text() + "  berkelium-infra:nvidai: {}\n")
    with pytest.raises(AdoptError) as caught:
        declared(ROOT, "lab", file)
    assert "nvidai: 'nvidai' is no key. Write nvidia." in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_stack_without_a_file_is_answered_with_those_that_have_one() -> None:
    with pytest.raises(StackFileError, match="the stacks are"):
        declared(ROOT, "nowhere")


def test_without_the_pulumi_command_the_state_is_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert recorded_in_stack(ROOT, "prod") is None


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ("echo \"error: no stack named 'prod' found\" >&2; exit 255", set()),
        ("echo 'error: passphrase must be set' >&2; exit 255", None),
        ("cat state.json", {("device_classes", "nvidia-h100")}),
    ],
)
def test_the_state_is_what_the_pulumi_command_exports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, export: str, expected: set[tuple[str, str]] | None
) -> None:
    resources = [
        {"type": DEVICE_CLASS, "inputs": {"metadata": {"name": "nvidia-h100"}}},
        {"type": DEVICE_CLASS, "inputs": {"metadata": {"name": "leaving"}}, "delete": True},
        {"type": "pulumi:pulumi:Stack"},
    ]
    (tmp_path / "state.json").write_text(json.dumps({"deployment": {"resources": resources}}))
    program = tmp_path / "pulumi"
    program.write_text(f"#!/bin/sh\ncd {tmp_path}\n{export}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert recorded_in_stack(ROOT, "prod") == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--write", "--done"], "exclude each other"),
        (["--context", "nobody-s"], "add --stack"),
        (["--stack", "nowhere", "--done"], "there is no"),
    ],
)
def test_wrong_use_is_one_message(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(cli, ["adopt", *arguments])
    assert result.exit_code != 0
    assert says in f"{result.output}{result.exception}"


def test_done_needs_no_cluster(tmp_path: Path) -> None:
    file = tmp_path / "stack.yaml"
    text = (ROOT / "Pulumi.prod.yaml").read_text()
    file.write_text(f"{text}  berkelium-infra:adopt:\n    policies: [no-idle-gpu]\n")
    assert CliRunner().invoke(cli, ["adopt", "--context", "berkelium-prod", "--config-file", str(file), "--done"])
    assert file.read_text() == text
