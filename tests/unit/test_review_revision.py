"""Which revision a review compares with, and that reading it leaves the repository as it is."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from berkelium_lab.review.errors import ReviewError
from berkelium_lab.review.revision import Repository

Git = Callable[..., str]
PROGRAM = {"Pulumi.yaml": "name: some\n", "__main__.py": "", "Pulumi.lab.yaml": "config: {}\n"}


def git_in(directory: Path) -> Git:
    """A function that runs git in the directory."""

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=Reviewer", "-c", "user.email=reviewer@example.com")
        command = ["git", "-C", str(directory), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    return git


def commit(directory: Path, git: Git, subject: str, **files: str) -> str:
    """Write files, by name, and commit everything; the commit's id."""
    for name, content in files.items():
        (directory / name).write_text(content)
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "--message", subject)
    return git("rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with the program on its branch main."""
    directory = tmp_path / "project"
    directory.mkdir()
    git = git_in(directory)
    git("init", "--quiet", "--initial-branch=main")
    commit(directory, git, "the program", **PROGRAM)
    return directory


def test_by_default_it_is_where_the_branch_left_main(project: Path) -> None:
    git = git_in(project)
    left = git("rev-parse", "HEAD")
    git("switch", "--quiet", "--create", "topic")
    commit(project, git, "the change")
    git("switch", "--quiet", "main")
    commit(project, git, "something else")
    git("switch", "--quiet", "topic")
    base = Repository(project).base(None)
    assert (base.commit, base.subject, base.name) == (left, "the program", "merge base with main")


def test_the_remotes_main_branch_comes_before_the_local_one(project: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", project, tmp_path / "clone"], check=True)
    clone = tmp_path / "clone"
    git = git_in(clone)
    upstream = git("rev-parse", "HEAD")
    commit(clone, git, "not pushed")
    assert Repository(clone).base(None).commit == upstream


def test_a_revision_is_taken_by_any_name_that_git_knows(project: Path) -> None:
    git = git_in(project)
    first = git("rev-parse", "HEAD")
    git("tag", "v1")
    commit(project, git, "later")
    assert {Repository(project).base(name).commit for name in ("v1", "HEAD^", first[:8])} == {first}


@pytest.mark.parametrize("name", ["no-such-branch", "--help", "v1 v2"])
def test_an_unknown_revision_is_named(project: Path, name: str) -> None:
    with pytest.raises(ReviewError, match=f"git knows no revision '{name}' here"):
        Repository(project).base(name)


def test_outside_a_repository_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    with pytest.raises(ReviewError, match="plain is in no git repository, so there is no revision to compare with"):
        Repository(tmp_path / "plain")


def test_without_a_commit_it_says_so(tmp_path: Path) -> None:
    git_in(tmp_path)("init", "--quiet")
    with pytest.raises(ReviewError, match="has no commit yet"):
        Repository(tmp_path)


def test_without_a_main_branch_it_asks_for_a_base(project: Path) -> None:
    git_in(project)("branch", "--move", "trunk")
    with pytest.raises(ReviewError, match=r"no branch main.*name the revision to compare with by --base"):
        Repository(project).base(None)


def test_a_shallow_clone_without_the_common_ancestor_says_how_to_get_it(project: Path, tmp_path: Path) -> None:
    git = git_in(project)
    git("switch", "--quiet", "--create", "topic")
    for number in range(3):
        commit(project, git, f"change {number}")
    git("switch", "--quiet", "main")
    commit(project, git, "meanwhile")
    clone = tmp_path / "clone"
    command = ["git", "clone", "--quiet", "--depth=1", "--no-single-branch", "--branch=topic"]
    subprocess.run([*command, f"file://{project}", clone], check=True)
    for name in (None, "HEAD~2"):
        with pytest.raises(ReviewError, match=r"This clone is shallow.*git fetch --unshallow.*fetch-depth: 0"):
            Repository(clone).base(name)


def test_a_base_without_the_program_is_refused(project: Path) -> None:
    git = git_in(project)
    (project / "__main__.py").unlink()
    commit(project, git, "no program")
    repository = Repository(project)
    with pytest.raises(ReviewError, match=r"\(no program\) has no __main__.py.*--base"):
        repository.require_program(repository.base("HEAD"), "lab")
    repository.require_program(repository.base("HEAD^"), "lab")
    with pytest.raises(ReviewError, match=r"has no Pulumi.prod.yaml"):
        repository.require_program(repository.base("HEAD^"), "prod")


def test_the_files_of_the_base_are_written_out_and_the_repository_stays_as_it_is(project: Path, tmp_path: Path) -> None:
    git = git_in(project)
    script = project / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    commit(project, git, "with a script")
    (project / "Pulumi.yaml").write_text("name: edited\n")
    script.unlink()
    (project / "new").write_text("")
    git("add", "new")

    before = git("status", "--porcelain"), git("worktree", "list")
    index = project / ".git" / "index"
    written = index.stat().st_mtime_ns
    repository = Repository(project)
    assert repository.dirty()
    repository.extract(repository.base("HEAD"), tmp_path / "base")
    assert index.stat().st_mtime_ns == written
    assert (git("status", "--porcelain"), git("worktree", "list")) == before
    assert (tmp_path / "base" / "Pulumi.yaml").read_text() == "name: some\n"
    assert (tmp_path / "base" / "script").stat().st_mode & 0o111
    assert sorted(path.name for path in (tmp_path / "base").iterdir()) == sorted([*PROGRAM, "script"])


def test_a_project_in_a_part_of_the_repository_is_taken_alone(project: Path, tmp_path: Path) -> None:
    git = git_in(project)
    inner = project / "inner"
    inner.mkdir()
    commit(inner, git_in(inner), "moved", **PROGRAM)
    git("rm", "--quiet", *PROGRAM)
    commit(project, git, "only the part")
    repository = Repository(inner)
    base = repository.base("HEAD")
    repository.require_program(base, "lab")
    repository.extract(base, tmp_path / "base")
    assert sorted(path.name for path in (tmp_path / "base").iterdir()) == sorted(PROGRAM)


def test_a_git_hooks_environment_does_not_lead_to_another_repository(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git_in(other)("init", "--quiet", "--initial-branch=main")
    expected = git_in(project)("rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert Repository(project).base("main").commit == expected
