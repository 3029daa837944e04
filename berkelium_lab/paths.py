"""Where the laboratory keeps its files.

Everything lies under one cache directory of the user, so that the checkout stays clean and removing that directory
removes all of it. `$BERKELIUM_CACHE` moves it.
"""

import os
import re
from pathlib import Path

from berkelium_lab.errors import LabError

DEFAULT_LAB = "berkelium"

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def cache_dir() -> Path:
    """`$BERKELIUM_CACHE`, or `berkelium` in the platform's cache directory of the user. It need not exist."""
    if configured := os.environ.get("BERKELIUM_CACHE"):
        return Path(configured).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("berkelium"))


def labs_dir() -> Path:
    """The directory that holds one directory per lab."""
    return cache_dir() / "labs"


def lab_dir(name: str) -> Path:
    """The directory of the lab `name`. Raises `LabError` when the name is not a DNS label."""
    return labs_dir() / valid_name(name)


def lock_file(name: str) -> Path:
    """The lock of the lab `name`; it lies outside the lab's directory, which `lab down` removes."""
    return cache_dir() / "locks" / f"{valid_name(name)}.lock"


def valid_name(name: str) -> str:
    """`name` itself when it is a DNS label (RFC 1123); raises `LabError` otherwise.

    A lab's name becomes a directory's name and the cluster's name in a kubeconfig.
    """
    if not _DNS_LABEL.fullmatch(name):
        raise LabError(
            f"{name!r} is no name for a lab: write lower case letters, digits and '-', "
            "beginning and ending with a letter or digit, 63 characters at most"
        )
    return name


def private_directory(path: Path) -> Path:
    """`path`, created when missing, readable by its owner only: labs hold keys and tokens."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path` at once (no reader sees half of it), readable by its owner only from the start."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
