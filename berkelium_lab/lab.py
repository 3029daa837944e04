"""A laboratory: a real Kubernetes control plane on this machine with a simulated fleet of GPU nodes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from berkelium_lab import paths, state
from berkelium_lab.errors import LabError
from berkelium_lab.paths import DEFAULT_LAB, private_directory, write_private

if TYPE_CHECKING:
    from collections.abc import Callable

    from berkelium_lab.control_plane import Site
    from berkelium_lab.fleet import Fleet
    from berkelium_lab.state import LabState
    from berkelium_lab.status import LabStatus

    Report = Callable[[str], None]

__all__ = ["DEFAULT_FLEET", "Lab", "LabError", "labs"]

DEFAULT_FLEET = "berkelium"


def _silent(line: str) -> None:  # noqa: ARG001
    return


class Lab:
    """The lab of a name; it need not exist. Methods raise `LabError` for what the user can mend.

    A lab's processes go on when the command that started them ends, until `down`. Its directory holds the state, the
    credentials, the logs and etcd's data. Commands that change one lab wait for each other.
    """

    def __init__(self, name: str = DEFAULT_LAB) -> None:
        self.name = paths.valid_name(name)

    @property
    def directory(self) -> Path:
        """The lab's own directory; `down` removes it."""
        return paths.lab_dir(self.name)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig. Raises `LabError` when the lab does not exist."""
        path = self.directory / "kubeconfig"
        if not path.exists():
            raise LabError(self._absent())
        return path

    def up(self, fleet: Path | str | None = None, report: "Report | None" = None) -> None:
        """Start what of the lab does not run, and return once all of it serves and every node is ready.

        A running lab is left as it is; one that lost components gets them back with its data kept. `fleet` is the
        name or path of a fleet, by default the one that the lab has, or `berkelium` for a new lab.

        Raises `LabError` when a component does not come up, and when the lab has another fleet; also `FleetError` and
        `ToolchainError`. An error or an interruption ends the processes that this call started.
        """
        from berkelium_lab.fleet import nodes
        from berkelium_lab.interrupts import Interrupts
        from berkelium_lab.start import Start
        from berkelium_lab.toolchain import ensure_tools

        report = report or _silent
        wanted = self._fleet(fleet)
        tools = ensure_tools(report)
        with self._locked(report), Interrupts() as interrupts:
            current, declared = self._settle(fleet, wanted)
            site = self._site(current, tools.directory)
            site.credentials.ensure()
            started = Start(site, current, interrupts, report).run(nodes(declared))
            report(self._verdict(started))

    def down(self, report: "Report | None" = None) -> bool:
        """End every process of the lab and remove its directory. False when there was nothing to do.

        Works as well on a lab that is half dead, was never quite started or has seen a reboot.
        """
        from berkelium_lab.interrupts import Interrupts
        from berkelium_lab.stop import stop_everything

        report = report or _silent
        with self._locked(report), Interrupts() as interrupts, interrupts.held():
            try:
                current = state.load(self.directory)
            except LabError:
                # Unreadable records: the processes are still found by their mark.
                current = None
            stopped = stop_everything(current.processes if current else {}, self.directory)
            if not stopped and not self.directory.exists():
                return False
            report(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")
            self._remove()
            return True

    def status(self) -> "LabStatus":
        """What runs and what does not. Asks the components, and changes nothing."""
        from berkelium_lab import status

        current = state.load(self.directory)
        if current is None:
            return status.absent(self.name, self.directory)
        return status.of(current, self._site(current))

    def require_running(self) -> None:
        """Raise `LabError`, saying what to do, unless every component of the lab serves."""
        found = self.status()
        if found.condition == "absent":
            raise LabError(self._absent())
        if not found.running:
            faults = "; ".join(f"{each.name}: {each.complaint}" for each in found.components if each.complaint)
            raise LabError(
                f"lab {self.name!r} is {found.condition} ({faults}); mend it with `berkelium lab up --name {self.name}`"
            )

    def log_names(self) -> list[str]:
        """What `log` takes: the components, in the order in which they start, and whatever else has logged.

        Raises `LabError` for a lab that does not exist.
        """
        from berkelium_lab.control_plane import COMPONENTS

        if state.load(self.directory) is None:
            raise LabError(self._absent())
        components = [each.name for each in COMPONENTS]
        others = {path.stem for path in (self.directory / "logs").glob("*.log")} - set(components)
        return [*components, *sorted(others)]

    def log(self, component: str) -> Path:
        """The log file of a component (or of another program, see `log_names`); it may not have been written yet.

        Raises `LabError` for a component or a lab that does not exist.
        """
        known = self.log_names()
        if component not in known:
            raise LabError(f"there is no component {component!r}; those with a log are {', '.join(known)}")
        return self.directory / "logs" / f"{component}.log"

    def _fleet(self, fleet: Path | str | None) -> "Fleet":
        """The fleet that is asked for, read and checked before anything starts."""
        from berkelium_lab.fleet import load

        if fleet is None and state.load(self.directory):
            return load(self._fleet_file)
        return load(DEFAULT_FLEET if fleet is None else fleet)

    def _settle(self, fleet: Path | str | None, wanted: "Fleet") -> "tuple[LabState, Fleet]":
        """The state of the lab, made when there is none, and its fleet, which must be the one that is wanted."""
        from berkelium_lab.fleet import load
        from berkelium_lab.state import LabState

        current = state.load(self.directory)
        if current is None:
            private_directory(self.directory)
            # A copy, since the user's file may change while the lab runs; inheritance is resolved in it.
            values = wanted.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            write_private(self._fleet_file, yaml.safe_dump(values, sort_keys=False))
            current = LabState(name=self.name, fleet=str(fleet or DEFAULT_FLEET))
            current.save(self.directory)
            return current, wanted
        declared = load(self._fleet_file)
        if fleet is not None and declared != wanted:
            raise LabError(
                f"lab {self.name!r} has the fleet {current.fleet!r}, and {str(fleet)!r} differs from it; "
                f"take the lab down first (`berkelium lab down --name {self.name}`) or give the new one another --name"
            )
        return current, declared

    def _site(self, current: "LabState", tools: Path | None = None) -> "Site":
        from berkelium_lab.control_plane import Site

        return Site(self.directory, tools or Path(), dict(current.ports))

    def _verdict(self, started: list[str]) -> str:
        return f"lab {self.name!r} is up" if started else f"lab {self.name!r} is running already, nothing to start"

    def _absent(self) -> str:
        return f"there is no lab {self.name!r}; start it with `berkelium lab up --name {self.name}`"

    @property
    def _fleet_file(self) -> Path:
        return self.directory / "fleet.yaml"

    def _remove(self) -> None:
        try:
            shutil.rmtree(self.directory)
        except FileNotFoundError:
            return
        except OSError as error:
            raise LabError(f"the lab's processes have ended, but {error.filename} stays: {error.strerror}") from None

    @contextmanager
    def _locked(self, report: "Report") -> "Iterator[None]":
        from filelock import FileLock, Timeout

        path = paths.lock_file(self.name)
        private_directory(path.parent)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            report(f"waiting for another command on lab {self.name!r}")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()


def labs() -> list[str]:
    """The names of all labs on this machine, running or not."""
    return state.names()
