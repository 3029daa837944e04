"""The workflows: pinned actions, no more rights than needed, and no secret near a pull request's code."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from berkelium_lab.toolchain import layout, table

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github/actions").glob("*/action.yml"))
PULL_REQUEST_CODE = ("ci.yml", "preview.yml")


def load(path: Path) -> dict[str, Any]:
    """A workflow; YAML 1.1 reads its key `on` as true."""
    content = yaml.safe_load(path.read_text())
    return {("on" if key is True else key): value for key, value in content.items()}


def steps(path: Path) -> list[dict[str, Any]]:
    """All steps of a workflow or action."""
    content = load(path)
    if "runs" in content:
        return content["runs"]["steps"]
    return [step for job in content["jobs"].values() for step in job["steps"]]


def test_there_are_the_four_workflows() -> None:
    assert [path.name for path in FILES] == ["ci.yml", "deploy.yml", "preview-comment.yml", "preview.yml"]


@pytest.mark.parametrize("path", [*FILES, *ACTIONS], ids=lambda path: path.name)
def test_an_action_of_others_is_pinned_to_a_commit_with_its_version_beside_it(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text())
    for action in used:
        if action.startswith("./"):
            assert (ROOT / action / "action.yml").is_file()
        else:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_the_same_action_is_pinned_to_the_same_commit_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for path in (*FILES, *ACTIONS):
        for name, pin in re.findall(r"uses: ([\w-]+/[\w-]+)@(.+)", path.read_text()):
            pins.setdefault(name, set()).add(pin)
    assert {name for name, found in pins.items() if len(found) > 1} == set()


@pytest.mark.parametrize("name", PULL_REQUEST_CODE)
def test_code_of_a_pull_request_gets_a_token_that_reads_and_no_secret(name: str) -> None:
    path = ROOT / ".github/workflows" / name
    content = load(path)
    assert "pull_request" in content["on"]
    assert content["permissions"] == {"contents": "read"}
    assert not any("permissions" in job or "environment" in job for job in content["jobs"].values())
    assert "secrets." not in path.read_text()


def test_no_workflow_runs_a_pull_requests_code_with_the_rights_of_the_base() -> None:
    for path in FILES:
        assert "pull_request_target" not in load(path)["on"]


def test_who_may_comment_runs_the_default_branchs_code_and_keeps_the_artifact_out_of_the_checkout() -> None:
    content = load(ROOT / ".github/workflows/preview-comment.yml")
    assert content["on"] == {"workflow_run": {"workflows": ["Preview"], "types": ["completed"]}}
    assert load(ROOT / ".github/workflows/preview.yml")["name"] == "Preview"
    assert content["permissions"] == {}
    (job,) = content["jobs"].values()
    assert job["permissions"] == {"actions": "read", "contents": "read", "pull-requests": "write"}
    checkout, download, *_ = job["steps"]
    assert "ref" not in checkout["with"]
    assert download["with"]["path"].startswith("${{ runner.temp }}/")


def test_only_the_comment_may_be_written() -> None:
    writing = [path.name for path in FILES if re.search(r":\s*write\b", path.read_text())]
    assert writing == ["preview-comment.yml"]


@pytest.mark.parametrize("path", [*FILES, *ACTIONS], ids=lambda path: path.name)
def test_no_script_has_an_expression_in_its_text_and_every_script_is_there(path: Path) -> None:
    for step in steps(path):
        command = step.get("run")
        if command is None:
            continue
        assert "${{" not in command
        program = ROOT / command.split()[0]
        assert command == "make tools" or os.access(program, os.X_OK), command


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_checkout_leaves_no_credentials_behind(path: Path) -> None:
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_job_ends_in_time_and_runs_of_the_same_thing_do_not_meet(path: Path) -> None:
    content = load(path)
    assert content["concurrency"]["group"]
    assert all(job["timeout-minutes"] <= 90 for job in content["jobs"].values())


def test_an_up_waits_for_the_preview_and_for_the_approval_of_its_environment() -> None:
    content = load(ROOT / ".github/workflows/deploy.yml")
    assert content["jobs"]["up"]["needs"] == "preview"
    environments = {name: job["environment"] for name, job in content["jobs"].items()}
    assert environments["preview"] == f"{environments['up']}-preview"
    assert content["concurrency"]["cancel-in-progress"] is False


def test_a_real_cluster_is_deployed_to_by_the_engine_that_the_laboratory_tries() -> None:
    (pulumi,) = [tool for tool in table.ALL if tool.name == "pulumi"]
    versions = re.findall(r"pulumi-version: (\S+)", (ROOT / ".github/workflows/deploy.yml").read_text())
    assert versions == [layout.Layout().version(pulumi)] * 2


def test_a_deployment_restores_no_cache() -> None:
    text = (ROOT / ".github/workflows/deploy.yml").read_text()
    assert "cache" not in text
    assert "actions/laboratory" not in text
