"""What a person sees of the engine's work."""

import pytest

from berkelium_lab.engine import Message
from berkelium_lab.progress import Progress, readable


def resource(operation: str, state: str, kind: str = "kubernetes:core/v1:Namespace", name: str = "a") -> Message:
    return Message(kind="resource", operation=operation, state=state, type=kind, name=name)


def test_a_line_tells_each_change_and_none_what_stays() -> None:
    lines: list[str] = []
    progress = Progress("up", lines.append)
    for message in (
        resource("create", "started"),
        resource("create", "done"),
        resource("same", "done", name="b"),
        resource("create", "done", kind="berkelium:cluster:Namespaces"),
        resource("create", "failed", name="c"),
    ):
        progress(message)
    progress.summary({"create": 1, "same": 1}, 2.04)
    assert lines == ["  created Namespace a", "  failed to create Namespace c", "up: 1 created, 1 unchanged, in 2.0 s"]


def test_a_release_is_announced_since_it_takes_long() -> None:
    lines: list[str] = []
    progress = Progress("up", lines.append)
    progress(resource("create", "started", kind="kubernetes:helm.sh/v3:Release", name="r"))
    assert lines == ["  create Release r …"]


def test_a_preview_says_what_would_be_done() -> None:
    lines: list[str] = []
    Progress("preview", lines.append)(resource("delete", "done"))
    assert lines == ["  would be deleted Namespace a"]


def test_an_error_is_kept_once_with_the_name_of_its_resource() -> None:
    progress = Progress("up", lambda _: None)
    for _ in range(2):
        progress(Message(kind="error", name="r", text="cannot"))
    progress(Message(kind="error", text="an unhandled error occurred: cannot"))
    assert progress.errors == ["r: cannot"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("update failed", ""),
        (
            "python inline source runtime error: x\nTraceback (most recent call last):\n  ...\nValueError: x",
            "ValueError: x",
        ),
        ("Traceback (most recent call last):\n grpc._channel._InactiveRpcError: <...>\n", ""),
        ('resource "urn:pulumi:lab::p::a$b:c:D::name" failed', 'resource "name" failed'),
        ("a\n\n  b\n", "a\n      b"),
    ],
)
def test_an_error_is_shown_without_the_machinery(text: str, shown: str) -> None:
    assert readable(text) == shown


def test_a_very_long_error_is_shortened() -> None:
    shown = readable("\n".join(["x" * 1000] * 50))
    assert "x" * 401 not in shown
    assert shown.endswith("… and 38 more lines")


def test_a_warning_is_reported_once_and_kept() -> None:
    lines: list[str] = []
    progress = Progress("up", lines.append)
    for _ in range(2):
        progress(Message(kind="warning", text="an A100 needs a reset"))
    assert lines == ["  warning: an A100 needs a reset"]
    assert progress.warnings == ["an A100 needs a reset"]
