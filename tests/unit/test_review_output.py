"""How a review is shown: the summary first, all of it where there is room, never more than a comment holds."""

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from berkelium_cli.preview import preview
from berkelium_infra.errors import UserError
from berkelium_lab.api import Object
from berkelium_lab.review import bench, markdown, session, text, trees, workloads
from berkelium_lab.review.bench import Bench
from berkelium_lab.review.errors import ReviewError
from berkelium_lab.review.model import (
    Compared,
    Difference,
    Failure,
    Forecast,
    ObjectChange,
    Outcome,
    PoolChange,
    Review,
    Step,
    WorkloadChange,
)
from berkelium_lab.review.settling import rolled_out
from berkelium_lab.review.workloads import Manifest

EMPTY = Review(base="0123456789 (base)", base_name="merge base with main", head="abc (head)", stack="lab")


def changed(name: str, old: Any = "1", new: Any = "2", kind: str = "Node") -> ObjectChange:
    """A changed object."""
    differences = [Difference(path="spec.field", change="changed", old=old, new=new)]
    return ObjectChange(
        change="changed", api_version="v1", kind=kind, namespace=None, name=name, differences=differences
    )


def outcome(state: Any, **given: Any) -> Outcome:
    """An outcome of the pod `pod`."""
    return Outcome(manifest="examples/pod.yaml", pod="pod", state=state, **given)


FULL = EMPTY.model_copy(
    update={
        "forecast": Forecast(
            counts={"update": 1, "same": 9},
            steps=[Step(operation="update", type="kubernetes:core/v1:Node", name="n", paths={"spec.field": "update"})],
            text="Previewing (lab):\n    ~ kubernetes:core/v1:Node: (update)\n        [urn=urn:x]\n      ~ spec: {}",
        ),
        "objects": [changed("a"), changed("b"), changed("c", new="3")],
        "pools": [
            PoolChange(
                driver="gpu.nvidia.com",
                pool="h200-1",
                node="h200-1",
                lost=["x", "y"],
                lost_sorts={"H200 1g": 2},
                left=1,
            )
        ],
        "workloads": [
            WorkloadChange(
                manifest="examples/pod.yaml",
                pod="pod",
                verdict="newly refused",
                before=outcome("runs", devices={"H200": 1}, routes=["claim nvidia-h200"]),
                after=outcome("refused", message="no | `such` thing, @somebody"),
            )
        ],
        "compared": Compared(objects=300, devices=1000, workloads=12),
    }
)


def test_the_summary_says_what_matters_before_anything_is_unfolded() -> None:
    summary, _, folded = markdown.render(FULL).partition("<details>")
    assert summary.startswith("### berkelium preview: 3 objects change, 2 devices vanish, 1 workload no longer runs\n")
    assert "1 update, 9 unchanged" in summary
    assert "before: `runs with 1 × H200 by claim nvidia-h200`" in summary
    assert "~ kubernetes:core/v1:Node: (update)" in folded
    assert "[urn=" not in folded


def test_objects_that_change_alike_are_shown_once() -> None:
    rendered = markdown.render(FULL)
    assert "Node a, b**" in rendered
    assert rendered.count("- 1\n+ 2") == 1
    assert "Node a, b" in text.render(FULL)


def test_a_message_with_signs_of_markdown_stays_a_message() -> None:
    assert "`` refused: no | `such` thing, @somebody ``" in markdown.render(FULL)
    noted = EMPTY.model_copy(update={"notes": ["<img src=x> @somebody *bold*"]})
    assert r"&lt;img src=x&gt; &#64;somebody \*bold\*" in markdown.render(noted)


def test_a_value_with_a_fence_does_not_end_the_fence() -> None:
    review = EMPTY.model_copy(update={"objects": [changed("a", new="```\n</details>\n```")]})
    assert "````diff\n" in markdown.render(review)


def test_of_a_text_of_many_lines_those_that_differ_are_shown() -> None:
    lines = [f"line {number}" for number in range(50)]
    other = [*lines[:25], "another", *lines[26:]]
    review = EMPTY.model_copy(update={"objects": [changed("a", "\n".join(lines), "\n".join(other))]})
    rendered = markdown.render(review)
    assert "- line 25\n+ another\n" in rendered
    assert "line 3\n" not in rendered


@pytest.mark.parametrize("count", [1, 700, 20_000])
def test_a_comment_holds_any_review_cut_between_objects(count: int) -> None:
    long = "x" * 150
    objects = [changed(f"object-{number}", f"{long}{number}", kind=f"Kind{number}") for number in range(count)]
    broken = [
        WorkloadChange(manifest=f"m{n}", pod=f"p{n}", verdict="newly refused", before=None, after=outcome("refused"))
        for n in range(count)
    ]
    forecast = FULL.forecast.model_copy(update={"text": "    ~ a:b/c:D: (update)\n      ~ x: 1\n" * count})
    review = FULL.model_copy(update={"objects": objects, "workloads": broken, "forecast": forecast})
    rendered = markdown.render(review)
    assert len(rendered) <= markdown.LIMIT < 65_536
    assert rendered.count("```") % 2 == 0
    assert rendered.count("<details>") == rendered.count("</details>")
    assert re.search(r"_\d+ more not shown: a comment is too short", rendered) if count > 1 else "more" not in rendered


def test_a_failure_is_shown_with_what_was_being_done_and_why() -> None:
    failure = Failure(stage="preview the change", message="up failed:\n  spec.selectors: undefined field")
    for rendered in (
        markdown.render(EMPTY.model_copy(update={"failure": failure})),
        text.render(EMPTY.model_copy(update={"failure": failure})),
    ):
        assert "could not preview the change" in rendered
        assert "  spec.selectors: undefined field" in rendered


@pytest.mark.parametrize(
    ("review", "code"),
    [(EMPTY, 0), (FULL, 3), (FULL.model_copy(update={"failure": Failure(stage="apply", message="no")}), 1)],
    ids=["no changes", "changes", "failure"],
)
@pytest.mark.parametrize("style", [[], ["--markdown"], ["--json"]])
def test_the_exit_code_tells_none_changes_and_failure_apart(
    review: Review, code: int, style: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "review", lambda question, report: review)  # noqa: ARG005
    result = CliRunner().invoke(preview, style)
    assert result.exit_code == code
    if style == ["--json"]:
        assert Review.model_validate(json.loads(result.stdout)) == review


def test_every_command_of_the_guide_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[session.Question] = []
    monkeypatch.setattr(session, "review", lambda question, report: asked.append(question) or EMPTY)  # noqa: ARG005
    guide = (Path(__file__).resolve().parents[2] / "docs/reviewers.md").read_text()
    commands = re.findall(r"^    berkelium preview(.*)$", guide, re.MULTILINE)
    for arguments in commands:
        assert CliRunner().invoke(preview, shlex.split(arguments, comments=True)).exit_code == 0, arguments
    assert [(each.base, each.stack, each.keep) for each in asked] == [
        (None, "lab", False),
        ("v1.2.0", "lab", False),
        (None, "prod", False),
        (None, "lab", True),
    ]


def test_a_lab_whose_review_was_killed_is_taken_down_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["mine", "preview", f"preview-{os.getpid()}-abc", "preview-1-abc", "preview-x-abc", "preview-999999999-abc"]
    down: list[str] = []

    class Recorded:
        def __init__(self, name: str) -> None:
            self.name = name

        def down(self) -> None:
            down.append(self.name)

    monkeypatch.setattr(bench, "labs", lambda: names)
    monkeypatch.setattr(bench, "Lab", Recorded)
    with (
        pytest.raises(ReviewError, match="there is a lab 'mine' already"),
        bench.throw_away_lab("mine", keep=False, report=lambda _: None),
    ):
        pass
    assert down == ["preview-999999999-abc"]


def test_two_styles_at_once_are_wrong_usage() -> None:
    assert CliRunner().invoke(preview, ["--markdown", "--json"]).exit_code == 2


def test_what_the_engine_refuses_becomes_the_reviews_failure(tmp_path: Path) -> None:
    class Refusing(Bench):
        def __init__(self) -> None:
            self.states = 0

        def state(self, tree: trees.Tree, rounds: list[list[Manifest]]) -> Any:  # noqa: ARG002
            self.states += 1

        def forecast(self, tree: trees.Tree) -> Forecast:  # noqa: ARG002
            raise UserError("no such field")

    tree, refusing = trees.Tree(tmp_path, "lab"), Refusing()
    review = session.run(refusing, tree, tree, EMPTY, lambda _: None)
    assert review.failure == Failure(stage="preview the change", message="no such field")
    assert refusing.states == 1


def test_an_outcome_differs_by_what_is_given_and_not_by_words() -> None:
    one = outcome("unschedulable", message="0/13 nodes are available")
    assert workloads.changes([one], [outcome("unschedulable", message="0/14 nodes are available")]) == []
    (change,) = workloads.changes([outcome("runs", devices={"H100": 1})], [outcome("runs", devices={"H200": 1})])
    assert change.verdict == "runs differently"
    (change,) = workloads.changes([outcome("runs")], [outcome("runs", warnings=["soon refused"])])
    assert change.verdict == "other warnings"
    (change,) = workloads.changes([one], [outcome("runs")])
    assert change.verdict == "newly runs"


def test_users_manifests_are_tried_as_they_are_and_as_the_change_edits_them() -> None:
    def manifest(name: str, image: str) -> Manifest:
        pod: Object = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"image": image}]}}
        return Manifest(name, (pod,))

    before = {"kept": manifest("kept", "1"), "edited": manifest("edited", "1"), "dropped": manifest("dropped", "1")}
    after = {"kept": manifest("kept", "1"), "edited": manifest("edited", "2"), "new": manifest("new", "1")}
    first, second = workloads.rounds(before, after)
    assert [each.name for each in first] == ["kept", "edited", "dropped"]
    assert [each.name for each in second] == ["edited (as edited)", "new"]
    assert workloads.rounds(before, before) == [first]


def daemon_set(generation: int = 1, **status: int) -> Object:
    """A DaemonSet with that status."""
    return {"kind": "DaemonSet", "metadata": {"generation": generation}, "status": status}


def test_a_rollout_is_complete_when_every_pod_is_of_the_newest_template_and_ready() -> None:
    counts = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 2}
    assert rolled_out(daemon_set(1, observedGeneration=1, **counts))
    assert not rolled_out(daemon_set(2, observedGeneration=1, **counts))
    assert not rolled_out(daemon_set(1, observedGeneration=1, **{**counts, "updatedNumberScheduled": 1}))
    assert not rolled_out(daemon_set(1, observedGeneration=1, **{**counts, "numberReady": 1}))
    assert rolled_out(daemon_set(1, observedGeneration=1, desiredNumberScheduled=0))


@pytest.fixture
def prod(tmp_path: Path) -> Path:
    """A tree with a stack of a real cluster, secrets included."""
    (tmp_path / "Pulumi.yaml").write_text("name: berkelium-infra\n")
    (tmp_path / "Pulumi.prod.yaml").write_text(
        "encryptionsalt: v1:salt\n"
        "config:\n"
        "  berkelium-infra:context: berkelium-prod\n"
        "  berkelium-infra:clusterIdentifier: berkelium-prod\n"
        "  berkelium-infra:charts: {nvidia: {source: 'oci://mirror.example/charts', version: 25.12.0}}\n"
        "  berkelium-infra:registries:\n"
        "    - {host: registry.example, password: {secure: v1:AAABBBCCC}}\n"
    )
    return tmp_path


def test_another_stack_gets_the_labs_connection_and_charts_and_keeps_its_identifier(prod: Path) -> None:
    tree = trees.prepare(prod, "prod", "lab-x", None)
    assert tree.overrides == {
        "context": "lab-x",
        "charts": {"source": "berkelium_lab/charts", "nvidia": {"source": "berkelium_lab/charts"}},
    }
    assert trees.prepare(prod, "prod", "lab-x", "official").overrides == {"context": "lab-x"}
    assert trees.adjustments("prod", None) == [
        "stack prod: the connection is the lab's; secrets are placeholders; the charts are the lab's stand-ins"
    ]
    assert trees.adjustments("lab", None) == []


def test_secrets_of_another_stack_are_placeholders_that_change_with_them(prod: Path) -> None:
    tree = trees.prepare(prod, "prod", "lab-x", None)
    ((path, placeholder),) = tree.secrets.items()
    assert path == "berkelium-infra:registries[0].password"
    written = (prod / "Pulumi.prod.yaml").read_text()
    assert "AAABBBCCC" not in written + placeholder
    assert "encryptionsalt" not in written
    (prod / "Pulumi.prod.yaml").write_text(written.replace(placeholder, "{secure: v1:DDD}"))
    assert trees.prepare(prod, "prod", "lab-x", None).secrets[path] != placeholder


def test_a_stack_that_is_not_there_is_named_with_those_that_are(prod: Path, tmp_path: Path) -> None:
    with pytest.raises(ReviewError, match=r"Pulumi.staging.yaml; known stacks: prod"):
        trees.copy(prod, tmp_path / "copy", "staging")
