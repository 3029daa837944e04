"""An admin's workplace beside a lab: a checkout, a kubeconfig with the cluster's context, and `pulumi` on the PATH.

State and secrets are the admin's own, as on a laptop; only the charts are the stand-ins.
"""

import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from berkelium_lab.engine_home import PROVIDER, Home, plugin_path
from berkelium_lab.lab import Lab
from berkelium_lab.project_copy import PROJECT, copy_project, write_stack
from berkelium_lab.toolchain import ensure_tools, status
from tests.lab import pulumi_shim

SECONDS = 240


@dataclass(frozen=True)
class Admin:
    """The workplace: `project` is the checkout, `kubeconfig` what `KUBECONFIG` names; the stack is selected."""

    project: Path
    kubeconfig: Path
    stack: str
    environment: dict[str, str]

    @classmethod
    def of(cls, lab: Lab, directory: Path, stack: str, **settings: object) -> "Admin":
        """A workplace in an empty directory, with the stack created, for the lab as that stack's cluster."""
        tools = ensure_tools()
        admin = cls(directory / "checkout", directory / "kubeconfig", stack, _environment(lab, directory))
        copy_project(PROJECT, admin.project)
        write_stack(PROJECT, admin.project, stack, {"charts": {"source": "berkelium_lab/charts"}, **settings})
        _install(directory, tools.path(PROVIDER), admin.environment[pulumi_shim.VERSION])
        admin.use(lab)
        admin.run(f"pulumi stack init {stack}")
        return admin

    def use(self, lab: Lab) -> None:
        """Let the stack's context lead to this lab from now on."""
        content = yaml.safe_load(lab.kubeconfig.read_text())
        content["contexts"][0]["name"] = content["current-context"] = f"berkelium-{self.stack}"
        self.kubeconfig.write_text(yaml.safe_dump(content))

    def start(self, command: str) -> subprocess.Popen[str]:
        """Begin a command line, as bash understands it, in the checkout; a session of its own."""
        return subprocess.Popen(
            ["bash", "-euc", command],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str, code: int = 0) -> str:
        """Run a command line to its end; what it printed. Its exit code must be `code`."""
        running = self.start(command)
        try:
            printed, _ = running.communicate(timeout=SECONDS)
        finally:
            running.kill()
        assert running.returncode == code, f"{command}: exit code {running.returncode}\n{printed}"
        return printed


def _environment(lab: Lab, directory: Path) -> dict[str, str]:
    version = status().version(PROVIDER)
    return Home(lab).environment() | {
        "PATH": f"{directory / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "KUBECONFIG": str(directory / "kubeconfig"),
        "PULUMI_HOME": str(directory / "home"),
        # As the guide advises: a killed engine can leave an attribute file empty, and the state unreadable with it.
        "PULUMI_BACKEND_URL": f"file://{directory}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(directory / "passphrase"),
        # Stands for the answer to the question whether to go on.
        "PULUMI_SKIP_CONFIRMATIONS": "true",
        pulumi_shim.PULUMI: str(ensure_tools().path("pulumi")),
        pulumi_shim.VERSION: version,
    }


def _install(directory: Path, provider: Path, version: str) -> None:
    (directory / "passphrase").write_text("of a test\n")
    plugin = plugin_path(directory / "home", version)
    plugin.parent.mkdir(parents=True)
    plugin.symlink_to(provider)
    commands = {
        "pulumi": f'exec "{sys.executable}" -m tests.lab.pulumi_shim "$@"',
        "berkelium": f'exec "{sys.executable}" -c "from berkelium_cli.main import main; main()" "$@"',
    }
    (directory / "bin").mkdir()
    for name, line in commands.items():
        script = directory / "bin" / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
