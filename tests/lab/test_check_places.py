"""Where `berkelium check` asks: a lab of its own, a running lab, a cluster by dry run. It leaves nothing anywhere."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import psutil
import pytest
import yaml

from berkelium_lab.api import Api
from berkelium_lab.check import target
from berkelium_lab.check.run import Question, check
from berkelium_lab.check.target import Target, own_lab
from berkelium_lab.lab import Lab
from berkelium_lab.lab import labs as all_labs
from berkelium_lab.wait import NotYet, until
from tests.lab.manifests import Object, all_words, checked, claiming, pod, template, words, workload

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LASTING = ("Namespace", "DeviceClass", "PriorityClass", "CustomResourceDefinition", "Pod", "ResourceClaim")
VERSIONS = {
    "Namespace": "v1",
    "Pod": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
}
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.check.example.com"},
    "spec": {
        "group": "check.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}


def quiet(line: str) -> None:
    """Reports nothing."""
    del line


def contents(api: Api) -> set[str]:
    """The names of everything in a cluster that a check could leave behind."""
    found = set()
    for kind in LASTING:
        for obj in api.list(VERSIONS.get(kind, "resource.k8s.io/v1"), kind):
            found.add(f"{kind} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}")
    return found


def settled(api: Api, before: set[str]) -> bool:
    """Whether nothing is there that was not there before."""
    if left := contents(api) - before:
        raise NotYet(", ".join(sorted(left)))
    return True


@pytest.fixture(scope="module")
def stood_up() -> Iterator[Target]:
    """A lab of a check's own."""
    with own_lab(None, quiet) as where:
        yield where


def shapes(api: Api) -> dict[str, object]:
    """What of a lab decides over manifests: classes, policies, nodes' labels and devices."""
    classes = {c["metadata"]["name"]: c["spec"] for c in api.list("resource.k8s.io/v1", "DeviceClass")}
    policies = {
        (kind, p["metadata"]["name"]): p["spec"]
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
        for p in api.list("admissionregistration.k8s.io/v1", kind)
        if "helm" not in str(p["metadata"].get("labels")).lower()
    }
    labels = {
        n["metadata"]["name"]: {k: v for k, v in n["metadata"]["labels"].items() if k.startswith("berkelium.io/")}
        for n in api.list("v1", "Node")
    }
    devices = {
        (spec["driver"], spec["pool"]["name"], device["name"]): (device.get("attributes"), device.get("capacity"))
        for spec in (s["spec"] for s in api.list("resource.k8s.io/v1", "ResourceSlice"))
        for device in spec.get("devices") or []
    }
    return {"classes": classes, "policies": policies, "labels": labels, "devices": devices}


@pytest.mark.parametrize("part", ["classes", "policies", "labels", "devices"])
def test_a_checks_own_lab_has_what_the_program_brings(part: str, stood_up: Target, deployed: Api) -> None:
    assert shapes(stood_up.api)[part] == shapes(deployed)[part]


def test_every_example_runs(stood_up: Target) -> None:
    report = check(Question([str(EXAMPLES)]), nullcontext(stood_up), quiet)
    assert report.exit_code(strict=True) == 0, all_words(report)
    pods = [item for item in report.items if item.kind == "Pod"]
    assert pods
    assert all(" on " in item.placement for item in pods)


def run_command(*arguments: str) -> subprocess.Popen[str]:
    """`berkelium check` as a process of its own."""
    command = [sys.executable, "-c", "from berkelium_cli.main import main; main()", "check", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def labs_of(process: int) -> list[str]:
    """The labs that a check in that process made."""
    return [name for name in all_labs() if name.startswith(f"{target.PREFIX}{process}-")]


def test_the_command_answers_and_its_lab_is_gone() -> None:
    process = run_command(str(EXAMPLES / "h100"))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "2 × NVIDIA H100 80GB HBM3 on h100-" in out
    assert labs_of(process.pid) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["starting a lab", "checking"])
def test_an_interrupted_check_leaves_no_lab(number: signal.Signals, moment: str) -> None:
    process = run_command(str(EXAMPLES))
    assert process.stderr
    for line in process.stderr:
        if moment in line:
            break
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert labs_of(process.pid) == []
    marked = [
        p.pid for p in psutil.process_iter(["cmdline"]) if f"/{target.PREFIX}{process.pid}-" in str(p.info["cmdline"])
    ]
    assert marked == []


def test_a_killed_checks_lab_is_removed_by_the_next() -> None:
    process = run_command(str(EXAMPLES))
    assert process.stderr
    until(lambda: labs_of(process.pid), "the check has a lab", 60)
    process.kill()
    process.communicate()
    assert labs_of(process.pid) != []
    with own_lab(None, quiet):
        assert labs_of(process.pid) == []


def test_nothing_is_left_in_a_running_lab(deployed: Api, lab: Lab, tmp_path: Path) -> None:
    before = contents(deployed)
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 5},
        *claiming("nvidia-h200", count=2),
        pod("other", priorityClassName="urgent"),
        workload("Deployment", 3, limits={"nvidia.com/a40": "1"}),
    ]
    report = checked(lab, tmp_path, objects)
    assert report.exit_code() == 0, all_words(report)
    until(lambda: settled(deployed, before), "nothing is left of the check", 60)


def test_objects_of_one_name_in_several_namespaces_stay_apart(deployed: Api, lab: Lab, tmp_path: Path) -> None:
    del deployed
    objects = [
        template("nvidia-h100"),
        template("nvidia-a40", namespace="b"),
        pod(claims="t"),
        pod(claims="t", namespace="b"),
    ]
    placements = [item.placement for item in checked(lab, tmp_path, objects).items[2:]]
    assert ["H100" in placements[0], "A40" in placements[1]] == [True, True]


def test_a_kind_without_a_definition_is_skipped_and_with_one_is_checked(
    deployed: Api, lab: Lab, tmp_path: Path
) -> None:
    before = contents(deployed)
    widget: Object = {
        "apiVersion": "check.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": "large"},
    }
    report = checked(lab, tmp_path, [widget])
    assert (report.items[0].skipped, report.exit_code()) == (True, 0)
    crd = tmp_path / "crd.yaml"
    crd.write_text(yaml.safe_dump(WIDGETS))
    report = checked(lab, tmp_path, [widget], definitions=[str(crd)])
    assert "spec.size" in words(report.items[0])
    until(lambda: settled(deployed, before), "the definition is gone", 60)


def test_a_cluster_is_asked_by_dry_run_only(deployed: Api, tmp_path: Path) -> None:
    before = contents(deployed)
    file = tmp_path / "m.yaml"
    objects = [
        *claiming("nvidia-h100", namespace="my-project"),
        {**pod("idle", namespace="my-project", resources={"limits": {"cpu": "1"}})},
        pod("lost", claims="absent", namespace="my-project"),
        *claiming("nvidia-v100", name="old", namespace="my-project")[:1],
    ]
    objects[1]["metadata"]["namespace"] = "my-project"
    file.write_text(yaml.safe_dump_all(objects))
    report = check(Question([str(file)]), target.cluster(deployed, "live"), quiet)
    said = [words(item) for item in report.items]
    assert "not tried" in said[1]
    assert "policy require-resources" in said[2]
    assert "no ResourceClaimTemplate absent" in said[3]
    assert "no DeviceClass nvidia-v100" in said[4]
    assert [item.failed for item in report.items] == [False, False, True, True, True]
    assert contents(deployed) == before


def test_devices_that_are_held_by_others_are_not_free(deployed: Api, lab: Lab, namespace: str, tmp_path: Path) -> None:
    holder = pod(
        "holder", limits={"amd.com/gpu": "4"}, namespace=namespace, nodeSelector={"kubernetes.io/hostname": "mi100-1"}
    )
    deployed.create(holder)
    until(lambda: (deployed.get("v1", "Pod", "holder", namespace) or {})["spec"].get("nodeName"), "holder runs", 30)
    report = checked(lab, tmp_path, [workload("Deployment", 2, limits={"amd.com/gpu": "4"})])
    assert "1 of 2 pods find a place" in all_words(report)
