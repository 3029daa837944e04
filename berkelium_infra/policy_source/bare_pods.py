"""The variant of `no-idle-gpu` for pods without a controller, which the policy itself leaves alone.

The documentation forbids idle holders in Jobs and Deployments; whether a pod that somebody made by hand may sleep is
the administrator's decision. `allow` means that the variant is not declared at all.
"""

import copy
from typing import Any

Manifest = dict[str, Any]

NAME = "no-idle-gpu-bare-pods"
MODES = ("allow", "warn", "deny")

_ACTIONS = {"warn": ["Warn", "Audit"], "deny": ["Deny", "Audit"]}
_CONTROLLED = "controlled"
_PODS = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
_ADVICE = (
    "'Run the work, save checkpoints to a PVC and let the container exit when it is done; in this cluster a pod without"
    " a controller must not hold an idle GPU either'"
)


def variant(policy: Manifest, binding: Manifest, mode: str) -> list[Manifest]:
    """The policy and binding for bare pods in that mode, made from the two of `no-idle-gpu`; none for `allow`.

    The binding keeps the exempt namespaces of the one that is given. Raises `ValueError` for an unknown mode or a
    policy that has no condition on the pod's controller.
    """
    if mode not in MODES:
        raise ValueError(f"{mode!r} is no mode for bare pods; write {', '.join(MODES)}")
    if mode == "allow":
        return []
    policy, binding = copy.deepcopy(policy), copy.deepcopy(binding)
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = NAME
    spec = policy["spec"]
    spec["matchConstraints"]["resourceRules"] = copy.deepcopy(_PODS)
    _named(spec["matchConditions"], _CONTROLLED).update(
        name="bare",
        expression="!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))",
    )
    _named(spec["variables"], "advice")["expression"] = _ADVICE
    binding["spec"]["validationActions"] = list(_ACTIONS[mode])
    return [policy, binding]


def _named(entries: list[Manifest], name: str) -> Manifest:
    for entry in entries:
        if entry["name"] == name:
            return entry
    raise ValueError(f"the policy has no {name!r}")
