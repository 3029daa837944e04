"""What runs in a cluster and would be refused by policies, found by the API server's own judgement of copies."""

import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from urllib3.exceptions import HTTPError

from berkelium_lab.api import Api, ApiError
from berkelium_lab.policy_trial import EvaluationError, Trial, trial
from berkelium_lab.wait import until

Manifest = dict[str, Any]

TEMPLATE_KINDS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("v1", "ReplicationController"),
    ("v1", "PodTemplate"),
)

# What the API server or a controller fills in and a new object may not or need not have.
_FILLED_IN_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_OF_ONE_POD = ("nodeName", "serviceAccount", "serviceAccountName", "priority", "ephemeralContainers", "hostname")


class LookError(Exception):
    """The cluster could not be asked; the text says what it answered."""


@dataclass(frozen=True)
class Violation:
    """A workload that a policy would refuse. `owner` is what its user made, such as `Deployment web`."""

    namespace: str
    owner: str
    policy: str
    message: str


@dataclass
class Report:
    """The outcome of an audit; `unjudged` are workloads that something else refused a copy of."""

    looked_at: int = 0
    violations: list[Violation] = field(default_factory=list)
    unjudged: list[Violation] = field(default_factory=list)

    def as_json(self) -> Manifest:
        return asdict(self)

    def as_text(self) -> str:
        """One line per owner and policy, and a last line with the numbers."""
        lines = [f"{each.namespace}  {each.owner}  {each.policy}\n    {each.message}" for each in self.violations]
        lines += [f"{each.namespace}  {each.owner}  could not be judged\n    {each.message}" for each in self.unjudged]
        numbers = f"{self.looked_at} workloads looked at, {len(self.violations)} refusals"
        return "\n".join([*lines, f"{numbers}, {len(self.unjudged)} not judged." if self.unjudged else f"{numbers}."])


def audit_cluster(cluster: Api, court: Api, policies: Mapping[str, Manifest], exempt: Collection[str]) -> Report:
    """Judge every workload of `cluster` outside the exempt namespaces by copies of the policies in `court`.

    `court` may be the cluster itself or another one, such as a lab. Raises `LookError` when either cannot be asked.
    """
    try:
        workloads = [each for each in _workloads(cluster) if each["metadata"]["namespace"] not in exempt]
        with trial(court, policies) as running:
            _wait_for_service_accounts(court, running)
            return _judged(running, workloads)
    except (ApiError, HTTPError, TimeoutError, EvaluationError) as error:
        raise LookError(f"the cluster could not be asked: {error}") from error


def _judged(running: Trial, workloads: list[Manifest]) -> Report:
    report = Report(looked_at=len(workloads))
    seen: set[Violation] = set()
    for obj in workloads:
        namespace, owner = obj["metadata"]["namespace"], _owner(obj)
        try:
            found = [Violation(namespace, owner, each.policy, each.text) for each in running.refusals(as_new(obj))]
        except ApiError as error:
            report.unjudged.append(Violation(namespace, owner, "", error.message))
            continue
        # The pods of one owner say the same thing many times.
        report.violations += [each for each in found if each not in seen]
        seen.update(found)
    report.violations.sort(key=lambda each: (each.namespace, each.owner, each.policy))
    return report


def _workloads(cluster: Api) -> Iterator[Manifest]:
    """Everything that its user made: templates without a controller, and pods that no template accounts for."""
    kinds = {kind for _, kind in TEMPLATE_KINDS}
    for api_version, kind in TEMPLATE_KINDS:
        yield from (obj for obj in cluster.list(api_version, kind) if _controller(obj) is None)
    for pod in cluster.list("v1", "Pod"):
        controller = _controller(pod)
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            continue
        if controller is None or controller["kind"] not in (*kinds, "Node"):
            yield pod


def _controller(obj: Manifest) -> Manifest | None:
    return next((owner for owner in obj["metadata"].get("ownerReferences", []) if owner.get("controller")), None)


def _owner(obj: Manifest) -> str:
    found = _controller(obj)
    return f"{found['kind']} {found['name']}" if found else f"{obj['kind']} {obj['metadata']['name']}"


def as_new(obj: Manifest) -> Manifest:
    """A copy of a stored object that can be created anew: without status, identity and what controllers filled in."""
    metadata = {key: value for key, value in obj["metadata"].items() if key in ("name", "labels", "annotations")}
    fresh = {key: copy.deepcopy(obj[key]) for key in ("apiVersion", "kind", "spec", "template") if key in obj}
    if obj["kind"] == "Pod":
        for key in _OF_ONE_POD:
            fresh["spec"].pop(key, None)
        owners = [{**owner, "blockOwnerDeletion": False} for owner in obj["metadata"].get("ownerReferences", [])]
        metadata |= {"ownerReferences": owners} if owners else {}
    if obj["kind"] == "Job":
        fresh["spec"].pop("selector", None)
        fresh["spec"].pop("manualSelector", None)
        labels = fresh["spec"]["template"].get("metadata", {}).get("labels", {})
        for label in _FILLED_IN_LABELS:
            labels.pop(label, None)
            metadata.get("labels", {}).pop(label, None)
    return {**fresh, "metadata": metadata}


def _wait_for_service_accounts(court: Api, running: Trial) -> None:
    """A pod is refused in a namespace whose default service account is not there yet."""
    for namespace in running.namespaces.values():
        until(
            lambda namespace=namespace: court.get("v1", "ServiceAccount", "default", namespace),
            f"namespace {namespace} has its service account",
            30,
        )
