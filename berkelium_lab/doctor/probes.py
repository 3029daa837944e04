"""Pods by which a policy shows whether it works: one that it must refuse, and one that every policy must admit.

They meet the restricted Pod Security Standard, whose plugin answers before the policies do.
"""

from collections.abc import Iterator
from pathlib import Path

import yaml

from berkelium_infra.catalog import DEVICE_CLASSES
from berkelium_lab.api import Object

PROBE = "berkelium-doctor-probe"

_AMOUNTS = {"cpu": "1m", "memory": "1Mi"}
_GPU = {resource: "1" for one in DEVICE_CLASSES[:1] if (resource := one.extended_resource)}


def admissible(namespace: str) -> Object:
    """A pod of a controller that works on a GPU and states its resources."""
    return _pod(namespace, ["work"], {"requests": {**_AMOUNTS, **_GPU}, "limits": {**_AMOUNTS, **_GPU}}, owned=True)


def refusable(policy: str, namespace: str, project: Path) -> Iterator[Object]:
    """Objects that the policy must refuse: a probe of ours or, for another policy, its own samples."""
    if policy == "require-resources":
        yield _pod(namespace, ["work"], {}, owned=False)
    elif policy == "no-idle-gpu":
        resources = {"requests": {**_AMOUNTS, **_GPU}, "limits": {**_AMOUNTS, **_GPU}}
        yield _pod(namespace, ["sleep", "infinity"], resources, owned=True)
    else:
        for sample in sorted((project / "policies" / policy / "samples" / "denied").glob("*.yaml")):
            for obj in yaml.safe_load_all(sample.read_text(encoding="utf-8")):
                if obj:
                    yield {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def _pod(namespace: str, command: list[str], resources: Object, owned: bool) -> Object:
    metadata: Object = {"name": PROBE, "namespace": namespace}
    if owned:
        # The policies leave pods alone that nobody's controller made.
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": PROBE, "uid": PROBE, "controller": True}
        metadata["ownerReferences"] = [owner]
    container = {
        "name": "probe",
        "image": "example.com/probe:1",
        "command": command,
        "resources": resources,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
