"""Custom resources checked against the schemas of their CRDs, as strictly as an API server checks a creation."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

CHARTS = Path(__file__).resolve().parents[2] / "berkelium_lab" / "charts"


@cache
def definitions() -> dict[tuple[str, str], dict[str, Any]]:
    """The CRDs of the stand-in charts by `apiVersion` and kind of what they define."""
    found = {}
    for path in sorted(CHARTS.glob("*/crds/*.yaml")):
        crd = yaml.safe_load(path.read_text(encoding="utf-8"))
        for version in crd["spec"]["versions"]:
            found[f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]] = crd
    return found


def faults(resource: Mapping[str, Any]) -> list[str]:
    """What an API server would refuse in a custom resource: each fault with its path. Unknown fields are faults.

    Raises KeyError when no chart has a CRD for it.
    """
    crd = definitions()[resource["apiVersion"], resource["kind"]]
    (version,) = crd["spec"]["versions"]
    validator = jsonschema.Draft202012Validator(closed(version["schema"]["openAPIV3Schema"]))
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(resource)]


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with every object closed whose fields it names; an API server prunes or refuses other fields."""
    result = dict(schema)
    if "properties" in schema:
        result["properties"] = {name: closed(field) for name, field in schema["properties"].items()}
        result["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), Mapping):
        result["additionalProperties"] = closed(schema["additionalProperties"])
    if "items" in schema:
        result["items"] = closed(schema["items"])
    return result
