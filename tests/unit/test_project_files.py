"""Pulumi.yaml and the stack files: what people see of the configuration agrees with what the program reads."""

import re
from typing import Any

import pytest

from berkelium_infra.policies import policy_names
from berkelium_infra.settings import Settings, parse, reference
from tests.unit.program import ROOT, STACKS, read_yaml, stack_config
from tests.unit.test_settings import GOOD

PROJECT: dict[str, Any] = read_yaml(ROOT / "Pulumi.yaml")
REQUIRED = {"context", "clusterIdentifier"}
TYPES = {"string": str, "array": list, "object": dict, "boolean": bool}


def test_pulumi_yaml_declares_every_setting_and_no_other() -> None:
    assert set(PROJECT["config"]) == {field.alias for field in Settings.model_fields.values()}


@pytest.mark.parametrize("key", PROJECT["config"])
def test_every_setting_has_a_type_a_description_and_where_it_makes_sense_a_default(key: str) -> None:
    declared = PROJECT["config"][key]
    assert declared["description"]
    assert ("default" in declared) is (key not in REQUIRED)
    if "default" in declared:
        assert isinstance(declared["default"], TYPES[declared["type"]])


def test_the_defaults_of_pulumi_yaml_are_those_of_the_program() -> None:
    shown = {key: each["default"] for key, each in PROJECT["config"].items() if "default" in each}
    settings = parse(GOOD | shown, "prod")
    assert {name: settings.policy_mode(name) for name in shown["policies"]} == dict.fromkeys(policy_names(), "deny")
    assert settings.model_copy(update={"policies": {}}) == parse(GOOD, "prod")


def test_every_key_of_a_section_is_shown_with_its_description() -> None:
    text = re.sub(r"\s+", " ", re.sub(r"\n\s*#?", " ", (ROOT / "Pulumi.yaml").read_text(encoding="utf-8")))
    every = reference.keys()
    # The keys of a list's entries are shown by the entries of its default.
    keys = [key for key in every if "[]" not in key.path]
    shown = {key.path: key.meaning in text and f"{key.path.rpartition('.')[2]}:" in text for key in keys}
    assert [path for path, is_shown in shown.items() if not is_shown] == []


@pytest.mark.parametrize("stack", STACKS)
def test_the_settings_of_each_stack_are_good(stack: str) -> None:
    config = {key.partition(":")[2]: value for key, value in stack_config(stack).items()}
    settings = parse(config, stack)
    assert settings.cluster_identifier == f"berkelium-{stack}"
    assert settings.project_namespaces == ("my-project",)


def test_the_lab_alone_uses_the_stand_in_charts() -> None:
    sources = {stack: stack_config(stack)["berkelium-infra:charts"].get("source", "official") for stack in STACKS}
    assert sources == {"lab": "berkelium_lab/charts", "staging": "official", "prod": "official"}


def test_the_runtime_options_are_those_that_an_ordinary_installation_needs() -> None:
    assert PROJECT["runtime"] == {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}}


def test_no_stack_file_holds_a_salt_that_only_its_writer_has_the_passphrase_for() -> None:
    for stack in STACKS:
        assert set(read_yaml(ROOT / f"Pulumi.{stack}.yaml")) == {"config"}
