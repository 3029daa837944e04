"""Projects: what the configuration of one means for the cluster, and every fault in it."""

from typing import Any

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from berkelium_cli.main import cli
from berkelium_infra.settings import parse, warnings
from berkelium_infra.settings.projects import Project, canonical, device_counts, hard_limits
from tests.unit import program
from tests.unit.program import BINDING, NAMESPACE
from tests.unit.test_settings import GOOD, faults

QUOTA = "kubernetes:core/v1:ResourceQuota"
LIMIT_RANGE = "kubernetes:core/v1:LimitRange"

TEAM: dict[str, Any] = {
    "labels": {"team": "vision"},
    "quota": {"cpu": 64, "memory": "512Gi", "gpus": {"h100": 4, "mig.nvidia.com": 7}},
    "limitRange": {"min": {"cpu": "10m"}, "max": {"cpu": "16", "memory": "128Gi"}},
}


def hard(**gpus: int) -> dict[str, str]:
    """The quota's keys for these devices."""
    return hard_limits(Project.model_validate({"quota": {"gpus": gpus}}).quota)


def test_a_model_is_one_line_and_is_counted_for_pods_and_for_claims() -> None:
    # The spellings of pkg/quota/v1/evaluator/core/resource_claims.go and k8s.io/api/core/v1/types.go at v1.37.2.
    assert hard(h100=4) == {
        "requests.nvidia.com/h100": "4",
        "nvidia-h100.deviceclass.resource.k8s.io/devices": "4",
    }
    assert hard(h100=4) == hard(**{"nvidia-h100": 4})


def test_a_class_without_an_extended_resource_is_counted_by_its_own_name_and_its_claims() -> None:
    assert hard(**{"mig.nvidia.com": 7}) == {
        "requests.deviceclass.resource.kubernetes.io/mig.nvidia.com": "7",
        "mig.nvidia.com.deviceclass.resource.k8s.io/devices": "7",
    }


def test_an_amd_gpu_is_counted_by_the_resource_of_its_class() -> None:
    assert hard(mi100=1)["requests.amd.com/gpu"] == "1"


def test_a_model_with_two_classes_is_allowed_by_its_own_only_so_that_its_number_holds() -> None:
    assert device_counts({"a40": 2}) == {"nvidia-a40": 2, "gpu.nvidia.com": 0}
    assert device_counts({"a40": 2, "gpu.nvidia.com": 1}) == {"nvidia-a40": 2, "gpu.nvidia.com": 1}
    shared = parse(GOOD | {"projects": {"team": {"quota": {"gpus": {"a40": 2}}}}}, "prod")
    assert any("gpu.nvidia.com hands out the a40 too" in warning for warning in warnings(shared))
    named = parse(GOOD | {"projects": {"team": {"quota": {"gpus": {"a40": 2, "gpu.nvidia.com": 0}}}}}, "prod")
    assert not any("a40 too" in warning for warning in warnings(named))


def test_a_star_stands_for_every_class_that_is_not_named_those_of_the_stack_too() -> None:
    extra = {"name": "big", "selector": 'device.driver == "x"', "extendedResource": "example.com/big"}
    config = {"extraDeviceClasses": [extra], "projects": {"team": {"quota": {"gpus": {"h100": 4, "*": 0}}}}}
    settings = parse(GOOD | config, "prod")
    limits = hard_limits(settings.projects["team"].quota, settings.extra_device_classes)
    assert limits["requests.nvidia.com/h100"] == "4"
    others = {key: value for key, value in limits.items() if "h100" not in key}
    assert set(others.values()) == {"0"}
    assert {"requests.example.com/big", "requests.nvidia.com/gpu", "requests.amd.com/gpu"} <= set(others)
    assert "mig.nvidia.com.deviceclass.resource.k8s.io/devices" in others


def test_a_class_that_is_not_named_is_not_limited() -> None:
    assert not any("h200" in key for key in hard(h100=4))


@pytest.mark.parametrize(
    ("written", "canonically"),
    # As `kubectl get -o yaml` shows them: k8s.io/apimachinery/pkg/api/resource/quantity.go, CanonicalizeBytes.
    [
        ("64", "64"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("512Gi", "512Gi"),
        ("2000", "2k"),
        ("100M", "100M"),
        ("1e3", "1e3"),
    ],
)
def test_amounts_are_written_as_the_api_server_writes_them_back(written: str, canonically: str) -> None:
    assert canonical(written) == canonically


FAULTS = [
    ({"quota": {"gpus": {"h101": 1}}}, "projects.team.quota.gpus.h101", "Write h100."),
    ({"quota": {"gpus": {"nvidia.com/h100": 1}}}, "projects.team.quota.gpus.nvidia.com/h100", "or device class"),
    ({"quota": {"gpus": {"h100": -1}}}, "projects.team.quota.gpus.h100", "below zero"),
    ({"quota": {"gpus": {"h100": 1.5}}}, "projects.team.quota.gpus.h100", "no number of devices"),
    ({"quota": {"gpus": {"h100": True}}}, "projects.team.quota.gpus.h100", "no number of devices"),
    ({"quota": {"gpus": {"h100": "4"}}}, "projects.team.quota.gpus.h100", "no number of devices"),
    ({"quota": {"gpus": {"h100": 1, "nvidia-h100": 2}}}, "projects.team.quota.gpus.h100", "Write one of them."),
    ({"quota": {"gpus": ["h100"]}}, "projects.team.quota.gpus", "is no mapping"),
    ({"quota": {"cpu": "many"}}, "projects.team.quota.cpu", "is no quantity"),
    ({"quota": {"memory": "0"}}, "projects.team.quota.memory", "means unlimited"),
    ({"quota": {"memory": "-1Gi"}}, "projects.team.quota.memory", "is no quantity"),
    ({"quota": {"limits": {"cpu": "x"}}}, "projects.team.quota.limits.cpu", "is no quantity"),
    ({"quota": {"gpu": {"h100": 1}}}, "projects.team.quota.gpu", "Write gpus."),
    ({"qouta": {}}, "projects.team.qouta", "Write quota."),
    ({"labels": {"a b": "c"}}, "projects.team.labels.a b", "is no label key"),
    ({"labels": {"team": "a b"}}, "projects.team.labels.team", "is no label value"),
    ({"labels": {"kubernetes.io/metadata.name": "x"}}, "projects.team.labels.kubernetes.io/metadata.name", "itself"),
    ({"limitRange": {"default": {"cpu": "1"}}}, "projects.team.limitRange", "require-resources refuses"),
    ({"limitRange": {"defaultRequest": {"cpu": "1"}}}, "projects.team.limitRange", "Remove defaultRequest"),
    ({"limitRange": {"min": {"cpu": "2"}, "max": {"cpu": "1"}}}, "projects.team.limitRange", "is above max.cpu 1"),
    ({"limitRange": {"max": {"nvidia.com/h100": 1}}}, "projects.team.limitRange.max.nvidia.com/h100", "cpu, memory"),
    ("team", "projects.team", "is no mapping"),
]


@pytest.mark.parametrize(
    ("project", "key", "says"), FAULTS, ids=[f"{key}-{number}" for number, (_, key, _) in enumerate(FAULTS)]
)
def test_a_fault_is_reported_under_its_key_with_what_to_write(project: Any, key: str, says: str) -> None:
    found = faults(projects={"team": project})
    assert list(found) == [key]
    assert says in found[key]


@pytest.mark.parametrize(
    ("entries", "key", "says"),
    [
        ({"projects": {"kube-system": {}}}, "projects.kube-system", "of the system or of this stack"),
        ({"projects": {"default": {}}}, "projects.default", "of the system or of this stack"),
        ({"projects": {"kube-amd-gpu": {}}}, "projects.kube-amd-gpu", "of the system or of this stack"),
        ({"projects": {"a.b": {}}}, "projects.a.b", "no name of a namespace"),
        ({"projects": {"a": {}}, "projectNamespaces": ["a"]}, "projects.a", "projectNamespaces too"),
        ({"projects": {"a": {}}, "exemptNamespaces": ["a"]}, "projects.a", "exemptNamespaces"),
        ({"projects": ["a"]}, "projects", "is no mapping"),
    ],
)
def test_a_name_that_cannot_be_a_project_s_is_a_fault(entries: dict[str, Any], key: str, says: str) -> None:
    found = faults(**entries)
    assert list(found) == [key]
    assert says in found[key]


def test_a_pod_security_label_is_a_tenant_s_own_to_set() -> None:
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    assert parse(GOOD | {"projects": {"team": {"labels": level}}}, "prod").project_labels == {"team": level}


def test_a_project_is_a_namespace_with_labels_a_quota_and_a_limit_range() -> None:
    found = program.run("prod", {"projects": {"team": TEAM}})
    assert found[NAMESPACE, "team"].inputs["metadata"] == {"name": "team", "labels": {"team": "vision"}}
    quota, limits = found[QUOTA, "team"].inputs, found[LIMIT_RANGE, "team"].inputs
    assert quota["metadata"] == {"name": "project-quota", "namespace": "team"}
    assert quota["spec"]["hard"] == {"requests.cpu": "64", "requests.memory": "512Gi"} | hard(
        h100=4, **{"mig.nvidia.com": 7}
    )
    assert limits["metadata"] == {"name": "project-limits", "namespace": "team"}
    maximum = {"cpu": "16", "memory": "128Gi"}
    assert limits["spec"]["limits"] == [{"type": "Container", "min": {"cpu": "10m"}, "max": maximum}]
    assert found.outputs["namespaces"]["projects"] == ["my-project", "team"]


def test_a_project_comes_after_the_policies_and_its_limits_after_its_namespace() -> None:
    found = program.run("prod", {"projects": {"team": TEAM}})
    for name in found.of(BINDING):
        assert found.waits((NAMESPACE, "team"), (BINDING, name))
    for kind in (QUOTA, LIMIT_RANGE):
        assert found.waits((kind, "team"), (NAMESPACE, "team"))


def test_the_guide_s_example_and_its_command_are_right() -> None:
    guide = (program.ROOT / "docs" / "projects.md").read_text()
    example = YAML(typ="safe").load(guide.partition("```yaml\n")[2].partition("```")[0])
    settings = parse(GOOD | {key.partition(":")[2]: value for key, value in example.items()}, "prod")
    limits = hard_limits(settings.projects["vision"].quota)
    for key in ("requests.nvidia.com/h100", "nvidia-h100.deviceclass.resource.k8s.io/devices"):
        assert f"| `{key}` |" in guide
        assert limits[key] == "4"
    assert (limits["requests.nvidia.com/a40"], limits["requests.nvidia.com/gpu"]) == ("2", "0")
    commands = [block.partition("```")[0].split() for block in guide.split("```sh\n")[1:]]
    assert commands == [["berkelium", "config", "check", "prod"]]
    for _, *arguments in commands:
        assert CliRunner().invoke(cli, arguments).exit_code == 0


def test_a_project_without_limits_is_the_namespace_that_the_short_form_makes() -> None:
    short = program.run("prod", {"projectNamespaces": ["team"]})
    full = program.run("prod", {"projectNamespaces": [], "projects": {"team": {}}})
    # The same resource, so that going from one form to the other deletes nothing.
    assert short[NAMESPACE, "team"].urn == full[NAMESPACE, "team"].urn
    assert short[NAMESPACE, "team"].inputs == full[NAMESPACE, "team"].inputs
    assert full.of(QUOTA) == full.of(LIMIT_RANGE) == {}
