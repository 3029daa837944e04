"""The doctor on the admission policies and on the workloads that were there before them."""

import pytest

from berkelium_infra.settings import PolicyMode, Settings
from berkelium_lab.api import ApiError
from berkelium_lab.doctor.expectation import Expectation
from tests.unit.doctor_world import EXPECTATION, WARNED, World, admit, healthy, namespace, obj

POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
NAMES = tuple(EXPECTATION.policies)
IDLE, SUBJECT = "no-idle-gpu", "validatingadmissionpolicy/no-idle-gpu"


def selector(world: World, policy: str = IDLE) -> list[dict]:
    """The expressions of the binding's namespace selector."""
    return world.one(BINDING, policy)["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_policy_is_an_error(name: str) -> None:
    world = healthy()
    world.remove(POLICY, name)
    assert world.problems() == {("error", "policy-missing", f"validatingadmissionpolicy/{name}")}


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_without_a_binding_is_an_error(name: str) -> None:
    world = healthy()
    world.remove(BINDING, name)
    assert world.problems() == {("error", "policy-unbound", f"validatingadmissionpolicy/{name}")}


def test_defaults_that_the_api_server_writes_are_no_difference() -> None:
    world = healthy()
    match = world.one(POLICY, IDLE)["spec"]["matchConstraints"]
    match.update({"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}})
    for rule in match["resourceRules"]:
        rule["scope"] = "*"
    world.one(BINDING, IDLE)["spec"]["matchResources"].update({"matchPolicy": "Equivalent", "objectSelector": {}})
    assert world.problems() == set()


def test_another_expression_than_the_file_s_is_an_error_with_its_place() -> None:
    world = healthy()
    world.one(POLICY, IDLE)["spec"]["validations"][0]["expression"] = "true"
    assert world.problems() == {("error", "policy-differs", SUBJECT)}
    assert world.only("policy-differs").evidence == ("spec.validations[0].expression",)


def test_a_failure_policy_that_lets_pass_is_an_error() -> None:
    world = healthy()
    world.one(POLICY, IDLE)["spec"]["failurePolicy"] = "Ignore"
    assert world.problems() == {("error", "policy-differs", SUBJECT)}


def test_an_object_selector_that_lets_tenants_exempt_themselves_is_an_error() -> None:
    world = healthy()
    labels = {"matchExpressions": [{"key": "skip-policy", "operator": "DoesNotExist"}]}
    world.one(BINDING, IDLE)["spec"]["matchResources"]["objectSelector"] = labels
    assert world.problems() == {("error", "policy-differs", "validatingadmissionpolicybinding/no-idle-gpu")}


def test_another_mode_than_the_intended_one_is_an_error() -> None:
    world = healthy()
    world.one(BINDING, IDLE)["spec"]["validationActions"] = ["Audit"]
    assert world.problems() == {("error", "policy-mode", SUBJECT)}
    assert world.only("policy-mode").evidence == ("binding no-idle-gpu; deny means Deny, Audit",)


def test_a_policy_that_is_meant_to_be_off_and_is_bound_is_an_error() -> None:
    expectation = Expectation(EXPECTATION.settings, {IDLE: PolicyMode.OFF})
    assert healthy().problems(expectation) == {("error", "policy-mode", SUBJECT)}


def test_a_policy_that_is_meant_to_be_off_and_is_not_bound_is_fine() -> None:
    world = healthy()
    world.remove(BINDING, IDLE)
    assert world.problems(Expectation(EXPECTATION.settings, {IDLE: PolicyMode.OFF})) == set()


def test_a_namespace_that_is_exempt_beyond_the_configuration_is_an_error_even_before_it_exists() -> None:
    world = healthy()
    selector(world)[0]["values"].append("tenant-a")
    assert world.problems() == {("error", "policy-exemptions", SUBJECT)}
    assert "does not exempt: tenant-a." in world.only("policy-exemptions").summary


def test_a_namespace_that_is_exempt_by_a_label_is_an_error() -> None:
    world = healthy()
    selector(world).append({"key": "exempt", "operator": "DoesNotExist"})
    tenant = namespace("tenant-a")
    tenant["metadata"]["labels"]["exempt"] = "please"
    world.add(tenant)
    assert world.problems() == {("error", "policy-exemptions", SUBJECT)}


def test_an_exemption_of_the_configuration_that_is_not_in_force_is_an_error() -> None:
    world = healthy()
    selector(world)[0]["values"].remove("kube-amd-gpu")
    assert world.problems() == {("error", "policy-exemptions", SUBJECT)}
    assert (
        "applies in namespaces that the configuration exempts: kube-amd-gpu." in world.only("policy-exemptions").summary
    )


def test_exemptions_of_the_configuration_are_right() -> None:
    world = healthy()
    for name in NAMES:
        selector(world, name)[0]["values"].append("ci")
    settings = Settings.model_validate({"projectNamespaces": ["my-project"], "exemptNamespaces": ["ci"]})
    assert world.problems(Expectation(settings)) == set()


def test_warnings_of_the_type_check_are_passed_on() -> None:
    world = healthy()
    entry = {"fieldRef": "spec.validations[0].expression", "warning": "apps/v1, Kind=Deployment:\n undefined field 'x'"}
    world.one(POLICY, IDLE)["status"] = {"typeChecking": {"expressionWarnings": [entry]}}
    assert world.problems() == {("warning", "policy-type-check", SUBJECT)}
    assert world.only("policy-type-check").evidence == (
        "spec.validations[0].expression: apps/v1, Kind=Deployment: undefined field 'x'",
    )


@pytest.mark.parametrize(
    ("answer", "said"), [([], "admitted without a word"), ([WARNED.format(IDLE)], "with a warning")]
)
def test_a_policy_that_does_not_refuse_is_an_error_whatever_its_objects_say(answer: list[str], said: str) -> None:
    world = healthy()
    world.admit = lambda o: answer if "sleep" in str(o["spec"].get("containers")) else admit(o)
    assert world.problems() == {("error", "policy-not-refusing", SUBJECT)}
    assert said in world.only("policy-not-refusing").summary


def test_a_policy_that_refuses_what_it_must_admit_is_an_error() -> None:
    world = healthy()
    world.admit = lambda o: admit({"spec": {"containers": [{"command": ["sleep"]}]}}) if o["kind"] == "Pod" else []
    assert ("error", "policy-refuses-everything", SUBJECT) in world.problems()


def test_a_warning_is_what_a_policy_in_mode_warn_must_give() -> None:
    world = healthy()
    for name in NAMES:
        world.one(BINDING, name)["spec"]["validationActions"] = ["Warn", "Audit"]
    world.admit = lambda o: [WARNED.format(name) for name in NAMES] if o["kind"] == "Pod" else []
    expectation = Expectation(EXPECTATION.settings, dict.fromkeys(NAMES, PolicyMode.WARN))
    assert world.problems(expectation) == set()


def test_a_refusal_by_something_else_proves_nothing_and_is_said() -> None:
    world = healthy()
    world.admit = lambda o: ApiError(403, "Forbidden", "violates PodSecurity", {}) if o["kind"] == "Pod" else []
    assert world.problems() == set()
    assert {f.subject for f in world.findings() if f.id == "policy-not-probed"} == {
        f"validatingadmissionpolicy/{name}" for name in NAMES
    }


def test_the_probe_goes_to_a_tenant_s_namespace() -> None:
    world = healthy()
    list(world.findings())
    assert {obj["metadata"]["namespace"] for obj in world.created if obj["kind"] == "Pod"} == {"my-project"}


def test_without_a_tenant_s_namespace_nothing_is_probed_and_that_is_said() -> None:
    world = healthy()
    world.remove("Namespace", "my-project")
    world.remove("Namespace", "default")
    assert world.problems() == set()
    assert len([f for f in world.findings() if f.id == "policy-not-probed"]) == len(NAMES)


def deployment(name: str, space: str, replicas: int = 1, command: str = "sleep") -> dict:
    """A Deployment whose one container runs `command`."""
    spec = {
        "replicas": replicas,
        "template": {"spec": {"containers": [{"command": [command], "resources": {"x": {}}}]}},
    }
    return obj("apps/v1", "Deployment", name, space, spec=spec)


def admit_templates(o: dict) -> ApiError | list[str]:
    """As `admit`, for pods and for what has a template."""
    return admit(o if o["kind"] == "Pod" else {"spec": o["spec"].get("template", {}).get("spec", {})})


def test_workloads_that_would_be_refused_today_are_told_each_by_what_people_wrote() -> None:
    world = healthy()
    world.admit = admit_templates
    old = deployment("old", "my-project")
    made = obj("apps/v1", "ReplicaSet", "old-1", "my-project", spec=old["spec"])
    made["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "old", "uid": "uid-old", "controller": True}]
    pod = obj("v1", "Pod", "old-1-x", "my-project", spec=old["spec"]["template"]["spec"], status={"phase": "Running"})
    pod["metadata"]["ownerReferences"] = [
        {"kind": "ReplicaSet", "name": "old-1", "uid": "uid-old-1", "controller": True}
    ]
    world.add(old, made, pod)
    world.add(deployment("idle", "my-project", replicas=0), deployment("exempt", "kube-system"))
    world.add(deployment("fine", "my-project", command="train"))
    assert world.problems() == {("warning", "workload-refused", SUBJECT)}
    assert world.only("workload-refused").evidence == ("Deployment my-project/old: it says so",)


def test_pods_of_controllers_that_no_policy_covers_are_asked_for_themselves() -> None:
    world = healthy()
    containers = [{"command": ["sleep"], "resources": {"x": {}}}]
    pod = obj("v1", "Pod", "worker", "my-project", spec={"containers": containers}, status={"phase": "Running"})
    pod["metadata"]["ownerReferences"] = [{"kind": "RayCluster", "name": "ray", "uid": "uid-ray", "controller": True}]
    done = obj("v1", "Pod", "done", "my-project", spec={"containers": containers}, status={"phase": "Succeeded"})
    world.add(pod, done)
    assert world.only("workload-refused").evidence == ("Pod my-project/worker: it says so",)


def test_a_running_job_is_asked_without_what_its_controller_wrote() -> None:
    world = healthy()
    world.admit = admit_templates
    labels = {"controller-uid": "1", "batch.kubernetes.io/job-name": "train", "team": "a"}
    spec = {**deployment("x", "y")["spec"], "selector": {"matchLabels": {"controller-uid": "1"}}}
    spec["template"]["metadata"] = {"labels": labels}
    job = obj("batch/v1", "Job", "train", "my-project", spec=spec, status={"active": 1})
    world.add(job)
    assert world.only("workload-refused").evidence == ("Job my-project/train: it says so",)
    (asked,) = (o for o in world.created if o["kind"] == "Job")
    assert "selector" not in asked["spec"]
    assert asked["spec"]["template"]["metadata"]["labels"] == {"team": "a"}
    assert "status" not in asked
    assert asked["metadata"]["generateName"]


def test_a_namespace_is_told_by_its_name_even_before_the_api_server_labels_it() -> None:
    world = healthy()
    unlabelled = obj("v1", "Namespace", "kube-amd-gpu-copy")
    world.add(unlabelled)
    assert world.problems() == set()
    for name in NAMES:
        selector(world, name)[0]["values"].append("kube-amd-gpu-copy")
    assert {id for _, id, _ in world.problems()} == {"policy-exemptions"}


def test_a_workload_that_something_else_would_refuse_is_said_not_to_be_judged() -> None:
    world = healthy()
    refusal = ApiError(403, "Forbidden", "no such service account", {})
    world.admit = lambda o: refusal if o["kind"] == "Deployment" else admit(o)
    world.add(deployment("old", "my-project"))
    assert world.problems() == set()
    assert world.only("workload-not-judged").evidence == ("Deployment my-project/old: no such service account",)
