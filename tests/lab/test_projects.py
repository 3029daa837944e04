"""Projects: one number per GPU holds over every way in which a device can be asked for."""

from collections.abc import Iterator

import pytest

from berkelium_lab import workspace
from berkelium_lab.api import Api, ApiError
from berkelium_lab.doctor import diagnose, from_defaults
from berkelium_lab.project_copy import PROJECT
from berkelium_lab.wait import NotYet, until
from tests.lab import workloads
from tests.lab.labs import LabFactory

TEAM = {
    "labels": {"team": "vision"},
    "quota": {
        "cpu": 20,
        "memory": "65536Mi",
        "limits": {"memory": "64Gi"},
        "gpus": {"h100": 2, "a40": 1, "mi100": 1, "mig.nvidia.com": 1},
    },
    "limitRange": {"min": {"cpu": "100m"}, "max": {"cpu": "4000m", "memory": "8Gi"}},
}
SETTINGS = {"projects": {"team": TEAM, "small": {"quota": {"gpus": {"h100": 1}}}}}
GUIDE = PROJECT / "docs" / "projects.md"
IMPLICIT = "deviceclass.resource.kubernetes.io/nvidia-h100"
CLAIM = ("resource.k8s.io/v1", "ResourceClaim")


@pytest.fixture(scope="module")
def api(labs: LabFactory) -> Api:
    """A lab with two projects."""
    return labs.deployed("projects", settings=SETTINGS)


@pytest.fixture
def team(api: Api) -> Iterator[str]:
    """The project `team`, empty before and after."""
    with project(api, "team") as name:
        yield name


class project:
    """A project whose quota is counted; its pods and claims are removed at the end."""

    def __init__(self, api: Api, name: str) -> None:
        self._api, self._name = api, name

    def __enter__(self) -> str:
        until(lambda: used(self._api, self._name), f"the quota of {self._name} is counted", 30)
        return self._name

    def __exit__(self, *_: object) -> None:
        pods = [each["metadata"]["name"] for each in self._api.list("v1", "Pod", self._name)]
        for kind in ("ResourceClaimTemplate", "ResourceClaim"):
            for each in self._api.list(CLAIM[0], kind, self._name):
                self._api.delete(CLAIM[0], kind, each["metadata"]["name"], self._name)
        workloads.remove(self._api, self._name, *pods)
        until(self._is_empty, f"nothing in {self._name} counts any more", 60)

    def _is_empty(self) -> bool:
        left = {key: amount for key, amount in used(self._api, self._name).items() if amount != "0"}
        if left or self._api.list("v1", "Pod", self._name):
            raise NotYet(f"still used: {left}")
        return True


def used(api: Api, namespace: str) -> dict[str, str]:
    """What the quota counts as used."""
    quota = api.get("v1", "ResourceQuota", "project-quota", namespace)
    return ((quota or {}).get("status") or {}).get("used") or {}


def counted(api: Api, namespace: str, key: str, amount: str) -> None:
    """Wait until the quota counts that much under a key."""

    def probe() -> bool:
        if used(api, namespace).get(key) != amount:
            raise NotYet(f"{used(api, namespace).get(key)}")
        return True

    until(probe, f"the quota of {namespace} counts {amount} under {key}", 30)


def claim(namespace: str, name: str, device_class: str, count: int = 1) -> dict:
    """A claim that somebody makes by hand, and that a pod may use."""
    spec = workloads.template(namespace, name, device_class, count)["spec"]["spec"]
    return {"apiVersion": CLAIM[0], "kind": CLAIM[1], "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def by_resource(namespace: str, name: str, resource: str = "nvidia.com/h100") -> dict:
    """A pod that asks by extended resource."""
    return workloads.pod(namespace, name, limits={resource: "1"})


def by_claim(namespace: str, name: str, device_class: str = "nvidia-h100") -> list[dict]:
    """A claim, and a pod that uses it."""
    pod = workloads.pod(namespace, name)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return [claim(namespace, name, device_class), pod]


def refusal(api: Api, obj: dict) -> str:
    """The message with which the API server refuses an object."""
    with pytest.raises(ApiError) as caught:
        api.create(obj)
    assert caught.value.status == 403
    return caught.value.message


def two_of_two(api: Api, team: str) -> None:
    """One pod by each route, both running: as many H100s as the project may hold."""
    workloads.create(api, [by_resource(team, "by-resource"), *by_claim(team, "by-claim")])
    for name in ("by-resource", "by-claim"):
        (device,) = workloads.running(api, team, name).devices
        assert device.model is not None
        assert device.model.key == "h100"
    counted(api, team, "nvidia-h100.deviceclass.resource.k8s.io/devices", "2")
    counted(api, team, "requests.nvidia.com/h100", "2")


def event(api: Api, namespace: str, name: str, text: str) -> str:
    """Wait for an event about the object with a text in it; return its message."""

    def probe() -> str:
        messages = [
            e.get("message", "") for e in api.list("v1", "Event", namespace) if e["involvedObject"]["name"] == name
        ]
        found = [message for message in messages if text in message]
        if not found:
            raise NotYet(f"{messages}")
        return found[0]

    return until(probe, f"an event about {name} that says {text!r}", 60)


def test_one_pod_by_each_route_fits_and_a_third_by_extended_resource_is_refused(api: Api, team: str) -> None:
    two_of_two(api, team)
    message = refusal(api, by_resource(team, "third"))
    quoted = message.partition("forbidden: ")[2]
    assert quoted == (
        "exceeded quota: project-quota, requested: requests.nvidia.com/h100=1, "
        "used: requests.nvidia.com/h100=2, limited: requests.nvidia.com/h100=2"
    )
    assert quoted in GUIDE.read_text()


def test_a_third_by_the_name_that_every_class_has_is_left_pending_and_an_event_names_the_quota(
    api: Api, team: str
) -> None:
    two_of_two(api, team)
    api.create(by_resource(team, "third", IMPLICIT))
    assert "exceeded quota: project-quota" in event(api, team, "third", "exceeded quota")
    counted(api, team, "nvidia-h100.deviceclass.resource.k8s.io/devices", "2")


def test_a_third_claim_is_refused(api: Api, team: str) -> None:
    two_of_two(api, team)
    message = refusal(api, claim(team, "third", "nvidia-h100"))
    assert "exceeded quota: project-quota" in message
    assert "nvidia-h100.deviceclass.resource.k8s.io/devices=2" in message


def test_a_claim_that_pretends_to_be_the_scheduler_s_is_refused_as_well(api: Api, team: str) -> None:
    two_of_two(api, team)
    pod = api.get("v1", "Pod", "by-resource", team)
    assert pod is not None
    forged = claim(team, "third", "nvidia-h100")
    forged["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "by-resource",
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }
    forged["metadata"]["ownerReferences"] = [owner]
    assert "exceeded quota: project-quota" in refusal(api, forged)


def test_a_third_by_claim_template_is_left_pending_and_an_event_names_the_quota(api: Api, team: str) -> None:
    two_of_two(api, team)
    workloads.create(api, workloads.claiming(team, "third", "nvidia-h100"))
    assert "exceeded quota: project-quota" in event(api, team, "third", "exceeded quota")
    third = api.get("v1", "Pod", "third", team)
    assert third is not None
    assert third["status"]["phase"] == "Pending"


def test_what_a_pod_gives_back_the_next_one_may_have(api: Api, team: str) -> None:
    two_of_two(api, team)
    refusal(api, by_resource(team, "third"))
    workloads.remove(api, team, "by-resource")
    counted(api, team, "requests.nvidia.com/h100", "1")
    counted(api, team, "nvidia-h100.deviceclass.resource.k8s.io/devices", "1")
    api.create(by_resource(team, "third"))
    workloads.running(api, team, "third")


def test_two_names_of_one_class_asked_for_at_once_neither_double_the_number_nor_block_each_other(api: Api) -> None:
    with project(api, "small") as small:
        workloads.create(api, [by_resource(small, "one"), by_resource(small, "other", IMPLICIT)])
        counted(api, small, "nvidia-h100.deviceclass.resource.k8s.io/devices", "1")
        phases = until(lambda: one_runs(api, small), "one of the two pods runs", 60)
        (waiting,) = [name for name, phase in phases.items() if phase == "Pending"]
        assert "exceeded quota: project-quota" in event(api, small, waiting, "exceeded quota")


def one_runs(api: Api, namespace: str) -> dict[str, str]:
    """The phases of the namespace's pods once exactly one of two runs."""
    phases = {each["metadata"]["name"]: each["status"]["phase"] for each in api.list("v1", "Pod", namespace)}
    if sorted(phases.values()) != ["Pending", "Running"]:
        raise NotYet(f"{phases}")
    return phases


def test_a_model_with_two_classes_is_given_out_by_its_own_only(api: Api, team: str) -> None:
    assert "requests.nvidia.com/gpu=1" in refusal(api, by_resource(team, "general", "nvidia.com/gpu"))
    assert "gpu.nvidia.com.deviceclass.resource.k8s.io/devices" in refusal(api, claim(team, "c", "gpu.nvidia.com"))
    api.create(by_resource(team, "own", "nvidia.com/a40"))
    workloads.running(api, team, "own")
    assert "exceeded quota: project-quota" in refusal(api, by_resource(team, "second", "nvidia.com/a40"))


def test_partitions_are_counted_by_claim(api: Api, team: str) -> None:
    profile = 'device.attributes["gpu.nvidia.com"].profile == "1g.10gb"'
    workloads.create(api, workloads.claiming(team, "part", "mig.nvidia.com", selectors=[profile]))
    workloads.running(api, team, "part")
    message = refusal(api, claim(team, "second", "mig.nvidia.com"))
    assert "mig.nvidia.com.deviceclass.resource.k8s.io/devices=1" in message


def test_an_amd_gpu_is_counted_like_any_other(api: Api, team: str) -> None:
    api.create(by_resource(team, "rocm", "amd.com/gpu"))
    workloads.running(api, team, "rocm")
    assert "requests.amd.com/gpu=1" in refusal(api, claim(team, "second", "gpu.amd.com"))


def test_a_class_that_the_project_does_not_name_is_not_limited(api: Api, team: str) -> None:
    for number in range(3):
        api.create(by_resource(team, f"h200-{number}", "nvidia.com/h200"))
        workloads.running(api, team, f"h200-{number}")


def test_cpu_and_memory_have_their_sums_and_a_container_its_bounds(api: Api, team: str) -> None:
    assert "maximum cpu usage per Container is 4" in refusal(api, sized(team, "big", "5", "1Gi"))
    assert "minimum cpu usage per Container is 100m" in refusal(api, sized(team, "tiny", "50m", "1Gi"))
    for number in range(5):
        api.create(sized(team, f"pod-{number}", "4", "1Gi"))
    assert "exceeded quota: project-quota, requested: requests.cpu=1" in refusal(api, sized(team, "sixth", "1", "1Gi"))


def sized(namespace: str, name: str, cpu: str, memory: str) -> dict:
    """A pod with these amounts as requests and limits."""
    pod = workloads.pod(namespace, name)
    amounts = {"cpu": cpu, "memory": memory}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return pod


def test_a_pod_that_states_nothing_is_refused_although_the_limit_range_would_fill_it_in(api: Api, team: str) -> None:
    pod = workloads.pod(team, "silent")
    del pod["spec"]["containers"][0]["resources"]
    with pytest.raises(ApiError) as caught:
        api.create(pod)
    assert "ValidatingAdmissionPolicy 'require-resources'" in caught.value.message


def test_the_namespace_has_the_labels(api: Api) -> None:
    namespace = api.get("v1", "Namespace", "team")
    assert namespace is not None
    assert namespace["metadata"]["labels"]["team"] == "vision"


def test_a_refresh_finds_the_amounts_as_they_were_written(api: Api, labs: LabFactory) -> None:
    assert api
    lab = labs.named("projects")
    workspace.deploy(lab, SETTINGS)
    assert workspace.preview(lab, SETTINGS, refresh=True).unchanged
    assert workspace.deploy(lab, SETTINGS).unchanged


def test_going_from_the_short_form_to_limits_keeps_the_namespace(api: Api, labs: LabFactory) -> None:
    before = api.get("v1", "Namespace", "my-project")
    assert before is not None
    limited = {"projectNamespaces": [], "projects": {**SETTINGS["projects"], "my-project": {"quota": {"cpu": 8}}}}
    result = workspace.deploy(labs.named("projects"), limited)
    assert set(result.changes) <= {"same", "create"}
    after = api.get("v1", "Namespace", "my-project")
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_the_doctor_finds_no_key_of_the_quotas_without_effect(api: Api) -> None:
    assert {each["metadata"]["name"] for each in api.list("v1", "ResourceQuota")} == {"project-quota"}
    findings = diagnose(api, from_defaults()).findings
    assert [each for each in findings if each.id == "quota-without-effect"] == []
