"""Policies on trial: copies that judge dry runs in namespaces of their own and touch nothing else in the cluster.

Each copy is bound, in deny mode, to one empty namespace made for it. So the cluster's own API server says what a policy
would do before it is switched on anywhere, and one policy's refusal never hides another's.
"""

import copy
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from berkelium_lab.api import Api, ApiError
from berkelium_lab.wait import NotYet, until

Manifest = dict[str, Any]

MARKER = "berkelium-policy-trial"
LIVE_WITHIN_SECONDS = 30

_POLICY, _BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
_API = "admissionregistration.k8s.io/v1"
_DENIED = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.*)", re.DOTALL)
_FAILED = re.compile(r"failed to evaluate|resulted in error|cost limit exceeded")


class EvaluationError(Exception):
    """A policy could not be evaluated for an object; that is a fault of the policy, never of the object."""


@dataclass(frozen=True)
class Refusal:
    """What a policy said to an object."""

    policy: str
    text: str


def refusal_of(error: ApiError) -> Refusal | None:
    """The policy's refusal that the error is, or None when something else refused; raises `EvaluationError`."""
    found = _DENIED.search(error.message)
    if not found:
        return None
    if _FAILED.search(found[2]):
        raise EvaluationError(f"{found[1]}: {found[2]}")
    return Refusal(found[1], found[2])


def ask(api: Api, obj: Manifest, namespace: str) -> Refusal | None:
    """The refusal of creating `obj` in that namespace by server-side dry run; raises `ApiError` for any other error."""
    obj = {**obj, "metadata": {**obj.get("metadata", {}), "namespace": namespace}}
    try:
        api.create(obj, dry_run=True, strict=False)
    except ApiError as error:
        if (refusal := refusal_of(error)) is None:
            raise
        return refusal
    return None


@dataclass(frozen=True)
class Trial:
    """Copies of policies, by name, each live in its own namespace."""

    api: Api
    namespaces: Mapping[str, str]

    def refusals(self, obj: Manifest) -> list[Refusal]:
        """What each policy says to creating `obj`; empty when none objects.

        Where a policy is also in force in the cluster, its own refusal may come first; it counts once.
        """
        found: dict[str, Refusal] = {}
        for name, namespace in self.namespaces.items():
            if refusal := ask(self.api, obj, namespace):
                by = name if refusal.policy == namespace else refusal.policy
                found.setdefault(by, Refusal(by, refusal.text))
        return list(found.values())


@contextmanager
def trial(api: Api, policies: Mapping[str, Manifest]) -> Iterator[Trial]:
    """Copies of the policies, live; at the end nothing of them is left.

    Raises `ApiError` when the user may not make namespaces and policies or one of them is invalid.
    """
    suffix = secrets.token_hex(3)
    namespaces = {name: f"{MARKER}-{suffix}-{number}" for number, name in enumerate(policies)}
    try:
        for name, policy in policies.items():
            _install(api, policy, namespaces[name])
        for name, namespace in namespaces.items():
            until(partial(_live, api, namespace), f"policy {name} is live", LIVE_WITHIN_SECONDS, 0.05)
        yield Trial(api, namespaces)
    finally:
        for namespace in namespaces.values():
            api.delete(_API, _BINDING, namespace)
            api.delete(_API, _POLICY, namespace)
            api.delete("v1", "Namespace", namespace)


def _install(api: Api, policy: Manifest, namespace: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    policy = copy.deepcopy(policy)
    policy["metadata"] = {"name": namespace}
    policy["spec"]["validations"].append(
        {"expression": f"object.metadata.?name.orValue('') != '{MARKER}'", "message": "live"}
    )
    api.create(policy)
    term = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    api.create(
        {
            "apiVersion": _API,
            "kind": _BINDING,
            "metadata": {"name": namespace},
            "spec": {
                "policyName": namespace,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {"matchExpressions": [term]}},
            },
        }
    )


def _live(api: Api, namespace: str) -> bool:
    seen = "allowed"
    for marker in _markers():
        try:
            refusal = ask(api, marker, namespace)
        except EvaluationError:
            return True
        if refusal and refusal.policy == namespace:
            return True
        seen = f"refused by {refusal.policy}" if refusal else seen
    raise NotYet(f"the marker was {seen}")


def _markers() -> list[Manifest]:
    """A template and a controlled pod, since a policy may ask for one of them only."""
    resources = {key: {"cpu": "1", "memory": "1Gi"} for key in ("requests", "limits")}
    spec = {"containers": [{"name": "main", "image": "none", "command": ["true"], "resources": resources}]}
    owner = {"apiVersion": "berkelium.io/v1", "kind": "Trial", "name": MARKER, "uid": MARKER, "controller": True}
    template = {"metadata": {"labels": {"app": MARKER}}, "spec": spec}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": MARKER},
            "spec": {"selector": {"matchLabels": {"app": MARKER}}, "template": template},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": MARKER, "ownerReferences": [owner]}, "spec": spec},
    ]
