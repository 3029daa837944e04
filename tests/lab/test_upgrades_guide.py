"""The commands of docs/upgrades.md, run as they stand there on a lab of another name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from berkelium_lab.project_copy import PROJECT
from tests.lab.labs import LabFactory

GUIDE = PROJECT / "docs" / "upgrades.md"
COMMAND = re.compile(r"^    (berkelium .*?)(?:\s+# (refused).*)?$", re.MULTILINE)
SECONDS = 240


@pytest.mark.long
def test_the_rehearsal_of_the_guide_goes_as_it_says(labs: LabFactory) -> None:
    commands = COMMAND.findall(GUIDE.read_text(encoding="utf-8"))
    assert len(commands) == 7
    assert [bool(refused) for _, refused in commands].count(True) == 1
    name = labs.named("guide").name
    for command, refused in commands:
        _, *words = command.replace("--name rehearsal", f"--name {name}").split()
        run = subprocess.run(
            [Path(sys.executable).with_name("berkelium"), *words],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert run.returncode == (1 if refused else 0), f"{command}\n{run.stdout}\n{run.stderr}"
        if refused:
            assert "the cluster runs 0.4.1, and there is no way back." in run.stderr


@pytest.mark.parametrize("version", ["25.12.0", "0.4.1", "v1.5.0", "v1.5.1"])
def test_the_guide_lists_every_release(version: str) -> None:
    assert f"| {version} " in GUIDE.read_text(encoding="utf-8")
