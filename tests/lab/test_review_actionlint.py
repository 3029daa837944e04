"""The workflows pass actionlint."""

import subprocess
from pathlib import Path

from berkelium_lab.toolchain import ensure_tools

ROOT = Path(__file__).resolve().parents[2]


def actionlint(*files: Path) -> subprocess.CompletedProcess[str]:
    """Run the linter, without the helpers that it looks for on the machine."""
    program = ensure_tools().path("actionlint")
    command = [program, "-shellcheck=", "-pyflakes=", "-no-color", *files]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_the_workflows_are_clean() -> None:
    done = actionlint(*sorted((ROOT / ".github/workflows").glob("*.yml")))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_fault_in_a_workflow_is_found(tmp_path: Path) -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    broken = tmp_path / "ci.yml"
    broken.write_text(text.replace("github.event_name", "github.event_nam"))
    done = actionlint(broken)
    assert done.returncode == 1
    assert 'property "event_nam" is not defined' in done.stdout
