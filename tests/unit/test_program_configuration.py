"""How the program takes its configuration, and how it stops on a bad one."""

import json
from typing import Any

import pulumi
import pytest

from berkelium_infra import policies
from tests.unit import program
from tests.unit.program import RELEASE

NVIDIA = (RELEASE, "nvidia-dra-driver-gpu")


def test_bad_settings_stop_the_program_with_one_message_before_anything_is_registered() -> None:
    registered: list[Any] = []
    with pytest.raises(pulumi.RunError) as caught:
        program.run(
            "prod", {"nvidia": {"drverRoot": "/", "featureGates": {"MPSSupport": True}}}, on_register=registered
        )
    assert "nvidia.drverRoot" in str(caught.value)
    assert "nvidia.featureGates.MPSSupport" in str(caught.value)
    assert {type_ for type_, _ in registered} <= {"pulumi:pulumi:Stack"}


def test_the_configuration_is_read_as_well_where_the_command_line_puts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_the_environment(config: dict[str, str]) -> None:
        pulumi.runtime.set_all_config({})
        monkeypatch.setenv("PULUMI_CONFIG", json.dumps(config))

    registered = program.run("prod", {"nvidia": {"driverRoot": "/x"}}, configure=in_the_environment)
    assert registered[NVIDIA].inputs["values"]["nvidiaDriverRoot"] == "/x"


def test_a_broken_policy_file_is_one_message_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise policies.PolicyError("policies/x/policy.yaml must hold one policy")

    monkeypatch.setattr(policies, "load", broken)
    with pytest.raises(pulumi.RunError, match=r"^policies/x/policy\.yaml must hold one policy$"):
        program.run("prod")


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_staging_and_prod_are_refused_without_a_context(name: str) -> None:
    with pytest.raises(pulumi.RunError, match=r"context: It is missing"):
        program.run(name, remove=("context",))
