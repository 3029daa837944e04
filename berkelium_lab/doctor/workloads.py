"""Examination of what runs already: policies only see what is created, so older workloads may not meet them."""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from berkelium_infra.settings import PolicyMode
from berkelium_lab.api import Object
from berkelium_lab.doctor.admission import Verdict, ask
from berkelium_lab.doctor.cluster import Cluster, condition, name_of
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Finding, counted, info, some, warning
from berkelium_lab.doctor.policies import live
from berkelium_lab.doctor.registry import examination

_CONTROLLERS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ReplicationController"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
)
_KINDS = {kind for _, kind in _CONTROLLERS}
_AT_ONCE = 8
_SHOWN_TEXT = 300

# Job's controller writes these, and refuses them in a new Job.
_GENERATED_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_GENERATED_POD_FIELDS = ("priority", "ephemeralContainers", "nodeName", "overhead")


@examination
def running_workloads(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """Workloads that run already and would be refused today."""
    present = {name: found for name in expectation.policies if (found := live(cluster, name)) and found.bindings}
    active = [name for name, mode in expectation.policies.items() if name in present and mode is not PolicyMode.OFF]
    lasting = [one for one in cluster.namespaces if "deletionTimestamp" not in one["metadata"]]
    covered = {name_of(one) for one in lasting if any(present[name].covers(one) for name in active)}
    workloads = [one for one in _workloads(cluster) if one.namespace in covered]
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        verdicts = list(workers.map(lambda one: ask(cluster, one.anew()), workloads))
    refused: dict[str, list[str]] = defaultdict(list)
    unknown: list[str] = []
    for workload, verdict in zip(workloads, verdicts, strict=True):
        if verdict.denied_by in active:
            refused[verdict.denied_by].append(f"{workload.title}: {_cut(verdict)}")
        elif not verdict.judged:
            unknown.append(f"{workload.title}: {_cut(verdict)}")
    for name, lines in sorted(refused.items()):
        yield warning(
            "workload-refused",
            f"validatingadmissionpolicy/{name}",
            f"{counted(lines, 'workload')} that {name} would refuse today: what runs goes on, until it is made anew.",
            "Tell the owners; `berkelium check --fix` mends what can be mended.",
            *some(lines),
        )
    if unknown:
        yield info(
            "workload-not-judged",
            "workloads",
            f"{counted(unknown, 'workload')} refused for another reason before the policies were asked.",
            "",
            *some(unknown),
        )


@dataclass(frozen=True)
class _Workload:
    obj: Object

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"]["namespace"])

    @property
    def title(self) -> str:
        return f"{self.obj['kind']} {self.namespace}/{name_of(self.obj)}"

    def anew(self) -> Object:
        """The object as somebody would create it once more, under another name."""
        metadata = self.obj["metadata"]
        kept = {
            key: metadata[key] for key in ("namespace", "labels", "annotations", "ownerReferences") if key in metadata
        }
        kept["generateName"] = "berkelium-doctor-"
        obj = {**self.obj, "metadata": _without_generated(kept), "spec": dict(self.obj["spec"])}
        obj.pop("status", None)
        if obj["kind"] == "Job" and not obj["spec"].get("manualSelector"):
            obj["spec"].pop("selector", None)
        if obj["kind"] == "Pod":
            obj["spec"] = {key: value for key, value in obj["spec"].items() if key not in _GENERATED_POD_FIELDS}
        elif template := obj["spec"].get("template"):
            obj["spec"]["template"] = {**template, "metadata": _without_generated(template.get("metadata") or {})}
        return obj


def _without_generated(metadata: Object) -> Object:
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _GENERATED_LABELS}
    return {**metadata, "labels": labels}


def _workloads(cluster: Cluster) -> Iterator[_Workload]:
    """What runs, each by the object that people wrote: controllers without an owner, and pods of nobody known."""
    for api_version, kind in _CONTROLLERS:
        for obj in cluster.list(api_version, kind):
            if not _owner(obj) and _runs(obj):
                yield _Workload(obj)
    for pod in cluster.pods:
        finished = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not finished and _owner(pod) not in _KINDS and "deletionTimestamp" not in pod["metadata"]:
            yield _Workload(pod)


def _owner(obj: Object) -> str | None:
    owners = obj["metadata"].get("ownerReferences") or []
    return next((owner["kind"] for owner in owners if owner.get("controller")), None)


def _runs(obj: Object) -> bool:
    if obj["kind"] == "Job":
        return not any(condition(obj, state).get("status") == "True" for state in ("Complete", "Failed"))
    return obj["spec"].get("replicas", 1) > 0


def _cut(verdict: Verdict) -> str:
    text = " ".join(verdict.refusal.split())
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]} …"
