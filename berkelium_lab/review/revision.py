"""The revision that a change is compared with. Only reads the repository: no work tree, index or branch is touched."""

import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from berkelium_lab.review.errors import ReviewError

_MAIN_BRANCHES = ("origin/HEAD", "origin/main", "main", "origin/master", "master")
_PROGRAM = ("Pulumi.yaml", "__main__.py")


@dataclass(frozen=True)
class Revision:
    """A commit. `name` is how it was asked for."""

    commit: str
    subject: str
    name: str

    def __str__(self) -> str:
        return f"{self.commit[:10]} ({self.subject})"


class Repository:
    """The git repository that holds the project directory `project`, which may be a part of it.

    Raises `ReviewError` when there is none, or no git, or no commit.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        inside = self._git("rev-parse", "--is-inside-work-tree")
        if inside.returncode != 0 or inside.stdout.strip() != "true":
            reason = _reason(inside)
            raise ReviewError(f"{project} is in no git repository, so there is no revision to compare with ({reason})")
        if self._git("rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
            raise ReviewError(f"the repository of {project} has no commit yet, so there is nothing to compare with")

    def base(self, name: str | None) -> Revision:
        """The revision `name`, by default where this branch left the main branch. Raises `ReviewError`."""
        if name is None:
            return self._merge_base()
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if found.returncode != 0:
            raise ReviewError(f"git knows no revision {name!r} here{self._shallow_hint()}")
        return self._revision(found.stdout.strip(), name)

    def head(self) -> Revision:
        """The commit that is checked out."""
        return self._revision(self._git("rev-parse", "HEAD").stdout.strip(), "HEAD")

    def dirty(self) -> bool:
        """Whether the project has changes that are in no commit, new files included."""
        return bool(self._git("status", "--porcelain", "--", ".").stdout.strip())

    def require_program(self, revision: Revision, stack: str) -> None:
        """Raise `ReviewError` unless the revision has the program and the stack's file."""
        for file in (*_PROGRAM, f"Pulumi.{stack}.yaml"):
            if self._git("cat-file", "-e", f"{revision.commit}:./{file}").returncode != 0:
                raise ReviewError(
                    f"revision {revision} has no {file}, so it cannot be applied and compared with; "
                    "name one that has it with --base"
                )

    def extract(self, revision: Revision, to: Path) -> None:
        """Write the project's files of that revision into the directory `to`. Raises `ReviewError`."""
        to.mkdir(parents=True, exist_ok=True)
        command = ["git", "-C", str(self._project), "archive", "--format=tar", revision.commit]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
        ) as process:
            assert process.stdout is not None
            try:
                with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                    archive.extractall(to, filter="data")
            except tarfile.TarError as error:
                raise ReviewError(f"the files of revision {revision} cannot be read: {error}") from None
        if process.returncode != 0:
            raise ReviewError(f"git archive of revision {revision} failed")

    def _merge_base(self) -> Revision:
        main = next((name for name in _MAIN_BRANCHES if self._commit(name)), None)
        if main is None:
            raise ReviewError("there is no branch main, here or in origin; name the revision to compare with by --base")
        found = self._git("merge-base", "HEAD", main)
        if found.returncode != 0:
            raise ReviewError(f"this branch and {main} have no common ancestor here{self._shallow_hint()}")
        return self._revision(found.stdout.split()[0], f"merge base with {main}")

    def _commit(self, name: str) -> bool:
        return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").returncode == 0

    def _revision(self, commit: str, name: str) -> Revision:
        return Revision(commit, self._git("log", "-1", "--format=%s", commit).stdout.strip(), name)

    def _shallow_hint(self) -> str:
        if self._git("rev-parse", "--is-shallow-repository").stdout.strip() != "true":
            return "; name one that `git log` shows with --base"
        return (
            ". This clone is shallow: fetch more of its history with `git fetch --unshallow` "
            "(in GitHub Actions `fetch-depth: 0` for actions/checkout), or name a revision that it has with --base"
        )

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(self._project), *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
        except FileNotFoundError:
            raise ReviewError("git is not installed; without it there is no revision to compare with") from None


def _environment() -> dict[str, str]:
    # Set by hooks and by `git rebase --exec`, these would point git to another repository than the project's.
    foreign = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    # Without optional locks `git status` does not write the index back.
    return kept | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


def _reason(failed: subprocess.CompletedProcess[str]) -> str:
    lines = failed.stderr.strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else "it is a bare repository or inside .git"
