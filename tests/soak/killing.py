"""Killing (SIGKILL) one part of a deployment at a chosen point, and the documented recovery after it."""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from berkelium_lab import processes, state, wait, workspace
from berkelium_lab.api import connect
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from tests.soak import world

OF_THE_ENGINE = ("engine", "provider", "everything")
TARGETS = (*OF_THE_ENGINE, "kube-apiserver", "etcd")
"""`engine` is the Pulumi program, whose provider then goes on alone; `everything` is the whole tree of processes."""

CONTROLLERS_SECONDS = 60

Settings = Mapping[str, object]


@dataclass(frozen=True)
class Point:
    """Where a deployment is struck: after so many lines of its report, and a moment later."""

    target: str
    line: int
    moment: float

    def __str__(self) -> str:
        return f"{self.target} killed {self.moment:.2f} s after line {self.line}"


@dataclass(frozen=True)
class Outcome:
    """What a kill and its recovery came to."""

    point: Point
    struck: bool
    deployment: str
    recovery: tuple[str, ...]
    differences: tuple[str, ...]


def points(seed: int, target: str, count: int, lines: int) -> Iterator[Point]:
    """`count` points for a deployment that reports about `lines` lines, the same for the same seed."""
    chosen = random.Random(f"{seed} {target}")
    for _ in range(count):
        yield Point(target, chosen.randint(1, lines), chosen.uniform(0, 0.8))


def strike(lab: Lab, point: Point, settings: Settings, project: Path) -> tuple[bool, str]:
    """Deploy and kill at the point; whether the target was still there to kill, and how the deployment ended.

    A component of the control plane is started again at once, as a cluster does.
    """
    seen: list[str] = []
    struck = threading.Event()
    killers: list[threading.Timer] = []

    def report(line: str) -> None:
        seen.append(line)
        if len(seen) == point.line:
            killers.append(threading.Timer(point.moment, lambda: _strike(lab, point.target) and struck.set()))
            killers[0].start()

    try:
        workspace.deploy(lab, settings, report=report, project=project)
        ended = "done"
    except LabError as error:
        ended = str(error)
    for killer in killers:
        killer.cancel()
        killer.join()
    return struck.is_set(), ended


def recovered(lab: Lab, settings: Settings, project: Path, report: Callable[[str], None]) -> None:
    """The documented recovery of a lab: what `berkelium recover` does."""
    lab.up()
    workspace.recover(lab, settings, report, project=project)


def trial(lab: Lab, point: Point, settings: Settings, project: Path, expected: world.World) -> Outcome:
    """Strike, recover, and compare with an undisturbed run."""
    struck, ended = strike(lab, point, settings, project)
    lines: list[str] = []
    try:
        recovered(lab, settings, project, lines.append)
        found = compared(lab, settings, project, expected)
    except LabError as error:
        found = [f"not recovered: {error}"]
    return Outcome(point, struck, ended, tuple(lines), tuple(found))


def compared(lab: Lab, settings: Settings, project: Path, expected: world.World) -> list[str]:
    """How the lab differs from the undisturbed run, and from what the program declares."""
    api = connect(lab.kubeconfig)

    def differences() -> list[str]:
        return world.differences(expected, {**world.recorded(lab), **world.live(api)})

    # Controllers, which are not the engine's, have to catch up.
    found = wait.remaining(differences, CONTROLLERS_SECONDS, interval=1)
    for release, statuses in world.revisions(api).items():
        if statuses.count("deployed") != 1 or any(status.startswith("pending") for status in statuses):
            found.append(f"release {release} has revisions {statuses}")
    preview = workspace.preview(lab, settings, refresh=True, project=project)
    if not preview.unchanged:
        found.append(f"a preview with a refresh finds {preview.changes}")
    return found


def kill(lab: Lab, target: str) -> bool:
    """Kill the target (SIGKILL); whether there was one."""
    victims = list(_victims(lab, target))
    for victim in victims:
        victim.kill()
    psutil.wait_procs(victims, 10)
    return bool(victims)


def _strike(lab: Lab, target: str) -> bool:
    struck = kill(lab, target)
    if target not in OF_THE_ENGINE:
        lab.up()
    return struck


def _victims(lab: Lab, target: str) -> Iterator[psutil.Process]:
    if target not in OF_THE_ENGINE:
        current = state.load(lab.directory)
        assert current is not None
        if process := processes.find(current.processes[target], lab.directory):
            yield process
        return
    for process in processes.belonging_to(lab.directory):
        try:
            role = _role(process)
        except psutil.Error:
            continue
        if role and (target == "everything" or role == target):
            yield process


def _role(process: psutil.Process) -> str:
    command = process.cmdline()
    program = Path(command[0]).name if command else process.name()
    if program.startswith("pulumi-resource-kubernetes"):
        return "provider"
    if program == "pulumi":
        return "engine"
    return "program" if "berkelium_lab.engine" in command else ""
