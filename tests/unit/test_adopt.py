"""Adoption in the program: what the switch makes an import of, and what it may name."""

from typing import Any

import pytest

from berkelium_infra.settings import parse
from berkelium_infra.settings.adoption import Adopt, adoptable, identify
from tests.unit import program
from tests.unit.program import (
    BINDING,
    DEVICE_CLASS,
    DEVICE_CONFIG,
    NAMESPACE,
    POLICY,
    RELEASE,
    ROOT,
    RULE,
    STACKS,
    Registered,
)
from tests.unit.test_projects import LIMIT_RANGE, QUOTA, TEAM
from tests.unit.test_settings import faults

PROJECTS = {"projects": {"team": TEAM}}

EVERYTHING = {
    "namespaces": ["nvidia-dra-driver-gpu", "team"],
    "deviceClasses": ["gpu.nvidia.com"],
    "policies": ["require-resources"],
    "policyBindings": ["require-resources"],
    "releases": ["nvidia-dra-driver-gpu"],
    "nodeFeatureRules": ["berkelium-gpus"],
    "deviceConfigs": ["berkelium"],
    "resourceQuotas": ["team"],
    "limitRanges": ["team"],
}


def imported(found: Registered) -> dict[tuple[str, str], str]:
    """The resources that are imports, with the id that the provider reads."""
    return {key: each.request.importId for key, each in found.resources.items() if each.request.importId}


def test_exactly_what_the_switch_names_is_imported_by_the_id_that_the_provider_reads() -> None:
    found = program.run("prod", PROJECTS | {"adopt": EVERYTHING})
    assert imported(found) == {
        (NAMESPACE, "nvidia-dra-driver-gpu"): "nvidia-dra-driver-gpu",
        (NAMESPACE, "team"): "team",
        (DEVICE_CLASS, "gpu.nvidia.com"): "gpu.nvidia.com",
        (POLICY, "require-resources"): "require-resources",
        (BINDING, "require-resources"): "require-resources",
        (RELEASE, "nvidia-dra-driver-gpu"): "nvidia-dra-driver-gpu/nvidia-dra-driver-gpu",
        (RULE, "berkelium-gpus"): "berkelium-gpus",
        (DEVICE_CONFIG, "berkelium-amd"): "kube-amd-gpu/berkelium",
        (QUOTA, "team"): "team/project-quota",
        (LIMIT_RANGE, "team"): "team/project-limits",
    }


def test_the_switch_changes_nothing_else() -> None:
    plain, adopting = program.run("prod", PROJECTS), program.run("prod", PROJECTS | {"adopt": EVERYTHING})
    assert imported(plain) == {}
    assert plain.outputs == adopting.outputs
    assert {key: (each.urn, each.inputs, each.waits_for) for key, each in plain.resources.items()} == {
        key: (each.urn, each.inputs, each.waits_for) for key, each in adopting.resources.items()
    }


def test_no_upsert_is_switched_on_with_which_a_rename_would_delete_a_live_object() -> None:
    found = program.run("prod", PROJECTS | {"adopt": EVERYTHING})
    assert "upsertExistingObjects" not in found[program.PROVIDER, "cluster"].inputs


@pytest.mark.parametrize("stack", STACKS)
def test_what_may_be_adopted_is_what_the_program_declares(stack: str) -> None:
    found = program.run(stack, PROJECTS)
    config = {key.partition(":")[2]: value for key, value in program.stack_config(stack, PROJECTS).items()}
    by_part: dict[str, set[str]] = {part: set() for part in Adopt.model_fields}
    for each in found.cluster_objects:
        identity = identify(each.type, each.inputs)
        assert identity, f"{each.urn} could not be adopted"
        by_part[identity.part].add(identity.entry)
    assert {part: set(names) for part, names in adoptable(parse(config, stack), ROOT).items()} == by_part
    assert all(by_part.values())


@pytest.mark.parametrize(
    ("section", "key", "says"),
    [
        ({"deviceClasses": ["nvidia-h20"]}, "adopt.deviceClasses", "Write nvidia-h"),
        ({"deviceClasses": ["vfio.gpu.nvidia.com"]}, "adopt.deviceClasses", "that this stack declares"),
        ({"namespaces": ["somebody-s"]}, "adopt.namespaces", "that this stack declares"),
        ({"releases": ["my-driver"]}, "adopt.releases", "that this stack declares"),
        ({"policies": ["no-idle-gpus"]}, "adopt.policies", "Write no-idle-gpu."),
        ({"resourceQuotas": ["my-project"]}, "adopt.resourceQuotas", "that this stack declares"),
        ({"policies": ["no-idle-gpu", "no-idle-gpu"]}, "adopt.policies", "Write it once."),
        ({"deviceclasses": []}, "adopt.deviceclasses", "Write deviceClasses."),
        ({"namespaces": "my-project"}, "adopt.namespaces", "Write a list."),
        ({"namespaces": ["a.b"]}, "adopt.namespaces[0]", "no name of a namespace"),
    ],
)
def test_a_name_of_nothing_that_the_stack_declares_is_a_fault(section: Any, key: str, says: str) -> None:
    found = faults(adopt=section)
    assert list(found) == [key]
    assert says in found[key]


def test_a_part_that_is_switched_off_cannot_be_adopted() -> None:
    found = faults(amd={"enabled": False}, adopt={"releases": ["amd-gpu-operator"], "deviceConfigs": ["berkelium"]})
    assert set(found) == {"adopt.releases", "adopt.deviceConfigs"}
    off = faults(policies={"no-idle-gpu": "off"}, adopt={"policyBindings": ["no-idle-gpu"]})
    assert set(off) == {"adopt.policyBindings"}
