"""`berkelium preview`: what it shows of a change is what the change does to the cluster, and nothing else."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from berkelium_lab import processes
from berkelium_lab.lab import Lab, labs
from berkelium_lab.review import markdown, text, trees
from berkelium_lab.review.bench import Bench
from berkelium_lab.review.model import Difference, ObjectChange, Review
from berkelium_lab.review.session import compared
from berkelium_lab.review.workloads import read, rounds
from tests.lab.labs import PREFIX, LabFactory
from tests.lab.review_project import ReviewProject

BERKELIUM = Path(sys.executable).with_name("berkelium")
SPARE_CLASS = {"name": "spare", "selector": 'device.driver == "gpu.nvidia.com" && false'}
IDLE_JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: idle, namespace: my-project}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: example.com/work:1
          command: [sleep, infinity]
          resources:
            requests: {cpu: "1", memory: 1Gi}
            limits: {cpu: "1", memory: 1Gi, nvidia.com/gpu: "1"}
"""
NEW_TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: only-in-the-chart, namespace: {{ .Release.Namespace }}}
data: {key: value}
"""


def shown(changes: list[ObjectChange]) -> dict[str, list[Difference]]:
    """The changed objects by kind and name, each with its differences."""
    return {f"{change.kind} {change.name}": change.differences for change in changes}


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> ReviewProject:
    """A repository whose work tree differs from its commit in five ways, none of them committed."""
    project = ReviewProject(tmp_path_factory.mktemp("edited"))
    (project.directory / "examples" / "idle.yaml").write_text(IDLE_JOB)
    project.configure(extraDeviceClasses=[SPARE_CLASS], policies={"no-idle-gpu": "warn"})
    project.commit("the base")
    selector = 'device.driver == "gpu.nvidia.com" && true'
    limits = {"cpu": "1", "memory": "768Mi"}
    project.configure(
        extraDeviceClasses=[{**SPARE_CLASS, "selector": selector}],
        policies={"no-idle-gpu": "deny"},
        nvidia={"resources": {"gpus": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": limits}}},
    )
    templates = project.directory / "berkelium_lab/charts/node-feature-discovery/templates"
    (templates / "only-in-the-chart.yaml").write_text(NEW_TEMPLATE)
    return project


@pytest.fixture(scope="module")
def review(edited: ReviewProject, labs: LabFactory) -> Review:
    """What the command finds in that repository, in a lab of its own."""
    before = edited.git("status", "--porcelain", "--branch"), (edited.directory / ".git/index").read_bytes()
    lab = labs.named("edited")
    command = [BERKELIUM, "preview", "--project", edited.directory, "--name", lab.name, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 3, done.stderr
    assert not lab.directory.exists()
    assert processes.belonging_to(lab.directory) == []
    after = edited.git("status", "--porcelain", "--branch"), (edited.directory / ".git/index").read_bytes()
    assert after == before
    return Review.model_validate(json.loads(done.stdout))


def test_the_engines_preview_names_each_resource_and_input_that_differs(review: Review) -> None:
    steps = {step.name: set(step.paths) for step in review.forecast.steps}
    assert steps == {
        "spare": {"spec.selectors[0].cel.expression"},
        "no-idle-gpu": {"spec.validationActions[0]"},
        "nvidia-dra-driver-gpu": {"values.kubeletPlugin.containers.gpus.resources.limits.memory"},
        "node-feature-discovery": {"description"},
    }
    assert '"device.driver == \\"gpu.nvidia.com\\" && true"' in review.forecast.text


def test_a_changed_selector_is_shown_with_old_and_new(review: Review) -> None:
    (difference,) = shown(review.objects)["DeviceClass spare"]
    assert (difference.path, difference.change) == ("spec.selectors[0].cel.expression", "changed")
    assert (difference.old, difference.new) == (SPARE_CLASS["selector"], 'device.driver == "gpu.nvidia.com" && true')


def test_a_changed_policy_mode_is_a_change_of_its_binding_alone(review: Review) -> None:
    (difference,) = shown(review.objects)["ValidatingAdmissionPolicyBinding no-idle-gpu"]
    assert (difference.path, difference.old, difference.new) == ("spec.validationActions[]", "Warn", "Deny")
    assert "ValidatingAdmissionPolicy no-idle-gpu" not in shown(review.objects)


def test_a_changed_value_is_shown_in_the_daemonsets_inside_the_release(review: Review) -> None:
    changed = [change for change in review.objects if change.kind == "DaemonSet"]
    assert {change.release for change in changed} == {"nvidia-dra-driver-gpu"}
    assert [change.differences for change in changed] == [
        [
            Difference(
                path="spec.template.spec.containers[gpus].resources.limits.memory",
                change="changed",
                old="512Mi",
                new="768Mi",
            )
        ]
    ] * 2


def test_a_change_inside_a_release_is_shown_although_the_engine_sees_a_digest_only(review: Review) -> None:
    (change,) = [change for change in review.objects if change.kind == "ConfigMap"]
    assert (change.change, change.name) == ("added", "only-in-the-chart")
    assert change.release == "node-feature-discovery"
    assert change.manifest
    assert change.manifest["data"] == {"key": "value"}


def test_nothing_else_is_shown(review: Review) -> None:
    assert sorted(shown(review.objects)) == [
        "ConfigMap only-in-the-chart",
        "DaemonSet nvidia-dra-driver-gpu-kubelet-plugin",
        "DaemonSet nvidia-dra-driver-gpu-kubelet-plugin-whole-gpu",
        "DeviceClass spare",
        "ValidatingAdmissionPolicyBinding no-idle-gpu",
    ]
    assert review.pools == []
    assert review.compared.objects > 200
    assert review.compared.devices > 1000


def test_a_workload_that_was_warned_of_is_newly_refused(review: Review) -> None:
    (change,) = review.workloads
    assert (change.pod, change.verdict) == ("Job idle", "newly refused")
    assert change.before
    assert change.after
    assert change.before.state == "admitted"
    assert any("no-idle-gpu" in warning for warning in change.before.warnings)
    assert "no-idle-gpu" in change.after.message


def test_the_terminal_and_the_comment_say_all_of_it(review: Review) -> None:
    for rendered in (text.render(review), markdown.render(review)):
        assert "newly refused" in rendered
        assert "only-in-the-chart" in rendered
        assert "768Mi" in rendered


@pytest.fixture(scope="module")
def bench(labs: LabFactory) -> Bench:
    """A lab for several states one after the other."""
    return Bench(labs.up("review"), lambda _: None)


@pytest.fixture(scope="module")
def unchanged_and_without_mig_on_h200(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> tuple[Review, Review]:
    """A review of the tree as it is, and one of the tree with DynamicMIG off for the H200."""
    project = ReviewProject(tmp_path_factory.mktemp("gate"))
    tree = trees.prepare(project.directory, "lab", bench.context, None)
    blank = Review(base="", base_name="", head="", stack="lab")
    tried = rounds(read(project.directory), read(project.directory))
    old = bench.state(tree, tried)
    unchanged = bench.forecast(tree)
    again = bench.state(tree, tried)
    project.configure(nvidia={"dynamicMigModels": ["b300", "h100", "a100"]})
    without = bench.state(tree, tried)
    return (
        blank.model_copy(update={**compared(old, again), "forecast": unchanged}),
        blank.model_copy(update=compared(again, without)),
    )


def test_a_review_of_an_unchanged_tree_is_empty(unchanged_and_without_mig_on_h200: tuple[Review, Review]) -> None:
    review, _ = unchanged_and_without_mig_on_h200
    assert (review.objects, review.pools, review.workloads, review.forecast.steps) == ([], [], [], [])
    assert not review.changed
    assert review.compared.workloads >= 12


def test_without_dynamic_mig_a_models_partitions_vanish_and_its_documented_pod_finds_no_place(
    unchanged_and_without_mig_on_h200: tuple[Review, Review],
) -> None:
    _, review = unchanged_and_without_mig_on_h200
    assert [pool.node for pool in review.pools] == ["h200-1", "h200-2"]
    for pool in review.pools:
        # NVIDIA's placements of each profile on 8 GPUs; the whole GPUs stay.
        assert pool.lost_sorts == {
            "NVIDIA H200 NVL 1g.18gb": 56,
            "NVIDIA H200 NVL 1g.18gb+me": 56,
            "NVIDIA H200 NVL 1g.35gb": 32,
            "NVIDIA H200 NVL 2g.35gb": 24,
            "NVIDIA H200 NVL 3g.71gb": 16,
            "NVIDIA H200 NVL 4g.71gb": 8,
            "NVIDIA H200 NVL 7g.141gb": 8,
        }
        assert (pool.gained, pool.left) == ([], 8)
    assert [(change.pod, change.verdict) for change in review.workloads] == [
        ("mig-inference-pod", "newly unschedulable")
    ]
    labels = shown(review.objects)["Node h200-1"]
    assert [(each.path, each.old, each.new) for each in labels] == [
        ('metadata.labels["berkelium.io/dynamic-mig"]', "true", "false")
    ]
    plugins = shown(review.objects)["Pods of DaemonSet nvidia-dra-driver-gpu-kubelet-plugin-whole-gpu"]
    assert [(each.change, each.new) for each in plugins] == [("added", "h200-1"), ("added", "h200-2")]


def test_ctrl_c_leaves_neither_a_lab_nor_a_process_nor_a_trace_in_the_repository(
    edited: ReviewProject, labs: LabFactory
) -> None:
    lab = labs.named("interrupted")
    before = edited.git("worktree", "list"), edited.git("status", "--porcelain")
    command = [BERKELIUM, "preview", "--project", edited.directory, "--name", lab.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if "created DeviceClass" in line:
                os.kill(process.pid, signal.SIGINT)
                break
        said = process.stderr.read()
        assert process.stdout
        assert process.stdout.read() == ""
    assert process.returncode == 130, said
    assert said.rstrip().endswith("Interrupted.")
    assert not lab.directory.exists()
    assert processes.belonging_to(lab.directory) == []
    assert (edited.git("worktree", "list"), edited.git("status", "--porcelain")) == before


def test_a_lab_that_exists_is_not_taken(bench: Bench, edited: ReviewProject) -> None:
    (name,) = [name for name in labs() if name == f"{PREFIX}{os.getpid()}-review"]
    assert bench.context == f"lab-{name}"
    command = [BERKELIUM, "preview", "--project", edited.directory, "--name", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"there is a lab '{name}' already" in done.stderr
    assert Lab(name).status().running
