"""The Pulumi program applied to a lab: the real engine, the same `__main__.py`, state and settings kept per lab.

Everything lies in the lab's directory: `project/` (the copy that is applied), `pulumi/` (the engine's home with the
provider, the stack's state, the passphrase). Nothing of the user's own Pulumi set-up is read or changed.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berkelium_lab.engine import Action, Message, Request
from berkelium_lab.engine_home import PROVIDER, Home
from berkelium_lab.engine_process import Interrupted, run_engine
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from berkelium_lab.progress import Progress
from berkelium_lab.project_copy import PROJECT, copy_project, project_name, take_charts, write_stack

Report = Callable[[str], None]

STACK = "lab"


@dataclass(frozen=True)
class DeployResult:
    """What an operation did: `changes` counts resources by what was done (create, update, same, delete, …)."""

    changes: dict[str, int]
    outputs: dict[str, Any]
    warnings: tuple[str, ...]
    seconds: float

    @property
    def unchanged(self) -> bool:
        """Whether every resource was found as declared."""
        return set(self.changes) <= {"same"}


def deploy(
    lab: Lab,
    settings_overrides: Mapping[str, object] | None = None,
    charts: str | None = None,
    report: Report | None = None,
    *,
    refresh: bool = False,
    project: Path = PROJECT,
) -> DeployResult:
    """Apply the program to the lab.

    `settings_overrides` are settings as in the stack file, without prefix, merged over it for this run only. `charts`
    replaces the lab's stand-in charts: a directory, `official` or `oci://…`. With `refresh` the state is read from the
    cluster first. `report` gets a line per resource that changes.

    Raises `LabError`: the lab does not run, another operation does, or the engine failed, with all of its errors.
    """
    return _run(lab, "up", report, overrides=settings_overrides, charts=charts, refresh=refresh, project=project)


def preview(
    lab: Lab,
    settings_overrides: Mapping[str, object] | None = None,
    charts: str | None = None,
    report: Report | None = None,
    *,
    refresh: bool = False,
    project: Path = PROJECT,
) -> DeployResult:
    """What `deploy` would do, without doing it. Arguments and errors are the same; there are no outputs."""
    return _run(lab, "preview", report, overrides=settings_overrides, charts=charts, refresh=refresh, project=project)


def refresh(lab: Lab, report: Report | None = None) -> DeployResult:
    """Read the state from the cluster. Raises `LabError` as `deploy` does."""
    return _run(lab, "refresh", report)


def destroy(lab: Lab, report: Report | None = None) -> DeployResult:
    """Remove everything that the program put into the lab. Raises `LabError` as `deploy` does."""
    return _run(lab, "destroy", report)


def _run(
    lab: Lab,
    action: Action,
    report: Report | None,
    *,
    overrides: Mapping[str, object] | None = None,
    charts: str | None = None,
    refresh: bool = False,
    project: Path = PROJECT,
) -> DeployResult:
    from berkelium_lab.toolchain import ensure_tools, status

    started = time.monotonic()
    lab.require_running()
    report = report or (lambda _: None)
    tools = ensure_tools(report)
    version = next(tool.version for tool in status().tools if tool.name == PROVIDER)
    home = Home(lab)
    with home.alone():
        stale = home.clear_remains(report)
        home.prepare(tools.path("pulumi"), tools.path(PROVIDER), version)
        copy_project(project, home.project)
        decided = dict(overrides or {})
        if charts:
            decided["charts"] = {**_mapping(decided.get("charts")), "source": take_charts(charts, home.project)}
        write_stack(project, home.project, STACK, decided)
        request = Request(
            action=action,
            project=home.project,
            project_name=project_name(project),
            stack=STACK,
            root=home.root,
            provider_version=version,
            refresh=refresh,
            unlock=stale,
        )
        progress = Progress(action, report)
        try:
            result = run_engine(request, home.environment(), home.log, progress)
        except Interrupted as error:
            raise LabError(f"{action} of lab {lab.name!r} was interrupted; run it again to go on. {error}") from None
    return _finished(lab, action, result, progress, home.log, time.monotonic() - started)


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}


def _finished(lab: Lab, action: Action, result: Message, progress: Progress, log: Path, seconds: float) -> DeployResult:
    if result.failed:
        errors = progress.errors or [f"the engine ended without a result; its output is in {log}"]
        raise LabError(f"{action} of lab {lab.name!r} failed:" + "".join(f"\n  {error}" for error in errors))
    progress.summary(result.changes, seconds)
    return DeployResult(result.changes, result.outputs, tuple(progress.warnings), seconds)
