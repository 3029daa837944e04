"""Forms that were right once, or elsewhere, and what to write instead."""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from berkelium_infra.catalog import DEVICE_CLASSES, MODELS, NVIDIA, NVLINK_DOMAIN_ATTRIBUTE
from berkelium_infra.claims import nvlink_selector, whole_gpu_class
from berkelium_lab.check import mending
from berkelium_lab.check.findings import Finding, Item, Object, Severity
from berkelium_lab.check.shapes import claim_spec, containers, dig, entries, joined, mapping, pod_template

MIG_RESOURCE = re.compile(r"^nvidia\.com/mig-(\d+g\.\d+gb)(?:\.(me))?(?:\.shared)?$")
_VENDOR_LABELS = ("nvidia.com/", "amd.com/", "beta.amd.com/")
_NVLINK_SPELLINGS = re.compile(rf'attributes\[["\']{re.escape(NVIDIA.driver)}["\']\]\.{NVLINK_DOMAIN_ATTRIBUTE}\b')


@dataclass(frozen=True)
class Stale:
    """A stale form: where it is, what is wrong with it, and the new form.

    `refused`: the API server refuses it. `covers` is the part of the object about which it then complains, if that is
    more than `path`.
    """

    path: str
    problem: str
    instead: str
    refused: bool
    covers: str = ""
    severity: Severity = Severity.WARNING

    def finding(self) -> Finding:
        """As a finding of its own."""
        return Finding(self.severity, "stale-form", self.problem, self.instead, self.path)


def forms(item: Item) -> list[Stale]:
    """Every stale form in an object."""
    found = [*_version(item.obj), *_claim(item.obj)]
    template = pod_template(item.obj)
    if template:
        pod, path = template
        found += [*_pod_claims(pod, path), *_mig_resources(pod, path), *_node_labels(pod, path)]
    return [*found, *_nvlink(item.obj)]


def _version(obj: Object) -> Iterator[Stale]:
    if obj.get("kind") == "ResourceClass" and mending.is_old_version(obj):
        problem = "ResourceClass became DeviceClass"
        yield Stale("kind", problem, "name a DeviceClass of the cluster: " + ", ".join(_class_names()), refused=True)
    elif mending.is_old_version(obj):
        problem = f"{obj['apiVersion']} is an API version of earlier Kubernetes releases"
        yield Stale("apiVersion", problem, f"apiVersion: {mending.RESOURCE_API}", refused=True)


def _claim(obj: Object) -> Iterator[Stale]:
    found = claim_spec(obj)
    if not found:
        return
    spec, path = found
    if isinstance(spec.get("resourceClassName"), str):
        new = _rewritten(spec, mending.renew_class_name)
        yield Stale(f"{path}.resourceClassName", "resourceClassName is of v1alpha2", new, refused=True)
    for index, request in mending.device_requests(spec):
        if mending.lacks_exactly(request):
            field = next(key for key in request if key in mending.REQUEST_FIELDS)
            new = _rewritten([request], lambda requests: mending.wrap_in_exactly(requests[0]))
            problem = f"{field} stands beside the request's name; in v1 it belongs under exactly"
            entry = f"{path}.devices.requests[{index}]"
            yield Stale(f"{entry}.{field}", problem, new, refused=True, covers=entry)


def _pod_claims(pod: Object, path: str) -> Iterator[Stale]:
    for index, claim in entries(dig(pod, "spec.resourceClaims")):
        if isinstance(claim.get("source"), dict):
            new = _rewritten([claim], lambda claims: mending.flatten_source(claims[0]))
            where = joined(path, f"spec.resourceClaims[{index}].source")
            yield Stale(where, "source is of v1alpha2; the name stands beside the claim's own", new, refused=True)


def _mig_resources(pod: Object, path: str) -> Iterator[Stale]:
    for container, below in containers(pod):
        for side in ("limits", "requests"):
            for name in mapping(dig(container, f"resources.{side}")):
                match = MIG_RESOURCE.match(str(name))
                if match and (side == "limits" or name not in mapping(dig(container, "resources.limits"))):
                    profile = match[1] + ("+me" if match[2] else "")
                    problem = f"{name} is a name of the device plugin's; here MIG devices are asked for by a claim"
                    where = joined(path, below, f"resources.{side}.{name}")
                    yield Stale(where, problem, mig_template(profile), refused=False)


def mig_template(profile: str) -> str:
    """A claim template for one MIG device of that profile, as YAML, with how a pod names it."""
    expression = f'device.attributes["{NVIDIA.driver}"].profile == "{profile}"'
    name = "mig-" + re.sub(r"[^a-z0-9]+", "-", profile)
    request = {"deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression": expression}}]}
    template = {
        "apiVersion": mending.RESOURCE_API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}},
    }
    use = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
        "containers": [{"resources": {"claims": [{"name": "gpu"}]}}],
    }
    return f"{_yaml(template)}\n---\n# in the pod's spec:\n{_yaml(use)}"


def _node_labels(pod: Object, path: str) -> Iterator[Stale]:
    for key, values, where in _selected_labels(pod):
        if key.startswith(_VENDOR_LABELS):
            problem = f"the node label {key} is set by the device plugin's label maker, not by this stack"
            yield Stale(joined(path, where), problem, _instead_of_label(values), refused=False)


def _selected_labels(pod: Object) -> Iterator[tuple[str, list[str], str]]:
    for key, value in mapping(dig(pod, "spec.nodeSelector")).items():
        yield str(key), [str(value)], f"spec.nodeSelector.{key}"
    affinity = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    for number, term in entries(dig(pod, affinity)):
        for index, expression in entries(term.get("matchExpressions")):
            values = expression.get("values")
            where = f"{affinity}[{number}].matchExpressions[{index}]"
            yield str(expression.get("key")), [str(v) for v in values] if isinstance(values, list) else [], where


def _instead_of_label(values: list[str]) -> str:
    """The class and extended resource of the models that the values seem to mean."""
    words = {word for value in values for word in re.split(r"[^a-z0-9]+", value.lower())}
    meant = [model for model in MODELS if model.key in words]
    if not meant:
        return "ask for the model by its device class, one of " + ", ".join(_class_names())
    classes = [whole_gpu_class(model) for model in meant]
    return "drop it and ask for the model: " + ", ".join(
        f"deviceClassName: {c.name}" + (f", or the limit {c.extended_resource}" if c.extended_resource else "")
        for c in classes
    )


def _nvlink(obj: Object) -> Iterator[Stale]:
    """The attribute is Berkelium's own: right on its nodes, an error for the scheduler on every other."""
    found = claim_spec(obj)
    if not found:
        return
    text = yaml.safe_dump(found[0], width=10_000)
    matched = f"{NVIDIA.driver}/{NVLINK_DOMAIN_ATTRIBUTE}"
    if _NVLINK_SPELLINGS.search(text) or any(
        constraint.get("matchAttribute") == matched for _, constraint in entries(dig(found[0], "devices.constraints"))
    ):
        problem = f"only Berkelium's own nodes publish {matched}; with the upstream driver it does not exist"
        yield Stale(found[1], problem, nvlink_form(), refused=False, severity=Severity.NOTE)


def nvlink_form() -> str:
    """Selectors for an NVLink domain that hold on any fleet."""
    lines = ["a selector that holds on any fleet, one per NVLink domain:"]
    for model in MODELS:
        for domain in model.nvlink_domains:
            lines += [f"# {model.title}, domain {domain.name}", nvlink_selector(model, domain)]
    return "\n".join(lines)


def _class_names() -> list[str]:
    return [device_class.name for device_class in DEVICE_CLASSES]


def _rewritten(value: Any, mend: Any) -> str:
    changed = copy.deepcopy(value)
    mend(changed)
    return _yaml(changed)


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=110).rstrip()
