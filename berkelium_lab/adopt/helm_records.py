"""Helm's record of a release, with the values it was given and the objects that it installed.

One Secret per revision holds it as JSON, compressed by gzip and encoded in base64, once more encoded as every Secret is
(helm.sh/helm/v3/pkg/storage/driver/util.go).
"""

import base64
import gzip
import json
import zlib
from dataclasses import dataclass
from typing import Any

import yaml

from berkelium_lab.api import Api

_LABELS = "owner=helm,status!=superseded"


@dataclass(frozen=True)
class Release:
    """The newest revision of a release; `objects` are kind and name of what it installed."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    version: str
    values: dict[str, Any]
    objects: frozenset[tuple[str, str]]


def releases(api: Api) -> dict[tuple[str, str], Release]:
    """Every release of the cluster, by namespace and name. Records that cannot be read are left out."""
    newest: dict[tuple[str, str], Release] = {}
    for secret in api.list("v1", "Secret", label_selector=_LABELS):
        found = _decoded(secret)
        if found is None:
            continue
        key = (found.namespace, found.name)
        if key not in newest or newest[key].revision < found.revision:
            newest[key] = found
    return newest


def _decoded(secret: dict[str, Any]) -> Release | None:
    try:
        payload = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        record = json.loads(gzip.decompress(payload))
        metadata = record["chart"]["metadata"]
        return Release(
            name=record["name"],
            namespace=secret["metadata"]["namespace"],
            revision=record["version"],
            status=record["info"]["status"],
            chart=metadata["name"],
            version=metadata["version"],
            values=record.get("config") or {},
            objects=_objects(record.get("manifest") or ""),
        )
    except (KeyError, TypeError, ValueError, OSError, EOFError, zlib.error, yaml.YAMLError):
        return None


def _objects(manifest: str) -> frozenset[tuple[str, str]]:
    documents = [document for document in yaml.safe_load_all(manifest) if document]
    return frozenset((str(each["kind"]), str(each["metadata"]["name"])) for each in documents)
