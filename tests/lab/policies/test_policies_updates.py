"""What is older than the policies goes on working; what changes is asked."""

import copy
from collections.abc import Iterator

import pytest

from berkelium_infra.policy_source import compose
from berkelium_lab.api import STRATEGIC_PATCH, Api, ApiError
from berkelium_lab.policy_trial import Refusal, refusal_of
from berkelium_lab.wait import until
from tests.lab.policies.conftest import FIRST_DENIALS, Judge
from tests.lab.policies.world import CONTROLLER, TEMPLATE_KINDS, Object, container, pod_spec, template_of, workload

OLD = "older-than-the-policies"
INCOMPLETE = pod_spec(container(gpu=True, resources={}, command=["sleep", "infinity"]))
COMPLETE = pod_spec(container(gpu=True, command=["python", "train.py"]))
BINDING = "ValidatingAdmissionPolicyBinding"


@pytest.fixture(scope="module")
def old(judge: Judge) -> Iterator[Api]:
    """A namespace with incomplete and idle workloads that were there before the policies covered it."""
    api = judge.api
    bindings = [compose.manifests(name)[1] for name in compose.names()]
    for binding in bindings:
        _exempt(api, binding, [OLD])
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OLD}})
    for kind in TEMPLATE_KINDS:
        obj = workload(kind, INCOMPLETE, name=f"old-{kind.lower()}")
        until(lambda obj=obj: _created(api, obj), f"the exemption of {OLD} is live", 30)
    api.create(_in(OLD, workload("Pod", pod_spec(container(), terminationGracePeriodSeconds=0), name="old-pod")))
    half = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    api.create(_in(OLD, workload("Pod", pod_spec(container(resources=half), schedulerName="nobody"), name="half-pod")))
    for binding in bindings:
        api.apply(binding)
    for name, obj in FIRST_DENIALS.items():
        until(lambda name=name, obj=obj: judge.policy(obj, OLD) == name, f"{name} covers {OLD}", 30, 0.05)
    yield api
    api.delete("v1", "Namespace", OLD)


def _exempt(api: Api, binding: Object, namespaces: list[str]) -> None:
    binding = copy.deepcopy(binding)
    binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"] += namespaces
    api.apply(binding)


def _in(namespace: str, obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def _created(api: Api, obj: Object) -> Object | None:
    try:
        return api.create(_in(OLD, obj))
    except ApiError as error:
        if refusal_of(error) is None:
            raise
        return None


def stored(api: Api, kind: str) -> Object:
    obj = api.get(workload(kind, INCOMPLETE)["apiVersion"], kind, f"old-{kind.lower()}", OLD)
    assert obj is not None
    return obj


def update(api: Api, obj: Object) -> Refusal | None:
    """The policies' word on writing the object back, by dry run."""
    obj["metadata"].pop("managedFields", None)
    obj["metadata"].pop("resourceVersion", None)
    try:
        api.replace(obj, dry_run=True)
    except ApiError as error:
        if (refusal := refusal_of(error)) is None:
            raise
        return refusal
    return None


@pytest.mark.parametrize("kind", TEMPLATE_KINDS)
def test_an_old_object_takes_labels_annotations_and_loses_finalizers(old: Api, kind: str) -> None:
    obj = stored(old, kind)
    obj["metadata"] |= {"labels": {"team": "a"}, "annotations": {"note": "x"}, "finalizers": []}
    assert update(old, obj) is None


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"])
def test_an_old_object_can_be_scaled(old: Api, kind: str) -> None:
    obj = stored(old, kind)
    obj["spec"]["replicas"] = 3
    assert update(old, obj) is None
    old.patch(obj["apiVersion"], kind, obj["metadata"]["name"], {"spec": {"replicas": 2}}, OLD, subresource="scale")


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_an_old_object_can_be_suspended_and_resumed(old: Api, kind: str) -> None:
    obj = stored(old, kind)
    obj["spec"]["suspend"] = not obj["spec"]["suspend"]
    assert update(old, obj) is None


@pytest.mark.parametrize("kind", [k for k in TEMPLATE_KINDS if k not in ("Job", "PodTemplate")])
def test_the_status_of_an_old_object_can_be_written(old: Api, kind: str) -> None:
    obj = stored(old, kind)
    old.patch(obj["apiVersion"], kind, obj["metadata"]["name"], {"status": {}}, OLD, subresource="status")


# A Job's template cannot be changed by anybody.
@pytest.mark.parametrize("kind", [k for k in TEMPLATE_KINDS if k != "Job"])
def test_a_changed_template_is_asked(old: Api, kind: str) -> None:
    obj = stored(old, kind)
    template_of(obj)["spec"]["containers"][0]["image"] = "registry.example/app:2"
    refusal = update(old, obj)
    assert refusal is not None
    assert refusal.policy in ("require-resources", "no-idle-gpu")


@pytest.mark.parametrize("kind", [k for k in TEMPLATE_KINDS if k != "Job"])
def test_a_template_that_was_mended_is_allowed(old: Api, kind: str) -> None:
    obj = stored(old, kind)
    template_of(obj)["spec"]["containers"] = template_of(workload(kind, COMPLETE))["spec"]["containers"]
    assert update(old, obj) is None


@pytest.mark.parametrize("kind", TEMPLATE_KINDS)
def test_an_old_object_can_be_deleted(old: Api, kind: str) -> None:
    obj = stored(old, kind)
    path = old.path(obj["apiVersion"], kind, obj["metadata"]["name"], OLD)
    old.raw("DELETE", path, {"dryRun": "All"})


def resize(api: Api, pod: str, resources: Object) -> Refusal | None:
    body = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    try:
        api.patch("v1", "Pod", pod, body, OLD, STRATEGIC_PATCH, subresource="resize", dry_run=True)
    except ApiError as error:
        if (refusal := refusal_of(error)) is None:
            raise
        return refusal
    return None


def test_a_running_pod_cannot_be_resized_to_zero(old: Api) -> None:
    refusal = resize(old, "half-pod", {"requests": {"cpu": "0"}, "limits": {"cpu": "0"}})
    assert refusal is not None
    assert refusal.policy == "require-resources"
    assert "requests.cpu, limits.cpu to zero" in refusal.text


def test_an_incomplete_old_pod_can_be_resized(old: Api) -> None:
    assert resize(old, "half-pod", {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}) is None


@pytest.mark.parametrize("pod", ["old-pod", "half-pod"])
def test_an_ephemeral_container_is_not_asked(old: Api, pod: str) -> None:
    debugger = {"name": "debugger", "image": "busybox", "command": ["sleep", "infinity"]}
    body = {"spec": {"ephemeralContainers": [debugger]}}
    old.patch("v1", "Pod", pod, body, OLD, STRATEGIC_PATCH, subresource="ephemeralcontainers", dry_run=True)


def test_an_old_pod_takes_labels(old: Api) -> None:
    old.patch("v1", "Pod", "half-pod", {"metadata": {"labels": {"team": "a"}}}, OLD)


def test_what_a_limit_range_fills_in_is_refused_and_named(old: Api, judge: Judge) -> None:
    filled = {"default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "1", "memory": "1Gi"}}
    limits = {"limits": [{"type": "Container", **filled}]}
    old.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "d", "namespace": OLD}, "spec": limits})
    bare = workload("Pod", pod_spec(container(resources={})))
    try:
        until(lambda: "LimitRange" in judge.text(bare, OLD), "the LimitRange is live", 30)
        text = judge.text(bare, OLD)
        assert "supplied cpu, memory request for container main" in text
        assert judge.policy(workload("Pod", pod_spec(container())), OLD) is None
    finally:
        old.delete("v1", "LimitRange", "d", OLD)


def test_the_mirror_of_a_static_pod_passes_only_from_its_node(judge: Judge) -> None:
    grant = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "nodes-make-mirror-pods"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
    }
    judge.api.apply(grant)
    mirror = workload("Pod", pod_spec(container(resources={}), nodeName="h200-1"))
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    mirror["metadata"]["ownerReferences"] = [{**CONTROLLER, "apiVersion": "v1", "kind": "Node", "name": "h200-1"}]
    path = judge.api.collection("v1", "Pod", "team-a")
    node = {"Impersonate-User": "system:node:h200-1", "Impersonate-Group": "system:nodes"}
    until(lambda: _accepted(judge.api, path, mirror, node), "the node may make its mirror pod", 30)
    assert judge.policy(mirror) == "require-resources"
    plain = copy.deepcopy(mirror)
    del plain["metadata"]["annotations"]
    with pytest.raises(ApiError, match="require-resources"):
        judge.api.raw("POST", path, {"dryRun": "All"}, plain, node)


def _accepted(api: Api, path: str, obj: Object, headers: dict[str, str]) -> bool:
    try:
        api.raw("POST", path, {"dryRun": "All"}, obj, headers)
    except ApiError as error:
        # Until the API server has seen the grant.
        if error.status != 403:
            raise
        return False
    return True
