"""The commands of the guides in docs/, run as they are written."""

import os
import shlex
import subprocess
import sys
from pathlib import Path


def commands(page: Path, section: str = "") -> list[str]:
    """The lines of the page's blocks of commands, or of those under the heading `section`, without comments."""
    text = page.read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = text.split("```sh\n")[1:]
    lines = [line for block in blocks for line in block.partition("```")[0].splitlines()]
    return [line.partition("  #")[0].rstrip() for line in lines]


def berkelium(project: Path, kubeconfig: Path, line: str) -> None:
    """Run a documented command for the program in `project`."""
    program, *arguments = shlex.split(line)
    assert program == "berkelium"
    # The working directory comes first on the module path, so that the copy is the project that is worked on.
    code = [sys.executable, "-c", "from berkelium_cli.main import main; main()", *arguments]
    ended = subprocess.run(
        code,
        cwd=project,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, f"{line}: {ended.stdout}{ended.stderr}"
