"""Helm releases and their values: the static part from `values/`, what the stack decides merged over it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from berkelium_infra.charts import digest, reference
from berkelium_infra.live import Live
from berkelium_infra.mending import Wanted, mending
from berkelium_infra.settings import Settings
from berkelium_infra.settings.sections import ChartSettings
from berkelium_infra.versions import Chart

PROJECT = Path(__file__).resolve().parent.parent


def values(name: str, decided: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a chart: `values/<name>-values.yaml` (`Chart.values`) with `decided` merged over it.

    Merged here, not by Helm, so that a preview shows what the chart gets.
    """
    static = yaml.safe_load((PROJECT / "values" / f"{name}-values.yaml").read_text(encoding="utf-8")) or {}
    return merged(static, decided)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` on top: mappings are merged key by key, anything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return result


def release(
    chart: Chart,
    chosen: ChartSettings,
    settings: Settings,
    decided: Mapping[str, Any],
    opts: pulumi.ResourceOptions,
    post_renderer: str | None = None,
    live: Live | None = None,
) -> Release:
    """A release of the chart under its fixed name.

    `post_renderer` is an executable relative to the project. Helm sees neither an edit of it nor of a local chart that
    keeps its version; the description carries a digest of both, so that such an edit is a difference and is applied.
    With `live`, so is a change that was made by hand inside the release.
    """
    source = reference(chart, chosen.version, chosen.source or settings.charts.source, PROJECT)
    watched = {"chart": source.files, "post-renderer": PROJECT / post_renderer if post_renderer else None}
    files = {part: path for part, path in watched.items() if path}
    description = f"{' and '.join(files)} {digest(*files.values())}" if files else None
    given = values(chart.values, decided)
    mended = mending(live, Wanted(chart, source.version, given, description), opts.parent)
    return Release(
        chart.release,
        name=chart.release,
        namespace=chart.namespace,
        chart=source.chart,
        version=source.version,
        repository_opts=RepositoryOptsArgs(repo=source.repository) if source.repository else None,
        values=given,
        postrender=f"./{post_renderer}" if post_renderer else None,
        description=mended.description,
        force_update=mended.force_update,
        timeout=settings.charts.timeout_seconds,
        opts=opts,
    )
