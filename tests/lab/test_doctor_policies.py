"""Faults of the admission policies in a lab, and what the doctor says of workloads that are older than they are."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from berkelium_infra.settings import PolicyMode
from berkelium_lab.api import Api, ApiError
from berkelium_lab.doctor import Expectation
from berkelium_lab.lab import Lab
from berkelium_lab.wait import NotYet, until
from tests.lab import workloads
from tests.lab.doctor_faults import ADMISSION_API, Doctor, added, changed, on, removed

POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
IDLE, SUBJECT = "no-idle-gpu", "validatingadmissionpolicy/no-idle-gpu"
NOT_REFUSING = ("error", "policy-not-refusing", SUBJECT)


@pytest.fixture(scope="module")
def doctor(lab: Lab, deployed: Api) -> Iterator[Doctor]:
    """The doctor on the main lab, which is healthy before and after."""
    with on(lab, deployed) as doctor:
        yield doctor


def test_a_missing_policy_is_found(doctor: Doctor) -> None:
    with removed(doctor.api, ADMISSION_API, POLICY, IDLE):
        doctor.finds(("error", "policy-missing", SUBJECT))
    doctor.healthy()


def test_a_mode_that_somebody_softened_is_found_by_its_binding_and_by_trying(doctor: Doctor) -> None:
    def change(obj: dict) -> None:
        obj["spec"]["validationActions"] = ["Warn", "Audit"]

    with changed(doctor.api, ADMISSION_API, BINDING, IDLE, change):
        doctor.finds(("error", "policy-mode", SUBJECT), NOT_REFUSING)
        assert "admitted with a warning" in doctor.only("policy-not-refusing").summary
        warned = {name: PolicyMode.WARN if name == IDLE else mode for name, mode in doctor.expectation.policies.items()}
        Doctor(doctor.api, Expectation(doctor.expectation.settings, warned, doctor.expectation.project)).healthy()
    doctor.healthy()


def test_a_policy_that_was_emptied_is_found(doctor: Doctor) -> None:
    def change(obj: dict) -> None:
        obj["spec"]["validations"][0]["expression"] = "true"

    with changed(doctor.api, ADMISSION_API, POLICY, IDLE, change):
        doctor.finds(("error", "policy-differs", SUBJECT), NOT_REFUSING)
        assert "admitted without a word" in doctor.only("policy-not-refusing").summary
    doctor.healthy()


def test_a_policy_that_refuses_everything_and_fails_the_type_check_is_found(doctor: Doctor) -> None:
    def change(obj: dict) -> None:
        obj["spec"]["validations"][0]["expression"] = "has(object.spec.nonsense)"

    with changed(doctor.api, ADMISSION_API, POLICY, IDLE, change):
        doctor.finds(
            ("error", "policy-differs", SUBJECT),
            ("error", "policy-refuses-everything", SUBJECT),
            ("warning", "policy-type-check", SUBJECT),
        )
    doctor.healthy()


def test_a_namespace_that_somebody_exempted_is_found(doctor: Doctor, namespace: str) -> None:
    def change(obj: dict) -> None:
        obj["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"].append(namespace)

    with changed(doctor.api, ADMISSION_API, BINDING, IDLE, change):
        doctor.finds(("error", "policy-exemptions", SUBJECT))
        assert f"does not exempt: {namespace}." in doctor.only("policy-exemptions").summary
    doctor.healthy()


def test_an_exemption_that_somebody_took_away_is_found(doctor: Doctor) -> None:
    def change(obj: dict) -> None:
        obj["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"].remove("kube-amd-gpu")

    with changed(doctor.api, ADMISSION_API, BINDING, IDLE, change):
        doctor.finds(("error", "policy-exemptions", SUBJECT))
    doctor.healthy()


def test_a_policy_without_a_binding_is_found_and_so_is_what_ran_past_it(doctor: Doctor, namespace: str) -> None:
    api, pods = doctor.api, "validatingadmissionpolicy/require-resources"
    container = {"name": "main", "image": "example.com/work:1", "command": ["work"]}
    pod = {**workloads.pod(namespace, "old"), "spec": {"containers": [container]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "old", "namespace": namespace},
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    with ExitStack() as afterwards:
        with removed(api, ADMISSION_API, BINDING, "require-resources"):
            doctor.finds(("error", "policy-unbound", pods))
            until(lambda: admitted(api, pod), "the API server has noticed that the policy is not bound", 30)
            afterwards.enter_context(added(api, pod, job))
        doctor.finds(("warning", "workload-refused", pods))
        lines = doctor.only("workload-refused").evidence
        assert [line.partition(":")[0] for line in lines] == [f"Job {namespace}/old", f"Pod {namespace}/old"]
        assert all("container main lacks requests.cpu" in line for line in lines)
    doctor.healthy()


def limits(namespace: str) -> dict:
    """A LimitRange that no pod of these tests meets; its plugin answers before the policies do."""
    spec = {"limits": [{"type": "Container", "min": {"cpu": "500"}}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "odd", "namespace": namespace}, "spec": spec}


def infos(doctor: Doctor) -> set[tuple[str, str]]:
    """Id and first evidence of the infos on policies and workloads."""
    found = {(f.id, f.evidence[0]) for f in doctor.findings() if f.id in ("policy-not-probed", "workload-not-judged")}
    if not found:
        raise NotYet("no info on policies and workloads")
    return found


def test_a_probe_that_something_else_refuses_first_proves_nothing_and_is_said(doctor: Doctor) -> None:
    with added(doctor.api, limits("my-project")):
        ((id, evidence),) = until(lambda: infos(doctor), "the doctor says that it could not try", 30)
        assert id == "policy-not-probed"
        assert "minimum cpu usage per Container is 500" in evidence
        doctor.healthy()


def test_a_workload_that_something_else_would_refuse_is_not_laid_at_the_policies_door(
    doctor: Doctor, namespace: str
) -> None:
    with added(doctor.api, workloads.pod(namespace, "small"), limits(namespace)):
        ((id, evidence),) = until(lambda: infos(doctor), "the doctor says that it could not judge", 30)
        assert id == "workload-not-judged"
        assert evidence.startswith(f"Pod {namespace}/small: ")
        doctor.healthy()


def admitted(api: Api, obj: dict) -> bool:
    """Whether the API server would take the object now."""
    try:
        api.create(obj, dry_run=True)
    except ApiError as error:
        raise NotYet(str(error)) from None
    return True
