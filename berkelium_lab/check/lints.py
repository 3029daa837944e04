"""What neither the API server nor the scheduler will say, and a reader of the manifest can."""

from collections.abc import Iterator

from berkelium_lab.check.findings import Finding, Item, error, warning
from berkelium_lab.check.shapes import containers, dig, entries, extended_resources, joined, mapping, pod_template

DEFAULT_SCHEDULER = "default-scheduler"

_INJECTION = {
    "istio-injection": "enabled",
    "istio.io/rev": None,
    "sidecar.istio.io/inject": "true",
    "linkerd.io/inject": "enabled",
    "openservicemesh.io/sidecar-injection": "enabled",
    "kuma.io/sidecar-injection": "enabled",
    "consul.hashicorp.com/connect-inject": "true",
    "vault.hashicorp.com/agent-inject": "true",
    "sidecar.opentelemetry.io/inject": None,
}
"""Labels and annotations that make a webhook add containers; None stands for any value but `false` and `disabled`."""

_GPU_PREFIXES = ("nvidia.com/", "amd.com/")


def findings(item: Item) -> Iterator[Finding]:
    """The findings of one object by itself."""
    template = pod_template(item.obj)
    if template:
        pod, path = template
        for where in (pod, item.obj):
            yield from _injection(mapping(where.get("metadata")), "the pod")
        yield from _scheduling(pod, path)
    if item.kind == "Namespace":
        yield from _injection(item.metadata, "the namespace")
    if item.kind == "ResourceQuota":
        yield from _quota(item)


def injected_namespaces(items: list[Item]) -> dict[str, str]:
    """Namespaces of the input whose pods get containers from a webhook, with the label that says so."""
    found = {}
    for item in items:
        if item.kind == "Namespace":
            label = _injecting(item.metadata)
            if label:
                found[item.name] = label
    return found


def injection(namespace: str, label: str) -> Finding:
    """The warning for a pod in such a namespace."""
    message = f"namespace {namespace} has {label}: a webhook adds containers that are not in this file"
    return warning("injection", message, "see that the added containers state cpu and memory, or they are refused")


def _injecting(metadata: dict) -> str | None:
    for part in ("labels", "annotations"):
        for key, value in mapping(metadata.get(part)).items():
            if key in _INJECTION and str(value).lower() == (_INJECTION[key] or str(value).lower()):
                if str(value).lower() in ("false", "disabled"):
                    continue
                return f"{key}: {value}"
    return None


def _injection(metadata: dict, what: str) -> Iterator[Finding]:
    label = _injecting(metadata)
    if label:
        message = f"{what} has {label}: a webhook adds containers that are not in this file"
        yield warning("injection", message, "see that the added containers state cpu and memory, or they are refused")


def _scheduling(pod: dict, path: str) -> Iterator[Finding]:
    devices = extended_resources(pod) or entries(dig(pod, "spec.resourceClaims"))
    if dig(pod, "spec.nodeName") and devices:
        message = "nodeName passes the scheduler over, and only the scheduler gives devices"
        yield error("node-name", message, "use nodeSelector: kubernetes.io/hostname", joined(path, "spec.nodeName"))
    scheduler = dig(pod, "spec.schedulerName")
    if scheduler not in (None, DEFAULT_SCHEDULER):
        message = f"scheduler {scheduler} is not asked; the answer is the default scheduler's"
        yield warning("scheduler", message, path=joined(path, "spec.schedulerName"))
    named = [entries(dig(container, "resources.claims")) for container, _ in containers(pod)]
    used = {claim.get("name") for claims in named for _, claim in claims}
    for index, claim in entries(dig(pod, "spec.resourceClaims")):
        if claim.get("name") not in used:
            message = f"no container uses the claim {claim.get('name')}: the pod holds the devices and cannot see them"
            hint = f"resources:\n  claims:\n  - name: {claim.get('name')}"
            yield warning("unused-claim", message, hint, joined(path, f"spec.resourceClaims[{index}]"))


def _quota(item: Item) -> Iterator[Finding]:
    for key in mapping(dig(item.obj, "spec.hard")):
        if str(key).startswith(_GPU_PREFIXES):
            message = f"the quota key {key} has no effect"
            yield warning("quota-key", message, f"requests.{key}", f"spec.hard.{key}")
