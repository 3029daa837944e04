"""Stack files as every command but the engine reads them."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from berkelium_cli import config
from berkelium_infra import settings
from berkelium_infra.settings import SettingsError
from berkelium_lab import stack_files
from berkelium_lab.stack_files import ENCRYPTED, StackFileError

ABOUT = """\
name: berkelium-infra
config:
  protect: {type: boolean, default: false}
  clusterIdentifier: {type: string}
"""
STACK = """\
encryptionsalt: v1:salt
config:
  berkelium-infra:context: cluster
  berkelium-infra:clusterIdentifier: cluster
  berkelium-infra:policies: {no-idle-gpu: off}
  kubernetes:context: other
  another-project:key: value
  berkelium-infra:amd:
    registryCredentials:
      server: registry.example.com
      username: builder
      password: PASSWORD
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a stack that has an encrypted password."""
    (tmp_path / "Pulumi.yaml").write_text(ABOUT)
    write(tmp_path, "{secure: v1:AAABBBCCC}")
    return tmp_path


def write(project: Path, password: str, stack: str = STACK) -> None:
    """The file of the stack prod with that password."""
    (project / "Pulumi.prod.yaml").write_text(stack.replace("PASSWORD", password))


def test_the_stacks_entries_come_over_the_defaults_without_prefix_and_with_words_as_words(project: Path) -> None:
    found = stack_files.read(project, "prod")
    assert found.values["protect"] is False
    assert found.values["policies"] == {"no-idle-gpu": "off"}
    assert found.values["kubernetes:context"] == "other"
    assert set(found.values) == {
        "protect", "context", "clusterIdentifier", "policies", "kubernetes:context", "amd"
    }  # fmt: skip


def test_an_encrypted_value_is_one_that_cannot_be_read_and_no_fault(project: Path) -> None:
    write(project, "{secure: v1:AAABBBCCC}", STACK.replace("  kubernetes:context: other\n", ""))
    found = stack_files.read(project, "prod")
    credentials = found.settings(settings.PROJECT).amd.registry_credentials
    assert credentials
    assert credentials.password.get_secret_value() == ENCRYPTED
    assert found.secret == {"amd"}


def test_a_password_that_is_not_encrypted_is_a_fault_that_does_not_repeat_it(project: Path) -> None:
    write(project, "open-sesame")
    with pytest.raises(SettingsError, match=r"amd\.registryCredentials\.password: It is not encrypted") as caught:
        stack_files.read(project, "prod").settings(settings.PROJECT)
    assert "pulumi config set --path amd.registryCredentials.password --secret" in str(caught.value)
    assert "open-sesame" not in str(caught.value)


def test_another_file_may_take_the_place_of_the_stacks_own(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("config: {berkelium-infra:context: elsewhere}\n")
    assert stack_files.read(project, "prod", other).values == {"protect": False, "context": "elsewhere"}


def test_a_stack_without_a_file_is_named_with_those_that_have_one(project: Path) -> None:
    with pytest.raises(StackFileError, match=r"Pulumi\.stagging\.yaml; the stacks are prod"):
        stack_files.read(project, "stagging")


def test_a_file_that_is_no_yaml_is_one_error_with_its_name(project: Path) -> None:
    (project / "Pulumi.prod.yaml").write_text("config: [")
    with pytest.raises(StackFileError, match=r"Pulumi\.prod\.yaml is no YAML: line 1: "):
        stack_files.read(project, "prod")


def test_config_check_accepts_an_encrypted_value(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "{secure: v1:AAABBBCCC}", STACK.replace("  kubernetes:context: other\n", ""))
    for part in ("policies", "values", "berkelium_infra"):
        (project / part).symlink_to(settings.PROJECT / part)
    monkeypatch.setattr(settings, "PROJECT", project)
    result = CliRunner().invoke(config.config, ["check", "prod"])
    assert (result.exit_code, result.output) == (0, "Pulumi.prod.yaml is right.\n")
