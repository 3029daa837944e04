"""The engine's files in a lab's directory, and what a run that was killed leaves there."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from berkelium_lab import paths, processes
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab

Report = Callable[[str], None]

PROVIDER = "pulumi-resource-kubernetes"
"""The provider's program; the engine asks for it by this name."""


def plugin_path(pulumi_home: Path, version: str) -> Path:
    """Where the engine looks for the provider; in a directory named after its own version without a warning."""
    return pulumi_home / "plugins" / f"resource-kubernetes-v{version}" / PROVIDER


class Home:
    """The engine's files in a lab's directory."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.root = lab.directory / "pulumi"
        self.project = lab.directory / "project"
        self.log = lab.directory / "logs" / "pulumi.log"
        self._passphrase = self.root / "passphrase"

    def prepare(self, pulumi: Path, provider: Path, version: str) -> None:
        """Make what is missing: directories, a passphrase, links to the programs where the engine looks for them."""
        for directory in (self.root / "bin", self.root / "home", self.root / "state", self.log.parent):
            paths.private_directory(directory)
        if not self._passphrase.exists():
            paths.write_private(self._passphrase, secrets.token_urlsafe(32))
        plugin = plugin_path(self.root / "home", version)
        for link, program in ((self.root / "bin" / "pulumi", pulumi), (plugin, provider)):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(program)

    def environment(self) -> dict[str, str]:
        """The caller's environment without what would configure Pulumi or Helm from outside, and with the lab's own."""
        foreign = ("PULUMI_", "HELM_", "KUBE", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return kept | {
            "KUBECONFIG": str(self._lab.kubeconfig),
            "PULUMI_HOME": str(self.root / "home"),
            # Without attribute files: one that a killed engine left empty makes the state unreadable.
            "PULUMI_BACKEND_URL": f"file://{self.root / 'state'}?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self._passphrase),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
            # Provider 4.25 takes this from the environment only; newer ones from the program.
            "PULUMI_K8S_ENABLE_PATCH_FORCE": "true",
            **{f"HELM_{part}_HOME": str(self.root / "helm" / part.lower()) for part in ("CACHE", "CONFIG", "DATA")},
            processes.MARK: str(self._lab.directory),
        }

    def state_file(self, project: str, stack: str) -> Path:
        """Where the engine keeps the state of a stack; it need not exist."""
        return self.root / "state" / ".pulumi" / "stacks" / project / f"{stack}.json"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock that lets one operation of this lab run at a time. Raises `LabError` when another runs."""
        from filelock import FileLock, Timeout

        path = paths.lock_file(self._lab.name).with_suffix(".deploy.lock")
        paths.private_directory(path.parent)
        try:
            with FileLock(path, timeout=0):
                yield
        except Timeout:
            raise LabError(f"another deploy, refresh or destroy of lab {self._lab.name!r} is running") from None

    def clear_remains(self, report: Report) -> bool:
        """End what a killed run left behind; True when it also left the stack locked.

        Called under the lock, so whatever of the engine still runs has lost the command that started it.
        """
        left = [p for p in processes.belonging_to(self._lab.directory) if self._is_engine(p.cmdline())]
        if left:
            report("an earlier run was killed; ending what it left running")
            processes.stop(left, 20)
        locks = list((self.root / "state" / ".pulumi" / "locks").rglob("*.json"))
        if locks:
            report("an earlier run was killed; mending what it left behind")
        return bool(locks)

    def _is_engine(self, command: list[str]) -> bool:
        return "berkelium_lab.engine" in command or any(part.startswith(str(self.root)) for part in command[:1])
