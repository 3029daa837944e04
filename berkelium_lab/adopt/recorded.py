"""What is in a stack's state already, and so need not be taken over."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from berkelium_infra.settings.adoption import identify
from berkelium_lab.engine_home import Home
from berkelium_lab.lab import Lab

_SECONDS = 60


Keys = set[tuple[str, str]]
"""`Identity.key` of each object."""


def recorded_in_lab(lab: Lab, stack: str, project_name: str) -> Keys:
    """The objects in the state of a stack that was deployed to a lab; none when it never was."""
    path = Home(lab).root / "state" / ".pulumi" / "stacks" / project_name / f"{stack}.json"
    if not path.is_file():
        return set()
    content = json.loads(path.read_text(encoding="utf-8"))
    return _keys((content.get("checkpoint") or {}).get("latest") or {})


def recorded_in_stack(project: Path, stack: str) -> Keys | None:
    """The objects in the state of a stack of the user's own backend, as the Pulumi CLI exports it.

    None when there is no CLI, or it cannot read the state (no login, no such stack).
    """
    pulumi = shutil.which("pulumi")
    if pulumi is None:
        return None
    exported = subprocess.run(
        [pulumi, "stack", "export", "--stack", stack, "--cwd", str(project), "--non-interactive"],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"},
    )
    if exported.returncode:
        # A stack that was never made has nothing in it; anything else is not known.
        return set() if "no stack named" in exported.stderr else None
    return _keys(json.loads(exported.stdout).get("deployment") or {})


def _keys(deployment: Mapping[str, Any]) -> Keys:
    resources: Iterable[Mapping[str, Any]] = deployment.get("resources") or []
    # A resource that waits for its deletion is on its way out.
    kept = (each for each in resources if not each.get("delete") and each.get("inputs"))
    return {found.key for each in kept if (found := identify(each["type"], each["inputs"]))}
