"""The admission policies: read from `policies/<name>/policy.yaml`, given their mode and their exempt namespaces.

Each file holds two documents, a ValidatingAdmissionPolicy and its ValidatingAdmissionPolicyBinding, both named after
the directory. What a stack decides (mode and exemptions) is put into the binding here; the rule itself is the file's.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from berkelium_infra.errors import UserError

PROJECT = Path(__file__).resolve().parent.parent
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""Label that the API server itself keeps on every namespace; nobody can forge it."""

_KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_ACTIONS = {"deny": ["Deny", "Audit"], "warn": ["Warn", "Audit"], "audit": ["Audit"]}

Manifest = dict[str, Any]


class PolicyError(UserError):
    """A policy's file is not what it must be; the text names the file."""


def policy_names(project: Path = PROJECT) -> list[str]:
    """The names of all policies, sorted: the directories of `policies/` that hold a policy.yaml."""
    return sorted(path.parent.name for path in (project / "policies").glob("*/policy.yaml"))


def load(
    name: str, mode: str, exempt_namespaces: Iterable[str], project: Path = PROJECT
) -> tuple[Manifest, Manifest | None]:
    """The policy and its binding; without a binding (mode `off`) a policy is not applied to anything.

    `mode` is deny, warn, audit or off; every mode but off also writes to the audit log. Raises `PolicyError` when the
    file does not hold the two documents under the right names.
    """
    policy, binding = _documents(project / "policies" / name / "policy.yaml", name)
    if mode == "off":
        return policy, None
    spec = binding["spec"]
    spec["validationActions"] = list(_ACTIONS[mode])
    selector = spec.setdefault("matchResources", {}).setdefault("namespaceSelector", {})
    expressions = [e for e in selector.get("matchExpressions", []) if e.get("key") != NAMESPACE_NAME_LABEL]
    exempt = {"key": NAMESPACE_NAME_LABEL, "operator": "NotIn", "values": sorted(set(exempt_namespaces))}
    selector["matchExpressions"] = [*expressions, exempt]
    return policy, binding


def _documents(path: Path, name: str) -> tuple[Manifest, Manifest]:
    try:
        documents = [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]
    except (OSError, yaml.YAMLError) as error:
        raise PolicyError(f"{path} cannot be read: {error}") from None
    by_kind = {document.get("kind"): document for document in documents}
    if len(documents) != len(_KINDS) or set(by_kind) != set(_KINDS):
        raise PolicyError(f"{path} must hold one {_KINDS[0]} and one {_KINDS[1]}, and nothing else.")
    policy, binding = (by_kind[kind] for kind in _KINDS)
    if {policy["metadata"]["name"], binding["metadata"]["name"], binding["spec"].get("policyName")} != {name}:
        raise PolicyError(f"{path}: policy, binding and the binding's policyName must be named {name}.")
    return policy, binding
