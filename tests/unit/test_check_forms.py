"""Stale forms, references between objects, and the shapes of reports: what needs no cluster."""

import json
from typing import Any

import pytest

from berkelium_lab.check import lints, output, references, stale
from berkelium_lab.check.findings import UNCHECKED, Complaint, Item, Report, error, note, warning
from berkelium_lab.check.throwaway import Run


def item(obj: dict[str, Any], file: str = "f.yaml") -> Item:
    """An object of the input."""
    return Item(file, 1, obj)


def pod(name: str, spec: dict[str, Any], namespace: str = "team") -> dict[str, Any]:
    """A Pod."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def claiming(name: str, template: str, namespace: str = "team") -> dict[str, Any]:
    """A Pod that uses a claim template."""
    spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
        "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    return pod(name, spec, namespace)


def template(name: str, namespace: str = "team", **request: Any) -> dict[str, Any]:
    """A ResourceClaimTemplate with one request."""
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "nvidia-h100", **request}}]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": devices}},
    }


GPU_LABEL = {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200-NVL"}, "containers": [{"name": "main"}]}
MIG_LIMIT = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/mig-1g.10gb.me": 1}}}]}
NVLINK = 'device.attributes["gpu.nvidia.com"].pcieRoot == "pci0000"'


@pytest.mark.parametrize(
    ("obj", "path", "instead"),
    [
        ({"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim"}, "apiVersion", "resource.k8s.io/v1"),
        ({"apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClass"}, "kind", "nvidia-h100"),
        (
            {"kind": "ResourceClaim", "spec": {"resourceClassName": "gpu.nvidia.com"}},
            "spec.resourceClassName",
            "deviceClassName: gpu.nvidia.com",
        ),
        (
            {"kind": "ResourceClaim", "spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "c"}]}}},
            "spec.devices.requests[0].deviceClassName",
            "exactly:\n    deviceClassName: c",
        ),
        (
            pod("p", {"resourceClaims": [{"name": "gpu", "source": {"resourceClaimTemplateName": "t"}}]}),
            "spec.resourceClaims[0].source",
            "- name: gpu\n  resourceClaimTemplateName: t",
        ),
        (pod("p", MIG_LIMIT), "spec.containers[0].resources.limits.nvidia.com/mig-1g.10gb.me", '"1g.10gb+me"'),
        (pod("p", GPU_LABEL), "spec.nodeSelector.nvidia.com/gpu.product", "deviceClassName: nvidia-h200"),
        (template("t", selectors=[{"cel": {"expression": NVLINK}}]), "spec.spec", "pci0000:15"),
    ],
)
def test_a_stale_form_is_recognised_and_rewritten(obj: dict[str, Any], path: str, instead: str) -> None:
    (form,) = stale.forms(item(obj))
    assert form.path == path
    assert instead in form.instead


def test_forms_of_today_are_not_stale() -> None:
    guarded = 'device.attributes["gpu.nvidia.com"].?pcieRoot.orValue("") == "pci0000"'
    for obj in (claiming("p", "t"), template("t", selectors=[{"cel": {"expression": guarded}}])):
        assert stale.forms(item(obj)) == []


def test_objects_that_name_each_other_go_together_across_files_and_others_apart() -> None:
    items = [
        item(claiming("one", "a"), "1"),
        item(template("a"), "2"),
        item(claiming("two", "b"), "3"),
        item(template("b"), "3"),
        item(template("a", "other"), "4"),
    ]
    groups = references.groups(items, references.Index(items))
    assert sorted(sorted(f"{i.namespace}/{i.name}" for i in group) for group in groups) == [
        ["other/a"],
        ["team/a", "team/one"],
        ["team/b", "team/two"],
    ]


def test_of_two_objects_of_one_name_that_of_the_own_file_is_meant() -> None:
    items = [item(template("t"), "1"), item(template("t"), "2"), item(claiming("p", "t"), "2")]
    index = references.Index(items)
    (reference, *_) = references.of(items[2])
    assert index.find(reference, items[2]) is items[1]


def test_a_quota_goes_with_everything_in_its_namespace() -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "team"}}
    items = [item(quota, "1"), item(pod("a", {}), "2"), item(pod("b", {}), "3"), item(pod("c", {}, "other"), "4")]
    sizes = sorted(len(group) for group in references.groups(items, references.Index(items)))
    assert sizes == [1, 3]


def test_namespaces_stay_apart_and_groups_of_equal_names_do_not_meet() -> None:
    run = Run.__new__(Run)
    Run.__init__(run, api=None, items=[])  # type: ignore[arg-type]
    first, second = [item(pod("p", {}, "a")), item(pod("p", {}, "b"))], [item(pod("p", {}, "a"))]
    one, other = run.lane_for(first), run.lane_for(second)
    placed = [one.place(first[0]), one.place(first[1]), other.place(second[0])]
    namespaces = [obj["metadata"]["namespace"] for obj in placed]
    assert len(set(namespaces)) == 3
    assert run.restore_names(f"pod {namespaces[1]}/p") == "pod b/p"


@pytest.mark.parametrize(
    ("name", "first"),
    [("nvidia-h101", "nvidia-h100"), ("nvidia-H200", "nvidia-h200"), ("h200", "nvidia-h200")],
)
def test_the_nearest_name_is_suggested(name: str, first: str) -> None:
    assert references.nearest(name, ["nvidia-h100", "nvidia-h200", "gpu.amd.com"])[0] == first


@pytest.mark.parametrize(
    ("obj", "code"),
    [
        ({"kind": "Namespace", "metadata": {"name": "n", "labels": {"istio-injection": "enabled"}}}, "injection"),
        ({"kind": "ResourceQuota", "spec": {"hard": {"nvidia.com/gpu": "1"}}}, "quota-key"),
        (pod("p", {"nodeName": "a40-1", "resourceClaims": [{"name": "gpu"}], "containers": []}), "node-name"),
        (pod("p", {"resourceClaims": [{"name": "gpu"}], "containers": [{"name": "main"}]}), "unused-claim"),
        (pod("p", {"schedulerName": "volcano", "containers": []}), "scheduler"),
    ],
)
def test_what_the_cluster_does_not_say_is_said(obj: dict[str, Any], code: str) -> None:
    assert code in [finding.code for finding in lints.findings(item(obj))]


def test_a_namespace_that_opts_out_of_injection_is_none() -> None:
    obj = {"kind": "Namespace", "metadata": {"name": "n", "labels": {"istio-injection": "disabled"}}}
    assert list(lints.findings(item(obj))) == []


def report(*findings: Any) -> Report:
    """A report with one Pod that has those findings, and a file that is no manifest."""
    checked = Item("dir/f.yaml", 3, pod("p", {}), {"spec.x": 7})
    checked.add(*findings)
    return Report([checked], [Complaint("g.yaml", 2, note("empty", "the file holds no object"))], "a lab")


@pytest.mark.parametrize(
    ("findings", "plain", "strict"),
    [
        ([], 0, 0),
        ([note("a", "b")], 0, 0),
        ([warning("a", "b")], 0, 1),
        ([error("a", "b")], 1, 1),
        ([error("a", "b"), error(UNCHECKED, "c")], 2, 2),
    ],
)
def test_the_exit_code_says_whether_something_will_not_run(findings: list[Any], plain: int, strict: int) -> None:
    assert (report(*findings).exit_code(), report(*findings).exit_code(strict=True)) == (plain, strict)


def test_text_has_a_block_with_file_and_line_for_each_object() -> None:
    text = output.text(report(error("a", "broken", "mend it", "spec.x.y")))
    assert "FAIL    dir/f.yaml:3  Pod team/p\n        error: broken (line 7)\n          | mend it\n" in text
    assert text.endswith("1 objects in a lab: 0 fine, 1 will not run")


def test_json_has_everything_that_text_has() -> None:
    document = json.loads(output.as_json(report(error("a", "broken", "mend it", "spec.x")), strict=False))
    assert document["exitCode"] == 1
    (found,) = document["objects"]
    assert (found["file"], found["line"], found["kind"], found["verdict"]) == ("dir/f.yaml", 3, "Pod", "fails")
    assert found["findings"] == [
        {"severity": "error", "code": "a", "message": "broken", "hint": "mend it", "path": "spec.x", "line": 7}
    ]
    assert document["files"][0]["file"] == "g.yaml"


def test_annotations_are_escaped_for_github() -> None:
    line = output.github(report(error("a", "50% of\nall", path="spec.x"))).splitlines()[0]
    assert line == "::error file=dir/f.yaml,line=7,title=Pod team/p::50%25 of%0Aall"
