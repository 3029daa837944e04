"""The scripts of the workflows, run against a stand-in for GitHub's API and for the command."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SHA = "a" * 40
MARKER = "<!-- berkelium preview -->"


class GitHub(ThreadingHTTPServer):
    """As much of GitHub's API as a comment takes, for the repository owner/name."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pulls: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.refuse = 0
        self.seen: list[tuple[str, str]] = []
        self.tokens: set[str | None] = set()

    @property
    def url(self) -> str:
        """The API's address."""
        return f"http://127.0.0.1:{self.server_port}"

    def pull(self, number: int, repository: str = "owner/name", sha: str = SHA, branch: str = "topic") -> None:
        """Open a pull request."""
        head = {"sha": sha, "ref": branch, "repo": {"full_name": repository}, "label": f"{repository}:{branch}"}
        self.pulls.append({"number": number, "head": head})

    def comment(self, text: str, kind: str = "Bot") -> None:
        """A comment that is there already."""
        self.comments.append({"id": len(self.comments) + 1, "body": text, "user": {"type": kind}})


class Handler(BaseHTTPRequestHandler):
    def log_request(self, code: object = "-", size: object = "-") -> None:  # noqa: ARG002
        return

    def answer(self, body: object, status: int = 200) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def handle_any(self) -> None:
        github, parts = self.server, urlsplit(self.path)
        assert isinstance(github, GitHub)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = parts.path.removeprefix("/repos/owner/name")
        github.seen.append((self.command, path))
        github.tokens.add(self.headers.get("Authorization"))
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if github.refuse:
            self.answer({"message": "refused"}, github.refuse)
        elif (self.command, path) == ("GET", "/pulls"):
            wanted = query["head"].split(":")
            self.answer(
                [
                    p
                    for p in github.pulls
                    if p["head"]["label"].split("/")[0] == wanted[0] and p["head"]["ref"] == wanted[1]
                ]
            )
        elif self.command == "GET" and path.endswith("/comments"):
            size, page = int(query["per_page"]), int(query["page"])
            self.answer(github.comments[size * (page - 1) : size * page])
        elif self.command == "POST" and path.endswith("/comments"):
            github.comment(sent["body"])
            self.answer(github.comments[-1], 201)
        elif self.command == "PATCH":
            (comment,) = [c for c in github.comments if c["id"] == int(path.rpartition("/")[2])]
            comment["body"] = sent["body"]
            self.answer(comment)
        else:
            self.answer({"message": "Not Found"}, 404)

    do_GET = do_POST = do_PATCH = handle_any


@pytest.fixture
def github() -> Iterator[GitHub]:
    """A GitHub that runs."""
    with GitHub() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def comment_on(github: GitHub, file: Path, repository: str = "owner/name") -> subprocess.CompletedProcess[str]:
    """Run the script as the workflow does."""
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": "owner/name",
        "GITHUB_TOKEN": "the-token",
        "HEAD_REPOSITORY": repository,
        "HEAD_BRANCH": "topic",
        "HEAD_SHA": SHA,
        "RUN_URL": "https://github.example/run/1",
    }
    command = [SCRIPTS / "comment-on-pull-request", file]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """What a run has found."""
    path = tmp_path / "comment.md"
    path.write_text("### berkelium preview: no changes\n")
    return path


def test_the_first_run_makes_a_comment_that_says_where_it_comes_from(github: GitHub, file: Path) -> None:
    github.pull(7)
    done = comment_on(github, file)
    assert (done.returncode, done.stdout) == (0, "Commented on pull request 7.\n"), done.stderr
    (comment,) = github.comments
    assert comment["body"].startswith(f"{MARKER}\nMade by [this run](https://github.example/run/1)")
    assert comment["body"].endswith("### berkelium preview: no changes\n")
    assert github.tokens == {"Bearer the-token"}


def test_a_later_run_updates_it_however_many_comments_there_are(github: GitHub, file: Path) -> None:
    github.pull(7)
    for number in range(150):
        github.comment(f"comment {number}", kind="User")
    github.comment(f"{MARKER}\nold")
    done = comment_on(github, file)
    assert done.stdout == "Updated the comment on pull request 7.\n", done.stderr
    assert len(github.comments) == 151
    assert "no changes" in github.comments[-1]["body"]


def test_somebody_elses_comment_with_the_same_beginning_is_left_alone(github: GitHub, file: Path) -> None:
    github.pull(7)
    github.comment(f"{MARKER}\nmine", kind="User")
    comment_on(github, file)
    assert [comment["body"].splitlines()[1][:4] for comment in github.comments] == ["mine", "Made"]


def test_a_fork_with_a_branch_of_the_same_name_is_told_apart(github: GitHub, file: Path) -> None:
    github.pull(7)
    github.pull(8, repository="fork/name")
    assert comment_on(github, file, repository="fork/name").stdout == "Commented on pull request 8.\n"


def test_nothing_is_posted_when_the_head_has_moved_on(github: GitHub, file: Path) -> None:
    github.pull(7, sha="b" * 40)
    done = comment_on(github, file)
    assert done.returncode == 0
    assert "nothing to comment on" in done.stdout
    assert github.seen == [("GET", "/pulls")]


def test_a_text_of_any_length_fits_and_mentions_nobody(github: GitHub, file: Path) -> None:
    github.pull(7)
    file.write_text("see image@sha256:1 and @somebody " + "x" * 100_000)
    assert comment_on(github, file).returncode == 0
    text = github.comments[0]["body"]
    assert len(text) == 65_536
    assert "@somebody" not in text
    assert "image@sha256:1" in text


def test_a_refusal_is_one_line(github: GitHub, file: Path) -> None:
    github.refuse = 403
    done = comment_on(github, file)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [done.stderr.strip()]
    assert "GitHub refused" in done.stderr
    assert "403" in done.stderr
    assert "the-token" not in done.stderr


def review(tmp_path: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the review with a command in place of `berkelium`."""
    stand_in = tmp_path / "berkelium"
    stand_in.write_text(f'#!/usr/bin/env bash\necho "$@" >>{tmp_path}/arguments\n{command}\n')
    stand_in.chmod(0o755)
    environment = {**os.environ, "BERKELIUM": str(stand_in), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    script = [SCRIPTS / "preview-pull-request", "HEAD^1", tmp_path / "review"]
    return subprocess.run(script, env=environment, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(("code", "result"), [(0, 0), (3, 0), (1, 1), (130, 1)])
def test_a_review_succeeds_with_and_without_changes_and_fails_when_it_could_not_be_made(
    tmp_path: Path, code: int, result: int
) -> None:
    done = review(tmp_path, f"echo '### found'; exit {code}")
    assert done.returncode == result
    assert (tmp_path / "arguments").read_text() == "preview --base HEAD^1 --markdown\n"
    assert (tmp_path / "review" / "comment.md").read_text() == "### found\n"
    assert (tmp_path / "summary").read_text() == "### found\n"


def test_a_review_that_said_nothing_leaves_a_comment_that_says_so(tmp_path: Path) -> None:
    done = review(tmp_path, "echo 'Error: no Go' >&2; exit 1")
    assert done.returncode == 1
    assert "ended with exit code 1" in (tmp_path / "review" / "comment.md").read_text()


def prepare(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script before a deployment in a directory of its own, with a Python that makes an empty .venv."""
    python = tmp_path / "python"
    python.write_text(
        "#!/usr/bin/env bash\nmkdir -p .venv/bin\n"
        'printf "#!/usr/bin/env bash\\necho \\"\\$@\\" >pip\\n" >.venv/bin/python\nchmod +x .venv/bin/python\n'
    )
    python.chmod(0o755)
    given = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path), "GITHUB_ENV": str(tmp_path / "env")}
    return subprocess.run(
        [SCRIPTS / "prepare-deployment"],
        cwd=tmp_path,
        env={**given, "PYTHON": str(python), **environment},
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_the_kubeconfig_is_written_for_its_owner_alone_and_named_to_later_steps(tmp_path: Path) -> None:
    done = prepare(tmp_path, KUBECONFIG_CONTENTS="apiVersion: v1\nkind: Config")
    assert done.returncode == 0, done.stderr
    kubeconfig = tmp_path / "kubeconfig"
    assert kubeconfig.read_text() == "apiVersion: v1\nkind: Config\n"
    assert kubeconfig.stat().st_mode & 0o077 == 0
    assert (tmp_path / "env").read_text() == f"KUBECONFIG={kubeconfig}\n"
    assert "--require-hashes -r requirements.txt" in (tmp_path / "pip").read_text()
    assert "kind" not in done.stdout + done.stderr


def test_without_a_kubeconfig_it_says_which_secret_is_missing(tmp_path: Path) -> None:
    done = prepare(tmp_path)
    assert done.returncode != 0
    assert "the environment has no secret KUBECONFIG" in done.stderr
