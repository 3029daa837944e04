"""The command line of `berkelium check`, as far as it needs no lab."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from berkelium_cli.main import cli

LIMITS_ONLY = """\
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template:
    spec:
      containers:
      - name: main
        resources:
          limits: {cpu: 1, memory: 1Gi}
"""
DEAD = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: dead, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: none}}]
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A manifest that can be mended."""
    file = tmp_path / "job.yaml"
    file.write_text(LIMITS_ONLY)
    return file


def run(*arguments: object, given: str | None = None) -> Result:
    """`berkelium check` with these arguments."""
    return CliRunner().invoke(cli, ["check", *map(str, arguments)], input=given)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--write"], "--write goes with --fix"),
        (["--name", "a", "--context", "b"], "give one of the two"),
        (["--crd", "f.yaml", "--context", "b"], "--context never does"),
        (["--fleet", "upstream", "--name", "a"], "the command's own lab"),
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: list[str], words: str, job: Path) -> None:
    result = run(job, *arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_a_file_that_does_not_exist_is_a_check_that_could_not_work(tmp_path: Path) -> None:
    result = run(tmp_path / "absent.yaml")
    assert (result.exit_code, "there is no such file" in result.output) == (2, True)


def test_a_lab_that_does_not_run_is_a_check_that_could_not_work(job: Path) -> None:
    result = run(job, "--name", "no-such-lab")
    assert (result.exit_code, "berkelium lab up" in result.output) == (2, True)


def test_a_cluster_out_of_reach_is_a_check_that_could_not_work(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kubeconfig").write_text(DEAD)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    result = run(job, "--context", "dead")
    assert (result.exit_code, "cannot be reached" in result.output) == (2, True)
    assert isinstance(result.exception, SystemExit)


def test_no_lab_is_started_when_there_is_nothing_to_ask() -> None:
    result = run("-", given="# nothing\n")
    assert (result.exit_code, "starting a lab" in result.output) == (0, False)
    assert "the file holds no object" in result.output


def test_fix_prints_the_manifest_and_leaves_the_file(job: Path) -> None:
    result = run("--fix", job)
    assert result.exit_code == 0
    assert result.stdout == LIMITS_ONLY.replace(
        "          limits:", "          requests:\n            cpu: 1\n            memory: 1Gi\n          limits:"
    )
    assert "main requests the cpu and memory of its limits" in result.stderr
    assert job.read_text() == LIMITS_ONLY


def test_fix_and_write_changes_the_file_and_prints_nothing_but_what_was_done(job: Path) -> None:
    result = run("--fix", "--write", job)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "requests:" in job.read_text()
    assert run("--fix", "--write", job).stderr == ""


def test_fix_reads_standard_input() -> None:
    assert "requests:" in run("--fix", "-", given=LIMITS_ONLY).stdout
