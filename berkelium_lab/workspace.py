"""The Pulumi program applied to a lab: the real engine, the same `__main__.py`, state and settings kept per lab.

Everything lies in the lab's directory: `project/` (the copy that is applied), `pulumi/` (the engine's home with the
provider, the stack's state, the passphrase). Nothing of the user's own Pulumi set-up is read or changed.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

from berkelium_infra import claims_held
from berkelium_infra.catalog import VENDORS
from berkelium_infra.live import open_kubeconfig
from berkelium_lab.engine import Action, Message, Request
from berkelium_lab.engine_home import PROVIDER, Home
from berkelium_lab.engine_process import Interrupted, run_engine
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from berkelium_lab.progress import Progress
from berkelium_lab.project_copy import PROJECT, copy_project, project_name, take_charts, write_stack

Report = Callable[[str], None]

STACK = "lab"


class OperationInterrupted(LabError):
    """A signal ended the operation."""


@dataclass(frozen=True)
class DeployResult:
    """What an operation did: `changes` counts resources by what was done (create, update, same, delete, …).

    `steps` are the engine's messages on the resources that differ; `text` is what `pulumi preview --diff` prints.
    """

    changes: dict[str, int]
    outputs: dict[str, Any]
    warnings: tuple[str, ...]
    seconds: float
    steps: tuple[Message, ...] = ()
    text: str = ""

    @property
    def unchanged(self) -> bool:
        """Whether every resource was found as declared."""
        return set(self.changes) <= {"same"}


class Options(TypedDict, total=False):
    """How the program is applied.

    `charts` replaces the lab's stand-in charts: a directory, `official` or `oci://…`. With `refresh` the state is read
    from the cluster first. `project` is the checkout, `stack` names the stack file that is taken; `secrets` are
    settings by path, put into the copy of it encrypted.
    """

    charts: str | None
    refresh: bool
    project: Path
    stack: str
    secrets: Mapping[str, str]


def deploy(
    lab: Lab,
    settings_overrides: Mapping[str, object] | None = None,
    report: Report | None = None,
    **options: Unpack[Options],
) -> DeployResult:
    """Apply the program to the lab.

    `settings_overrides` are settings as in the stack file, without prefix, merged over it for this run only. `report`
    gets a line per resource that changes.

    Raises `LabError`: the lab does not run, another operation does, or the engine failed, with all of its errors.
    """
    return _run(lab, "up", report, _Chosen(settings_overrides or {}, **options))


def preview(
    lab: Lab,
    settings_overrides: Mapping[str, object] | None = None,
    report: Report | None = None,
    **options: Unpack[Options],
) -> DeployResult:
    """What `deploy` would do, without doing it. Arguments and errors are the same; there are no outputs."""
    return _run(lab, "preview", report, _Chosen(settings_overrides or {}, **options))


def recover(
    lab: Lab,
    settings_overrides: Mapping[str, object] | None = None,
    report: Report | None = None,
    *,
    project: Path = PROJECT,
    rebuilt: bool = False,
) -> DeployResult:
    """Mend what an interrupted operation left behind, and apply the program.

    Locks, unfinished Helm revisions, unfinished operations and objects that were created without being recorded are
    dealt with, each with a line to `report`. `rebuilt` says that the cluster was wiped and built anew: everything is
    created again. Raises `LabError` as `deploy` does.
    """
    return _run(lab, "recover", report, _Chosen(settings_overrides or {}, project=project, rebuilt=rebuilt))


def refresh(lab: Lab, report: Report | None = None) -> DeployResult:
    """Read the state from the cluster. Raises `LabError` as `deploy` does."""
    return _run(lab, "refresh", report)


def destroy(
    lab: Lab,
    report: Report | None = None,
    settings_overrides: Mapping[str, object] | None = None,
    *,
    held_claims: bool = False,
    project: Path = PROJECT,
) -> DeployResult:
    """Remove everything that the program put into the lab; the program is run for it, with its settings.

    Refused, with the claims listed, while pods hold devices, unless `held_claims` is set. Raises `LabError` as
    `deploy` does.
    """
    lab.require_running()
    if not held_claims:
        _refuse_while_claims_are_held(lab)
    return _run(lab, "destroy", report, _Chosen(settings_overrides or {}, project=project, held_claims=held_claims))


def _refuse_while_claims_are_held(lab: Lab) -> None:
    drivers = [vendor.driver for vendor in VENDORS]
    if held := claims_held.held_claims(open_kubeconfig(str(lab.kubeconfig)), drivers):
        raise LabError(f"destroy of lab {lab.name!r} was refused:\n  {claims_held.refusal(held)}")


@dataclass(frozen=True)
class _Chosen:
    """What the caller of an operation decides."""

    overrides: Mapping[str, object] = field(default_factory=dict)
    charts: str | None = None
    refresh: bool = False
    project: Path = PROJECT
    stack: str = STACK
    secrets: Mapping[str, str] = field(default_factory=dict)
    rebuilt: bool = False
    held_claims: bool = False


def _run(lab: Lab, action: Action, report: Report | None, chosen: _Chosen = _Chosen()) -> DeployResult:
    from berkelium_lab.toolchain import ensure_tools, status

    started = time.monotonic()
    lab.require_running()
    report = report or (lambda _: None)
    tools = ensure_tools(report)
    version = status().version(PROVIDER)
    home = Home(lab)
    with home.alone():
        stale = home.clear_remains(report)
        home.prepare(tools.path("pulumi"), tools.path(PROVIDER), version)
        copy_project(chosen.project, home.project)
        decided = dict(chosen.overrides)
        if chosen.charts:
            source = take_charts(chosen.charts, home.project)
            decided["charts"] = {**_mapping(decided.get("charts")), "source": source}
        write_stack(chosen.project, home.project, chosen.stack, decided)
        request = Request(
            action=action,
            project=home.project,
            project_name=project_name(chosen.project),
            stack=chosen.stack,
            root=home.root,
            provider_version=version,
            refresh=chosen.refresh,
            unlock=stale,
            secrets=dict(chosen.secrets),
            rebuilt=chosen.rebuilt,
        )
        progress = Progress(action, report)
        try:
            environment = home.environment() | ({claims_held.OVERRIDE: "1"} if chosen.held_claims else {})
            result = run_engine(request, environment, home.log, progress)
        except Interrupted as error:
            message = f"{action} of lab {lab.name!r} was interrupted; run it again to go on. {error}"
            raise OperationInterrupted(message) from None
    return _finished(lab, action, result, progress, home.log, time.monotonic() - started)


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}


def _finished(lab: Lab, action: Action, result: Message, progress: Progress, log: Path, seconds: float) -> DeployResult:
    if result.failed:
        errors = progress.errors or [f"the engine ended without a result; its output is in {log}"]
        raise LabError(f"{action} of lab {lab.name!r} failed:" + "".join(f"\n  {error}" for error in errors))
    progress.summary(result.changes, seconds)
    return DeployResult(
        result.changes, result.outputs, tuple(progress.warnings), seconds, tuple(progress.steps), result.text
    )


def state(lab: Lab, stack: str = STACK) -> dict[str, Any]:
    """The stack's state as the engine keeps it: `resources`, `pending_operations`. Raises `LabError` without one."""
    file = Home(lab).state_file(project_name(PROJECT), stack)
    if not file.is_file():
        raise LabError(f"nothing was applied to lab {lab.name!r} yet; do so with `berkelium lab deploy`")
    return json.loads(file.read_text(encoding="utf-8"))["checkpoint"]["latest"] or {}
