"""The doctor's page and its tests keep step with its code: no finding is left out."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Cannot be brought about in a lab, whose API server serves resource.k8s.io/v1 and whose charts fit its version.
UNIT_ONLY = {"kubernetes-too-old"}


def ids() -> set[str]:
    """The ids of all findings that the doctor's code makes: first arguments of error, warning, info and of `make`."""
    found = set()
    for path in (ROOT / "berkelium_lab" / "doctor").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                first = node.args[0]
                if node.func.id in ("error", "warning", "info", "make") and isinstance(first, ast.Constant):
                    found.add(str(first.value))
    return found


def test_the_page_lists_exactly_the_findings_there_are() -> None:
    rows = re.findall(r"^\| (`[^|]+) \| [a-z, ]+ \|", (ROOT / "docs" / "doctor.md").read_text(), re.MULTILINE)
    listed = {id for row in rows for id in re.findall(r"`([^`]+)`", row)}
    assert listed == ids() | {"could-not-look"}


def test_every_finding_that_can_be_is_brought_about_in_a_lab() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "lab").glob("*doctor*.py"))
    assert {id for id in ids() if f'"{id}"' not in tests} == UNIT_ONLY


def test_every_finding_is_brought_about_without_a_lab_too() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "unit").glob("test_doctor_*.py"))
    assert {id for id in ids() if f'"{id}"' not in tests} == set()
