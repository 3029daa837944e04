"""Helm's own records of its releases: one Secret per revision, type `helm.sh/release.v1`.

The payload is JSON, compressed by gzip and encoded in base64, once more encoded as every Secret is
(helm.sh/helm/v3/pkg/storage/driver/util.go).
"""

import base64
import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from berkelium_lab.api import Object

LABELS = "owner=helm,status!=superseded"
"""Selects the records that matter: the deployed revision, and whatever came after it."""


class UnreadableRelease(Exception):
    """A Secret does not hold a release; the text says what is wrong with it."""


@dataclass(frozen=True)
class HelmRelease:
    """One revision of a release."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    chart_version: str
    since: str
    description: str

    @property
    def subject(self) -> str:
        """How a finding names the release."""
        return f"release/{self.namespace}/{self.name}"


def decode(secret: Object) -> HelmRelease:
    """The release that the Secret records. Raises `UnreadableRelease`."""
    try:
        payload = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        record = json.loads(gzip.decompress(payload))
        about, metadata = record["info"], record["chart"]["metadata"]
        return HelmRelease(
            name=record["name"],
            namespace=secret["metadata"]["namespace"],
            revision=record["version"],
            status=about["status"],
            chart=metadata["name"],
            chart_version=metadata["version"],
            since=about.get("last_deployed", ""),
            description=about.get("description", ""),
        )
    except (KeyError, TypeError, ValueError, OSError, EOFError, zlib.error) as error:
        raise UnreadableRelease(f"{type(error).__name__}: {error}") from None


def latest(releases: Iterable[HelmRelease]) -> list[HelmRelease]:
    """The newest revision of each release."""
    newest: dict[tuple[str, str], HelmRelease] = {}
    for release in releases:
        key = (release.namespace, release.name)
        if key not in newest or newest[key].revision < release.revision:
            newest[key] = release
    return list(newest.values())
