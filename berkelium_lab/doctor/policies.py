"""Examinations of the admission policies: there, bound as intended, and really refusing."""

from collections.abc import Iterator
from dataclasses import dataclass

from berkelium_infra import policies
from berkelium_infra.policies import NAMESPACE_NAME_LABEL
from berkelium_infra.settings import PolicyMode
from berkelium_lab.api import Object
from berkelium_lab.doctor.admission import Verdict, ask
from berkelium_lab.doctor.cluster import ADMISSION_API, Cluster, name_of
from berkelium_lab.doctor.compare import differences, excluded_names, selects
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Finding, error, info, some, warning
from berkelium_lab.doctor.plugins import labels_of
from berkelium_lab.doctor.probes import admissible, refusable
from berkelium_lab.doctor.registry import examination

_APPLY = "Apply the stack: `pulumi up --refresh`."


@dataclass(frozen=True)
class Live:
    """A policy of the cluster with its bindings."""

    policy: Object
    bindings: tuple[Object, ...]

    def covers(self, namespace: Object) -> bool:
        """Whether the policy applies in the namespace."""
        labels = {NAMESPACE_NAME_LABEL: name_of(namespace), **labels_of(namespace)}
        own = self.policy["spec"].get("matchConstraints") or {}
        return selects(own.get("namespaceSelector"), labels) and any(
            selects((binding["spec"].get("matchResources") or {}).get("namespaceSelector"), labels)
            for binding in self.bindings
        )


def live(cluster: Cluster, name: str) -> Live | None:
    """The policy of that name as it is in the cluster; None when it is not there."""
    policy = cluster.named(ADMISSION_API, "ValidatingAdmissionPolicy", name)
    if policy is None:
        return None
    bindings = cluster.list(ADMISSION_API, "ValidatingAdmissionPolicyBinding")
    return Live(policy, tuple(one for one in bindings if one["spec"].get("policyName") == name))


@examination
def admission_policies(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """The admission policies: there, as declared, bound in the intended mode."""
    exempt = expectation.settings.policy_exemptions
    for name, mode in expectation.policies.items():
        subject = f"validatingadmissionpolicy/{name}"
        found = live(cluster, name)
        if found is None:
            yield error("policy-missing", subject, f"The policy {name} does not exist.", _APPLY)
            continue
        declared, binding = policies.load(name, mode, exempt, expectation.project)
        if paths := list(differences(declared["spec"], found.policy["spec"])):
            yield error(
                "policy-differs", subject, f"The policy {name} is not what its file says.", _APPLY, *some(paths)
            )
        yield from _type_check(found.policy, subject)
        if binding is None:
            if found.bindings:
                yield error("policy-mode", subject, f"The policy {name} is meant to be off, and is bound.", _APPLY)
        elif not found.bindings:
            yield error(
                "policy-unbound", subject, f"The policy {name} has no binding, so it applies to nothing.", _APPLY
            )
        else:
            yield from _binding(found, binding, mode, subject)
            yield from _exemptions(cluster, found, set(exempt), subject)


def _type_check(policy: Object, subject: str) -> Iterator[Finding]:
    checked = ((policy.get("status") or {}).get("typeChecking") or {}).get("expressionWarnings") or []
    if checked:
        yield warning(
            "policy-type-check",
            subject,
            f"The API server's type check has something against the policy {name_of(policy)}.",
            "Mend the expressions in the policy's file; the check may also be wrong where types differ by kind.",
            *some([f"{entry['fieldRef']}: {' '.join(entry['warning'].split())}" for entry in checked]),
        )


def _binding(found: Live, declared: Object, mode: PolicyMode, subject: str) -> Iterator[Finding]:
    name = name_of(found.policy)
    wanted = declared["spec"]
    for binding in found.bindings:
        actions = binding["spec"].get("validationActions") or []
        if sorted(actions) != sorted(wanted["validationActions"]):
            yield error(
                "policy-mode",
                subject,
                f"The policy {name} is meant to {mode.value}, and its binding says {', '.join(actions)}.",
                f"{_APPLY} When the mode is meant to be another, set it in policies of the stack file.",
                f"binding {name_of(binding)}; {mode.value} means {', '.join(wanted['validationActions'])}",
            )
        paths = list(differences(_compared(wanted), _compared(binding["spec"])))
        if paths:
            yield error(
                "policy-differs",
                f"validatingadmissionpolicybinding/{name_of(binding)}",
                f"The binding {name_of(binding)} is not what its file says: it may leave objects out.",
                _APPLY,
                *some(paths),
            )


def _compared(spec: Object) -> Object:
    """The parts of a binding that no other finding is about."""
    inside = {key: value for key, value in (spec.get("matchResources") or {}).items() if key != "namespaceSelector"}
    return {**{key: value for key, value in spec.items() if key != "validationActions"}, "matchResources": inside}


def _exemptions(cluster: Cluster, found: Live, allowed: set[str], subject: str) -> Iterator[Finding]:
    name = name_of(found.policy)
    exempt = {name_of(namespace) for namespace in cluster.namespaces if not found.covers(namespace)}
    named = [
        excluded_names((binding["spec"].get("matchResources") or {}).get("namespaceSelector"), NAMESPACE_NAME_LABEL)
        for binding in found.bindings
    ]
    beyond = sorted((exempt | set.intersection(*named)) - allowed)
    if beyond:
        yield error(
            "policy-exemptions",
            subject,
            f"The policy {name} leaves alone namespaces that the configuration does not exempt: {', '.join(beyond)}.",
            f"{_APPLY} Or add them to exemptNamespaces.",
        )
    covered = sorted(allowed & {name_of(namespace) for namespace in cluster.namespaces} - exempt)
    if covered:
        yield error(
            "policy-exemptions",
            subject,
            f"The policy {name} applies in namespaces that the configuration exempts: {', '.join(covered)}. "
            "Drivers and Helm's hooks may be refused there.",
            _APPLY,
        )


@examination
def policies_refuse(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """Whether the admission policies really refuse and admit, by dry run of a pod in a tenant namespace."""
    for name, mode in expectation.policies.items():
        found = live(cluster, name)
        if found is None or not found.bindings or mode is PolicyMode.OFF:
            continue
        namespace = _tenant(cluster, expectation, found)
        subject = f"validatingadmissionpolicy/{name}"
        if namespace is None:
            yield info(
                "policy-not-probed",
                subject,
                f"Whether the policy {name} refuses was not tried: no tenant namespace is there.",
                "Add one to projectNamespaces.",
            )
            continue
        yield from _admits(ask(cluster, admissible(namespace)), name, namespace, subject)
        verdicts = [ask(cluster, obj) for obj in refusable(name, namespace, expectation.project)]
        if verdicts:
            yield from _refuses(verdicts, name, mode, namespace, subject)


def _tenant(cluster: Cluster, expectation: Expectation, policy: Live) -> str | None:
    """A namespace in which the policy must work: one of the stack's projects, else any that it covers."""
    exempt = set(expectation.settings.policy_exemptions)
    covered = [
        name_of(one)
        for one in cluster.namespaces
        if policy.covers(one) and name_of(one) not in exempt and "deletionTimestamp" not in one["metadata"]
    ]
    projects = [name for name in expectation.settings.project_labels if name in covered]
    return next(iter([*projects, *covered]), None)


def _admits(verdict: Verdict, name: str, namespace: str, subject: str) -> Iterator[Finding]:
    if verdict.denied_by == name:
        yield error(
            "policy-refuses-everything",
            subject,
            f"The policy {name} refuses a pod that it must admit.",
            "Apply the stack; when it stays so, set the policy's mode to warn and mend its expressions.",
            f"namespace {namespace}: {verdict.refusal}",
        )


def _refuses(verdicts: list[Verdict], name: str, mode: PolicyMode, namespace: str, subject: str) -> Iterator[Finding]:
    if any(_as_intended(verdict, name, mode) for verdict in verdicts):
        return
    seen = verdicts[0]
    if not seen.judged or (seen.denied_by and seen.denied_by != name):
        yield info(
            "policy-not-probed",
            subject,
            f"Whether the policy {name} refuses could not be tried: something else refused the probe first.",
            "",
            f"namespace {namespace}: {seen.refusal}",
        )
        return
    if seen.denied_by:
        said = "refused"
    elif name in seen.warned_by:
        said = "admitted with a warning"
    else:
        said = "admitted without a word"
    yield error(
        "policy-not-refusing",
        subject,
        f"The policy {name} is meant to {mode.value}; a pod that it must find fault with was {said}.",
        _APPLY,
        f"dry run in namespace {namespace}",
    )


def _as_intended(verdict: Verdict, name: str, mode: PolicyMode) -> bool:
    if mode is PolicyMode.DENY:
        return verdict.denied_by == name
    if mode is PolicyMode.WARN:
        return name in verdict.warned_by
    return verdict.judged and verdict.denied_by != name and name not in verdict.warned_by
