"""A review for a terminal."""

from collections.abc import Iterator

import click

from berkelium_lab.review import words
from berkelium_lab.review.model import Review

_COLOURS = {"+": "green", "-": "red", "~": "yellow"}


def render(review: Review) -> str:
    """The whole review, with colours (which `click.echo` leaves out where there is no terminal)."""
    return "\n".join(_lines(review))


def _lines(review: Review) -> Iterator[str]:
    yield click.style(f"berkelium preview: {words.headline(review)}", bold=True)
    yield f"  base       {review.base}, {review.base_name}"
    yield f"  change     {review.head}"
    yield f"  stack      {review.stack}"
    for note in review.notes:
        yield f"  note       {note}"
    if review.failure:
        yield ""
        yield click.style(f"could not {review.failure.stage}:", fg="red")
        yield f"  {review.failure.message}"
    else:
        yield f"  resources  {words.steps(review)}"
        yield f"  objects    {words.object_counts(review)}"
        yield f"  devices    {words.device_counts(review)}"
        yield f"  workloads  {words.workload_counts(review)}"
    for title, section in _sections(review):
        yield ""
        yield click.style(title, bold=True)
        yield from section


def _sections(review: Review) -> Iterator[tuple[str, Iterator[str]]]:
    if review.workloads:
        yield "Workloads", (f"  {words.workload_line(change)}" for change in review.workloads)
    if review.warnings_new or review.warnings_gone:
        yield "Warnings of the program", _warnings(review)
    if review.objects:
        yield "Objects", (line for group in words.groups(review) for line in _block(group.title, group.lines))
    if review.pools:
        yield "Devices", (line for title, lines in words.pool_groups(review) for line in _block(f"~ {title}", lines))
    if review.forecast.steps:
        yield "pulumi preview --diff", (f"  {line}" for line in words.forecast_lines(review))


def _block(title: str, lines: tuple[str, ...] | list[str]) -> Iterator[str]:
    yield f"  {_coloured(title)}"
    yield from (f"      {_coloured(line)}" for line in lines)


def _coloured(line: str) -> str:
    colour = _COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line


def _warnings(review: Review) -> Iterator[str]:
    yield from (f"  + {text}" for text in review.warnings_new)
    yield from (f"  - {text}" for text in review.warnings_gone)
