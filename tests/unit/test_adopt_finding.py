"""What `berkelium adopt` makes of a cluster: what can be taken over, what is in the way, and what else matters."""

import base64
import gzip
import json
from typing import Any, cast

import pytest

from berkelium_infra.settings.adoption import identify
from berkelium_lab.adopt import Adoption, Declared, Found, find
from berkelium_lab.adopt.changes import of_object
from berkelium_lab.api import UNKNOWN_KIND, Api, ApiError
from tests.unit.program import BINDING, DEVICE_CLASS, DEVICE_CONFIG, NAMESPACE, RELEASE

OURS = 'device.driver == "gpu.nvidia.com"'
THEIRS = "device.driver == 'gpu.nvidia.com'"


class World:
    """The objects of a cluster, as the API hands them out; a dry run of a creation gives the object back."""

    def __init__(self, *objects: dict[str, Any], refuses_dry_runs: bool = False) -> None:
        self._objects = objects
        self._refuses = refuses_dry_runs

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """The object of that name."""
        if kind == "DeviceConfig":
            raise ApiError(404, UNKNOWN_KIND, "not served", {})
        found = (each for each in self.list(api_version, kind) if each["metadata"]["name"] == name)
        return next((each for each in found if each["metadata"].get("namespace") == namespace), None)

    def list(self, api_version: str, kind: str, **_: object) -> list[dict[str, Any]]:
        """The objects of a kind."""
        return [each for each in self._objects if (each["apiVersion"], each["kind"]) == (api_version, kind)]

    def create(self, obj: dict[str, Any], dry_run: bool) -> dict[str, Any]:
        """The object as it would be."""
        assert dry_run
        if self._refuses:
            raise ApiError(403, "Forbidden", "no", {})
        return obj


def seen(*objects: dict[str, Any], wanted: list[Declared], recorded: set[tuple[str, str]] | None = None) -> Adoption:
    """What is found among the objects."""
    return find(cast(Api, World(*objects)), wanted, recorded or set())


def want(kind: str, inputs: dict[str, Any]) -> Declared:
    """A declared object."""
    _, group, name = kind.split(":")
    api_version = group.removeprefix("core/")
    identity = identify(kind, inputs)
    assert identity
    body = inputs if kind == RELEASE else {**inputs, "apiVersion": api_version, "kind": name}
    return Declared(identity, api_version, name, body)


def device_class(name: str, selector: str, resource: str | None = None, manager: str = "", **metadata: Any) -> dict:
    """A DeviceClass; `manager` owns all fields of its spec."""
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": selector}}]}
    if resource:
        spec["extendedResourceName"] = resource
    if manager:
        fields = {"f:spec": {f"f:{key}": {} for key in spec}}
        metadata["managedFields"] = [{"manager": manager, "operation": "Update", "fieldsV1": fields}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def helm_record(name: str, chart: str, version: str = "25.12.0", status: str = "deployed", manifest: str = "") -> dict:
    """The Secret in which Helm keeps a release; its namespace is named like it."""
    record = {
        "name": name,
        "version": 3,
        "info": {"status": status},
        "chart": {"metadata": {"name": chart, "version": version}},
        "config": {"a": 1, "same": True},
        "manifest": manifest,
    }
    payload = base64.b64encode(gzip.compress(json.dumps(record).encode()))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"sh.helm.release.v1.{name}.v3", "namespace": name},
        "data": {"release": base64.b64encode(payload).decode()},
    }


H100 = want(
    DEVICE_CLASS,
    {
        "metadata": {"name": "nvidia-h100", "labels": {"a": "b"}},
        "spec": {"selectors": [{"cel": {"expression": OURS}}], "extendedResourceName": "nvidia.com/h100"},
    },
)
MIG = want(DEVICE_CLASS, {"metadata": {"name": "mig"}, "spec": {"selectors": [{"cel": {"expression": OURS}}]}})
DRIVER = want(
    RELEASE,
    {
        "name": "nvidia-dra-driver-gpu",
        "namespace": "nvidia-dra-driver-gpu",
        "chart": "berkelium_lab/charts/nvidia-dra-driver-gpu",
        "version": "25.12.0",
        "values": {"a": 2, "same": True},
    },
)
TEAM = want(NAMESPACE, {"metadata": {"name": "team"}})


def changes(live: dict, wanted: Declared) -> list[str]:
    """The changes to one live object, as they are printed."""
    (found,) = seen(live, wanted=[wanted]).found
    return [str(change) for change in found.changes]


def test_what_does_not_exist_is_not_listed() -> None:
    assert seen(wanted=[H100, DRIVER, TEAM]) == Adoption(found=[], notes=[])


def test_a_kind_that_the_cluster_does_not_serve_has_no_objects() -> None:
    config = want(DEVICE_CONFIG, {"metadata": {"name": "berkelium", "namespace": "kube-amd-gpu"}, "spec": {}})
    assert seen(wanted=[config]).found == []


def test_a_field_that_differs_is_shown_with_what_is_and_what_will_be() -> None:
    live = device_class("nvidia-h100", THEIRS, "example.com/h100", labels={"a": "b"})
    assert changes(live, H100) == [
        "spec.extendedResourceName: example.com/h100 -> nvidia.com/h100",
        f"spec.selectors[0].cel.expression: {THEIRS} -> {OURS}",
    ]


@pytest.mark.parametrize("manager", ["kubectl-create", "kubectl-client-side-apply", "before-first-apply", "kubectl"])
def test_what_kubectl_wrote_and_nobody_declares_goes(manager: str) -> None:
    live = device_class("mig", OURS, "example.com/mig", manager)
    assert changes(live, MIG) == ["spec.extendedResourceName: example.com/mig -> (none)"]


def test_what_another_manager_wrote_and_nobody_declares_stays_and_is_said_to() -> None:
    live = device_class("mig", OURS, "example.com/mig", "helm")
    (line,) = changes(live, MIG)
    assert line == "spec.extendedResourceName stays example.com/mig, though nobody declares it: helm wrote it"


def test_the_labels_of_others_are_nobody_s_mistake() -> None:
    owned = [{"manager": "controller", "fieldsV1": {"f:metadata": {"f:labels": {"f:theirs": {}}}}}]
    live = device_class("mig", OURS, labels={"theirs": "x"}, managedFields=owned)
    assert changes(live, MIG) == []


def test_without_the_right_to_a_dry_run_the_declaration_is_compared_as_it_is_written() -> None:
    api = cast(Api, World(refuses_dry_runs=True))
    assert of_object(api, MIG.inputs, device_class("mig", OURS)) == []


def test_what_is_in_the_stack_s_state_is_not_taken_over_again() -> None:
    live = device_class("nvidia-h100", OURS, "nvidia.com/h100")
    found = seen(live, wanted=[H100], recorded={("device_classes", "nvidia-h100")})
    assert [each.status for each in found.found] == ["recorded"]
    assert found.section == {}


def test_an_object_that_is_being_deleted_is_in_the_way() -> None:
    live = device_class("nvidia-h100", OURS, deletionTimestamp="2026-01-01T00:00:00Z")
    (found,) = seen(live, wanted=[H100]).blocked
    assert "being deleted" in found.reason


def owned_by(release: str) -> dict[str, str]:
    """Helm's marks on an object of a release in a namespace of the same name."""
    return {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": release}


def test_an_object_of_a_release_that_is_not_taken_over_is_in_the_way() -> None:
    live = device_class("nvidia-h100", OURS, annotations=owned_by("somebody-s"))
    found = seen(live, wanted=[H100, DRIVER])
    assert "Helm release somebody-s/somebody-s" in found.blocked[0].reason
    assert "kubectl annotate deviceclass nvidia-h100 helm.sh/resource-policy=keep" in found.blocked[0].reason
    assert found.section == {}


def test_an_object_of_a_release_that_is_taken_over_is_taken_over_with_it() -> None:
    live = device_class("nvidia-h100", OURS, annotations=owned_by("nvidia-dra-driver-gpu"))
    manifest = "kind: DeviceClass\nmetadata: {name: nvidia-h100}\n---\nkind: DeviceClass\nmetadata: {name: other}\n"
    record = helm_record("nvidia-dra-driver-gpu", "nvidia-dra-driver-gpu", manifest=manifest)
    found = seen(live, record, wanted=[H100, DRIVER])
    assert found.section == {"deviceClasses": ["nvidia-h100"], "releases": ["nvidia-dra-driver-gpu"]}
    assert found.found[1].gives == ["DeviceClass nvidia-h100"]
    assert found.notes == []


def test_a_release_changes_in_chart_version_and_values() -> None:
    (found,) = seen(helm_record("nvidia-dra-driver-gpu", "other-chart", "25.8.0"), wanted=[DRIVER]).found
    assert [str(change) for change in found.changes] == [
        "chart: other-chart -> nvidia-dra-driver-gpu",
        "version: 25.8.0 -> 25.12.0",
        "values.a: 1 -> 2",
    ]


@pytest.mark.parametrize("status", ["pending-install", "pending-upgrade", "pending-rollback", "uninstalling"])
def test_a_release_that_helm_does_not_go_on_from_is_in_the_way(status: str) -> None:
    record = helm_record("nvidia-dra-driver-gpu", "nvidia-dra-driver-gpu", status=status)
    (found,) = seen(record, wanted=[DRIVER]).blocked
    assert status in found.reason
    assert "helm rollback nvidia-dra-driver-gpu -n nvidia-dra-driver-gpu" in found.reason


def test_a_failed_release_can_be_taken_over_since_helm_upgrades_it() -> None:
    record = helm_record("nvidia-dra-driver-gpu", "nvidia-dra-driver-gpu", status="failed")
    assert seen(record, wanted=[DRIVER]).section == {"releases": ["nvidia-dra-driver-gpu"]}


def test_the_same_chart_under_another_name_is_noted_since_both_would_run() -> None:
    (note,) = seen(helm_record("my-driver", "nvidia-dra-driver-gpu"), wanted=[DRIVER]).notes
    assert "my-driver/my-driver" in note
    assert "both would run" in note


def test_a_class_that_shares_an_extended_resource_with_ours_is_noted() -> None:
    (note,) = seen(device_class("big", OURS, "nvidia.com/h100"), wanted=[H100]).notes
    assert "DeviceClass big stands for nvidia.com/h100 too, as nvidia-h100 of this stack does" in note


def test_a_quota_that_somebody_made_in_a_project_is_noted() -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "mine", "namespace": "team"}}
    (note,) = seen(quota, wanted=[TEAM]).notes
    assert "ResourceQuota team/mine goes on limiting" in note


def test_a_binding_of_which_a_preview_would_fail_says_so() -> None:
    binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny", "Audit"]}}
    wanted = want(BINDING, binding)
    live = {**wanted.inputs, "spec": {"policyName": "p", "validationActions": ["Warn"]}}
    (found,) = seen(live, wanted=[wanted]).found
    assert "--skip-preview" in found.preview_fails
    audited = {**wanted.inputs, "spec": {"policyName": "p", "validationActions": ["Audit"]}}
    assert seen(audited, wanted=[wanted]).found[0].preview_fails == ""


def test_the_section_names_each_object_once_in_the_part_that_it_belongs_to() -> None:
    parts = {"namespaces": "team", "limit_ranges": "team", "device_configs": "berkelium"}
    found = [Found(subject="x", part=part, entry=entry, status="adopt") for part, entry in parts.items()]
    blocked = Found(subject="x", part="policies", entry="p", status="blocked")
    section = Adoption(found=[*found, blocked], notes=[]).section
    assert section == {"namespaces": ["team"], "deviceConfigs": ["berkelium"], "limitRanges": ["team"]}
