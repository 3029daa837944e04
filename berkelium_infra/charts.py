"""Where a Helm chart comes from, and what a local one contains.

A source is `official` (the vendor's repository), an OCI registry (`oci://…`) or a directory relative to the project
that holds the charts, unpacked or packed as `helm pull` leaves them: `<chart>-<version>` for one version among several,
`<chart>-<version>.tgz`, or just `<chart>`.
"""

import hashlib
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from berkelium_infra.versions import Chart

DIGEST_LENGTH = 12
"""Characters of a digest that are shown; it tells edits apart, it does not secure anything."""


class ChartNotFound(Exception):
    """A chart directory does not hold the chart; the text says where it was looked for."""


@dataclass(frozen=True)
class ChartReference:
    """A chart as a Helm release names it: `chart` and `version`, and `repository` where it is needed."""

    chart: str
    version: str
    repository: str | None = None
    files: Path | None = None
    """A local chart's directory or archive, for the digest; None for a chart of a repository."""


def is_directory(source: str) -> bool:
    """Whether the source is a directory of the file system."""
    return source != "official" and not source.startswith("oci://")


def reference(chart: Chart, version: str, source: str, project: Path) -> ChartReference:
    """How a Helm release refers to the chart in that version from that source.

    Raises `ChartNotFound` when the source is a directory without the chart.
    """
    if source == "official":
        return ChartReference(chart.name, version, repository=chart.repository)
    if source.startswith("oci://"):
        return ChartReference(f"{source}/{chart.name}", version)
    files = _find(project, source, chart.name, version)
    # Relative, since the text is an input of the release: an absolute path would change with the machine.
    return ChartReference(f"./{source.removeprefix('./')}/{files.name}", version, files=files)


def local_version(project: Path, source: str, name: str, version: str) -> str:
    """The version that the chart in that directory says it is. Raises `ChartNotFound`."""
    files = _find(project, source, name, version)
    try:
        text = _member(files, f"{name}/Chart.yaml") if files.is_file() else (files / "Chart.yaml").read_bytes()
        found = yaml.safe_load(text)
    except (OSError, KeyError, tarfile.TarError, yaml.YAMLError) as error:
        raise ChartNotFound(f"{source}/{files.name} has no readable Chart.yaml ({error}).") from None
    if not isinstance(found, dict) or found.get("name") != name:
        raise ChartNotFound(f"{source}/{files.name} is not the chart {name}.")
    return str(found.get("version"))


def _find(project: Path, source: str, name: str, version: str) -> Path:
    directory, exact = project / source, f"{name}-{version}"
    for candidate in (directory / exact, directory / f"{exact}.tgz", directory / name):
        if (candidate.is_dir() and (candidate / "Chart.yaml").is_file()) or candidate.is_file():
            return candidate
    raise ChartNotFound(
        f"There is neither {source}/{name}/Chart.yaml nor {source}/{exact}/Chart.yaml nor {source}/{exact}.tgz."
    )


def _member(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        if file is None:
            raise KeyError(name)
        return file.read()


def digest(*roots: Path) -> str:
    """A short digest over the files' relative names and contents.

    It is the same wherever the project lies and whatever the files' modes and times are, and whether a directory is
    there or linked to. Caches of Python are left out.
    """
    total = hashlib.sha256()
    for root in roots:
        for path in (
            sorted(_files(root), key=lambda path: path.relative_to(root).as_posix()) if root.is_dir() else [root]
        ):
            if "__pycache__" not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                name = path.relative_to(root).as_posix() if path != root else root.name
                total.update(f"{name}\0{content}\n".encode())
    return total.hexdigest()[:DIGEST_LENGTH]


def _files(root: Path) -> list[Path]:
    return [Path(directory) / name for directory, _, names in os.walk(root, followlinks=True) for name in names]
