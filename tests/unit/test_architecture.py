"""The shape of the tree: which package may import which, and how long a file may be."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("berkelium_infra", "berkelium_lab", "berkelium_cli")


def imports(path: Path) -> set[str]:
    """The top-level packages that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_no_layer_above_it(layer: str) -> None:
    above = set(LAYERS[LAYERS.index(layer) + 1 :]) | {"tests"}
    wrong = {
        str(path.relative_to(ROOT)): sorted(imports(path) & above)
        for path in (ROOT / layer).rglob("*.py")
        if imports(path) & above
    }
    assert wrong == {}


def test_the_catalog_imports_nothing_of_pulumi() -> None:
    for name in ("catalog.py", "gpu.py", "claims.py", "tables.py", "node_labels.py"):
        assert not {package for package in imports(ROOT / "berkelium_infra" / name) if package.startswith("pulumi")}


def test_a_check_and_a_doctor_do_not_load_pulumi() -> None:
    code = "import sys, berkelium_lab.check.stand, berkelium_lab.doctor; sys.exit('pulumi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_program_stays_a_few_lines() -> None:
    assert len((ROOT / "__main__.py").read_text().splitlines()) < 25


def test_no_test_sleeps() -> None:
    sleeping = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr == "sleep"
        and isinstance(node.value, ast.Name)
        and node.value.id in ("time", "asyncio")
    ]
    assert sleeping == []
