"""How long a user waits for `berkelium check` and `berkelium doctor`."""

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from berkelium_lab import examples
from berkelium_lab.lab import Lab
from berkelium_lab.project_copy import PROJECT

MANIFESTS = 150


def waits(lab: Lab) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is waited for, and the call that takes that long; the program is applied to the lab."""
    one = examples.DIRECTORY / examples.load().documented[0].manifest
    yield "doctor of the lab", lambda: _run("doctor", "--name", lab.name)
    yield "check of one manifest, in a lab of its own", lambda: _run("check", str(one))
    with tempfile.TemporaryDirectory() as directory:
        _fill(Path(directory))
        yield f"check of {MANIFESTS} manifests, in a lab of its own", lambda: _run("check", directory)


def _fill(directory: Path) -> None:
    """Copies of the documented manifests under other names, a file each."""
    files = [path for path in sorted((PROJECT / "examples").rglob("*.yaml")) if path.name != "expected.yaml"]
    for number, path in zip(range(MANIFESTS), itertools.cycle(files), strict=False):
        documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
        for document in documents:
            document["metadata"]["namespace"] = f"copy-{number}"
        (directory / f"{number:03}-{path.name}").write_text(yaml.safe_dump_all(documents), encoding="utf-8")


def _run(*arguments: str) -> None:
    """Run the command, which may find something but not fail."""
    code = [sys.executable, "-c", "from berkelium_cli.main import main; main()", *arguments]
    done = subprocess.run(code, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"berkelium {' '.join(arguments)}: {done.stderr}")
