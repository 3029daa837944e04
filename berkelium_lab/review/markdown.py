"""A review as a comment on a pull request: what matters first, the rest folded, never longer than a comment may be."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from berkelium_lab.review import words
from berkelium_lab.review.model import Review, WorkloadChange

COMMENT_LIMIT = 65_536
"""Characters that GitHub accepts in a comment."""

LIMIT = COMMENT_LIMIT - 4_096
"""Characters of a review; the difference is left for what the workflow puts around it."""

_HEAD_LIMIT = LIMIT // 3
_LEFT_OUT = 120
"""Characters that are kept for the word on what is left out."""


def render(review: Review, limit: int = LIMIT) -> str:
    """The review in at most `limit` characters, cut between objects."""
    text = _cut(_head(review), min(_HEAD_LIMIT, limit // 2))
    for section in _sections(review):
        text += section.render(limit - len(text))
    return text


def _head(review: Review) -> Iterator[str]:
    yield f"### berkelium preview: {_plain(words.headline(review))}\n\n"
    yield f"Base {_code(review.base)}, {_plain(review.base_name)}; change {_code(review.head)}; "
    yield f"stack {_code(review.stack)}. Both were applied to a throw-away laboratory.\n\n"
    yield from (f"- {_plain(note)}\n" for note in review.notes)
    if review.failure:
        yield f"\n**Could not {_plain(review.failure.stage)}:**\n\n"
        yield _fenced(review.failure.message.splitlines(), "text")
        return
    rows = (
        ("Pulumi resources", words.steps(review)),
        ("Objects in the cluster", words.object_counts(review)),
        ("GPU devices", words.device_counts(review)),
        ("Documented workloads", words.workload_counts(review)),
    )
    yield "\n| | |\n| --- | --- |\n"
    yield from (f"| {name} | {_plain(found)} |\n" for name, found in rows)
    if review.workloads:
        yield "\n**Workloads**\n\n"
        yield from (_workload(change) for change in review.workloads)
    if review.warnings_new or review.warnings_gone:
        yield "\n**Warnings of the program**\n\n"
        yield from (f"- new: {_plain(text)}\n" for text in review.warnings_new)
        yield from (f"- gone: {_plain(text)}\n" for text in review.warnings_gone)


def _workload(change: WorkloadChange) -> str:
    sign = "❌" if change.verdict in words.WORSE else "ℹ️"
    title = f"{sign} {_code(change.pod)} ({_code(change.manifest)}): {change.verdict}"
    return f"- {title}  \n  before: {_code(words.fate(change.before))}  \n  after: {_code(words.fate(change.after))}\n"


@dataclass(frozen=True)
class _Section:
    """A folded part: blocks, of which as many are shown as there is room for, between `before` and `after`."""

    title: str
    blocks: list[str]
    before: str = ""
    after: str = ""

    def render(self, room: int) -> str:
        """The part in at most `room` characters; nothing when not even its frame fits."""
        opening = f"\n<details><summary>{html.escape(self.title)}</summary>\n\n{self.before}"
        closing = f"{self.after}\n</details>\n"
        room -= len(opening) + len(closing) + _LEFT_OUT
        if room < 0:
            return ""
        kept = list(_fitting(self.blocks, room))
        left_out = len(self.blocks) - len(kept)
        note = f"\n_{left_out} more not shown: a comment is too short. Run `berkelium preview`._\n" if left_out else ""
        return f"{opening}{''.join(kept)}{self.after}{note}\n</details>\n"


def _fitting(blocks: list[str], room: int) -> Iterator[str]:
    for block in blocks:
        room -= len(block)
        if room < 0:
            return
        yield block


def _sections(review: Review) -> Iterator[_Section]:
    if review.objects:
        groups = words.groups(review)
        blocks = [f"**{_plain(group.title)}**\n\n{_fenced(group.lines)}\n" for group in groups]
        yield _Section(f"Objects: {words.object_counts(review)}", blocks)
    if review.pools:
        pools = words.pool_groups(review)
        blocks = [f"**{_plain(title)}**\n\n{_fenced(lines)}\n" for title, lines in pools]
        yield _Section(f"Devices: {words.device_counts(review)}", blocks)
    if review.forecast.steps and review.forecast.text:
        lines = words.forecast_lines(review)
        fence = _fence("\n".join(lines))
        yield _Section("pulumi preview --diff", list(_by_resource(lines)), f"{fence}diff\n", f"{fence}\n")


def _by_resource(lines: list[str]) -> Iterator[str]:
    """The engine's text cut where a resource begins, so that none is shown in half."""
    block: list[str] = []
    for line in lines:
        if re.match(r"\s*[~+-]*\s*[\w-]+:[\w/.:-]+: \(", line) and block:
            yield "".join(f"{each}\n" for each in block)
            block = []
        block.append(line)
    yield "".join(f"{each}\n" for each in block)


def _cut(lines: Iterable[str], room: int) -> str:
    text = ""
    for line in lines:
        if len(text) + len(line) > room - _LEFT_OUT:
            return f"{text}\n_More is not shown here: a comment is too short. Run `berkelium preview`._\n"
        text += line
    return text


def _fenced(lines: Iterable[str], language: str = "diff") -> str:
    content = "\n".join(lines)
    fence = _fence(content)
    return f"{fence}{language}\n{content}\n{fence}\n"


def _fence(content: str) -> str:
    """A fence that nothing in the content ends."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    return "`" * max(3, longest + 1)


def _code(text: str) -> str:
    """Text between backticks, on one line."""
    flat = " ".join(text.split())
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {flat} {ticks}" if longest else f"`{flat}`"


def _plain(text: str) -> str:
    """Text that stands for itself: no HTML, no Markdown, no mention of anybody."""
    signs = re.sub(r"([\\`*_\[\]|~])", r"\\\1", " ".join(text.split()))
    return html.escape(signs, quote=False).replace("@", "&#64;")
