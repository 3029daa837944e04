"""How simulated nodes play pods: the stages under berkelium_lab/stages, seen through real controllers."""

from berkelium_lab.api import Api
from berkelium_lab.start import is_ready
from berkelium_lab.wait import NotYet, until

SECONDS = 30

CONTAINER = {
    "name": "main",
    "image": "example.com/work:1",
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
}
INIT_CONTAINERS = [
    {**CONTAINER, "name": "first"},
    {**CONTAINER, "name": "beside", "restartPolicy": "Always"},
]


def pod_template(**spec: object) -> dict:
    """A pod template with one container and the label `app: test`."""
    return {"metadata": {"labels": {"app": "test"}}, "spec": {"containers": [CONTAINER], **spec}}


def pod(namespace: str, name: str, **spec: object) -> dict:
    """A pod made from `pod_template`."""
    template = pod_template(**spec)
    metadata = {**template["metadata"], "name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


def condition(obj: dict, kind: str) -> str | None:
    """The status of one of an object's conditions."""
    conditions = obj.get("status", {}).get("conditions", [])
    return next((each["status"] for each in conditions if each["type"] == kind), None)


def wait_for(api: Api, namespace: str, name: str, phase: str) -> dict:
    """The pod once it is in a phase."""

    def probe() -> dict:
        found = api.get("v1", "Pod", name, namespace)
        if found is None or found["status"]["phase"] != phase:
            raise NotYet(f"{found and found['status']}")
        return found

    return until(probe, f"pod {name} is {phase}", SECONDS)


def pods(api: Api, namespace: str) -> list[dict]:
    """The pods made from `pod_template`."""
    return api.list("v1", "Pod", namespace, label_selector="app=test")


def test_every_node_of_the_fleet_is_ready_and_has_no_gpu_of_its_own(api: Api) -> None:
    nodes = api.list("v1", "Node")
    assert len(nodes) == 13
    assert all(is_ready(node) for node in nodes)
    assert not [name for node in nodes for name in node["status"]["allocatable"] if "/" in name]


def test_a_pod_with_init_containers_and_a_sidecar_becomes_ready(api: Api, namespace: str) -> None:
    api.create(pod(namespace, "sidecar", initContainers=INIT_CONTAINERS))
    found = wait_for(api, namespace, "sidecar", "Running")
    assert condition(found, "Ready") == "True"
    first, beside = found["status"]["initContainerStatuses"]
    assert first["state"]["terminated"]["exitCode"] == 0
    assert beside["started"]
    assert "running" in beside["state"]
    assert found["status"]["containerStatuses"][0]["ready"]


def test_a_job_without_devices_completes_at_once_and_goes_when_deleted(api: Api, namespace: str) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "hook", "namespace": namespace},
        "spec": {"template": pod_template(restartPolicy="Never", initContainers=INIT_CONTAINERS)},
    }
    api.create(job)

    def complete() -> bool:
        found = api.get("batch/v1", "Job", "hook", namespace) or {}
        if condition(found, "Complete") != "True":
            raise NotYet(f"{found.get('status')}")
        return True

    until(complete, "job hook is complete", SECONDS)
    (found,) = pods(api, namespace)
    statuses = [*found["status"]["initContainerStatuses"], *found["status"]["containerStatuses"]]
    assert [status["state"]["terminated"]["exitCode"] for status in statuses] == [0, 0, 0]
    api.delete("batch/v1", "Job", "hook", namespace)
    until(lambda: not pods(api, namespace), "the pods of a deleted job are gone", SECONDS)


def test_a_daemon_set_runs_on_every_node_that_its_tolerations_allow(api: Api, namespace: str) -> None:
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "test"}},
            "template": pod_template(tolerations=[{"operator": "Exists"}]),
        },
    }
    api.create(daemon_set)

    def available() -> bool:
        status = (api.get("apps/v1", "DaemonSet", "agent", namespace) or {}).get("status", {})
        if status.get("numberAvailable") != 13:
            raise NotYet(f"{status}")
        return True

    until(available, "the daemon set runs on all 13 nodes", SECONDS)
    assert len({each["spec"]["nodeName"] for each in pods(api, namespace)}) == 13


def test_a_pod_with_a_long_grace_period_is_gone_as_soon_as_it_is_deleted(api: Api, namespace: str) -> None:
    api.create(pod(namespace, "slow", terminationGracePeriodSeconds=3600))
    wait_for(api, namespace, "slow", "Running")
    api.delete("v1", "Pod", "slow", namespace)
    until(lambda: api.get("v1", "Pod", "slow", namespace) is None, "the deleted pod is gone", SECONDS)
