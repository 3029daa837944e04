"""The simulator's view of the cluster: which pods it knows, and how its copies follow a watch."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from berkelium_lab.api import Api, ApiError
from berkelium_lab.hardware.cluster import Cluster
from berkelium_lab.hardware.controller import Loop
from berkelium_lab.hardware.hooks import HookController
from berkelium_lab.hardware.informer import Informer
from berkelium_lab.hardware.nfd_master import NfdMaster
from berkelium_lab.hardware.pods import Container, Role, pod
from berkelium_lab.wait import until


def manifest(labels: dict[str, str], container: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "p", "namespace": "n", "uid": "u", "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": "h100-1", "containers": [{"image": "x", **container}]},
        "status": {"phase": "Running", **status},
    }  # fmt: skip


NFD = {"app.kubernetes.io/name": "node-feature-discovery"}
NVIDIA = {"nvidia-dra-driver-gpu-component": "kubelet-plugin-full"}
GUESSES = [
    ({**NFD, "role": "worker"}, {"name": "worker"}, Role.NFD_WORKER),
    ({**NFD, "role": "master"}, {"name": "master"}, Role.NFD_MASTER),
    ({**NFD, "role": "prune"}, {"name": "nfd-master"}, Role.NFD_PRUNE),
    ({**NFD, "role": "gc"}, {"name": "gc"}, None),
    (NVIDIA, {"name": "gpus"}, Role.NVIDIA_PLUGIN),
    ({"dra-driver-nvidia-gpu-component": "kubelet-plugin"}, {"name": "gpus"}, Role.NVIDIA_PLUGIN),
    ({"nvidia-dra-driver-gpu-component": "controller"}, {"name": "compute-domain"}, None),
    ({}, {"name": "manager", "image": "mirror.local/rocm/gpu-operator:v1.5.1"}, Role.AMD_OPERATOR),
    ({}, {"name": "manager", "image": "somebody/else:1"}, None),
    ({}, {"name": "plugin", "command": ["gpu-kubeletplugin"]}, Role.AMD_PLUGIN),
    ({}, {"name": "node-labeller-container"}, Role.AMD_LABELLER),
    ({}, {"name": "delete-custom-resource-definitions"}, Role.AMD_HOOK),
    ({"app": "tenant"}, {"name": "gpus"}, None),
]


@pytest.mark.parametrize(("labels", "container", "role"), GUESSES)
def test_pods_are_told_apart_as_the_charts_make_them(
    labels: dict[str, str], container: dict[str, Any], role: Role | None
) -> None:
    found = pod(manifest(labels, container))
    assert (found and found.role) is role


def test_a_pod_runs_only_in_phase_running_and_until_it_is_deleted() -> None:
    running = manifest(NVIDIA, {"name": "gpus"})
    pending = manifest(NVIDIA, {"name": "gpus"}, phase="Pending")
    deleted = manifest(NVIDIA, {"name": "gpus"})
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z"
    assert [found.running for p in (running, pending, deleted) if (found := pod(p))] == [True, False, False]


@pytest.mark.parametrize(
    ("image", "tag", "repository"),
    [
        ("nvcr.io/nvidia/k8s-dra-driver-gpu:v25.12.0", "v25.12.0", "k8s-dra-driver-gpu"),
        ("localhost:5000/rocm/gpu-operator:v1.5.1@sha256:01", "v1.5.1", "gpu-operator"),
        ("localhost:5000/rocm/gpu-operator", "", "gpu-operator"),
    ],
)
def test_tag_and_repository_are_read_from_an_image(image: str, tag: str, repository: str) -> None:
    container = Container("c", image, (), (), {})
    assert (container.tag, container.repository) == (tag, repository)


class Script:
    """An API whose lists and watches are scripted; the last watch stays open until the test ends."""

    def __init__(self, *steps: Any) -> None:
        self.steps = deque(steps)
        self.over = threading.Event()
        self.lists = 0

    def list_with_version(self, _api_version: str, _kind: str) -> tuple[list[Any], str]:
        self.lists += 1
        step = self.steps.popleft() if self.steps else ([], "99")
        if isinstance(step, ApiError):
            raise step
        return step

    def watch(self, _api_version: str, _kind: str, **_: Any) -> Iterator[tuple[str, Any]]:
        if not self.steps:
            self.over.wait(30)
            return
        step = self.steps.popleft()
        for event in step:
            if isinstance(event, ApiError):
                raise event
            yield event
        if not self.steps:
            self.over.wait(30)


def thing(name: str, version: int, value: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "value": value}


@pytest.fixture
def follow() -> Iterator[Callable[..., tuple[Informer[str], Script, list[None]]]]:
    open_ones: list[tuple[Informer[str], Script]] = []

    def begin(*steps: Any, wanted: Callable[[], bool] = lambda: True) -> tuple[Informer[str], Script, list[None]]:
        script, changes = Script(*steps), []
        informer: Informer[str] = Informer(
            cast(Api, script), "v1", "Thing", lambda obj: obj["value"] or None, lambda: changes.append(None), wanted
        )
        open_ones.append((informer, script))
        informer.start()
        return informer, script, changes

    yield begin
    for informer, script in open_ones:
        informer.stop()
        script.over.set()


def test_a_copy_follows_the_list_and_every_event(follow: Callable[..., Any]) -> None:
    events = [
        ("ADDED", thing("b", 6, "two")),
        ("MODIFIED", thing("a", 7, "three")),
        ("BOOKMARK", thing("", 8)),
        ("DELETED", thing("b", 9, "two")),
        ("ADDED", thing("c", 10, "four")),
    ]
    informer, _, _ = follow(([thing("a", 5, "one")], "5"), events)
    until(lambda: sorted(informer.items()) == ["four", "three"], "the copy to follow", seconds=10)


def test_what_is_not_wanted_of_an_object_causes_no_change(follow: Callable[..., Any]) -> None:
    events = [("MODIFIED", thing("a", 6, "one")), ("ADDED", thing("x", 7)), ("ADDED", thing("b", 8, "two"))]
    informer, _, changes = follow(([thing("a", 5, "one")], "5"), events)
    until(lambda: informer.items() == ["one", "two"], "the copy to follow", seconds=10)
    until(lambda: len(changes) == 2, "one change for the list and one for b", seconds=10)


def test_an_expired_watch_is_begun_anew_from_a_list(follow: Callable[..., Any]) -> None:
    expired = ApiError(410, "Expired", "too old resource version", {})
    informer, script, _ = follow(([thing("a", 5, "one")], "5"), [expired], ([thing("b", 9, "two")], "9"))
    until(lambda: informer.items() == ["two"], "the second list", seconds=10)
    assert script.lists == 2


def test_a_kind_that_is_not_served_yet_is_found_later(follow: Callable[..., Any]) -> None:
    missing = ApiError(404, "UnknownKind", "no such kind", {})
    informer, _, _ = follow(missing, ([thing("a", 5, "one")], "5"))
    until(lambda: informer.items() == ["one"], "the list after the kind appeared", seconds=10)


def test_an_unwanted_kind_is_not_asked_for_and_its_copy_is_empty(follow: Callable[..., Any]) -> None:
    informer, script, _ = follow(([thing("a", 5, "one")], "5"), wanted=lambda: False)
    until(lambda: informer.synced, "the first round", seconds=10)
    assert informer.items() == []
    assert script.lists == 0


def test_a_written_object_is_known_before_the_watch_tells_of_it_unless_the_watch_is_ahead(
    follow: Callable[..., Any],
) -> None:
    informer, _, _ = follow(([], "5"), [("BOOKMARK", thing("", 8))])
    until(lambda: informer.synced, "the list", seconds=10)
    informer.put(thing("a", 9, "new"))
    assert informer.get("a") == "new"
    until(lambda: informer._seen == 8, "the bookmark", seconds=10)
    informer.put(thing("b", 7, "stale"))
    assert informer.get("b") is None


def hooks(*pods: Any) -> tuple[list[Any], HookController]:
    done: list[Any] = []
    api = SimpleNamespace(delete=lambda *what: done.append(what[1:]))
    cluster = SimpleNamespace(
        hooks=deque(pods),
        served=lambda crd: crd == "deviceconfigs.amd.com",
        device_configs=SimpleNamespace(items=lambda: [{"metadata": {"name": "dc", "namespace": "kube-amd-gpu"}}]),
    )
    master = SimpleNamespace(prune=lambda pod: done.append(("prune", pod.name)))
    return done, HookController(cast(Cluster, cluster), cast(Api, api), cast(NfdMaster, master))


def test_the_post_delete_hook_of_the_amd_chart_deletes_the_crds_that_its_script_names() -> None:
    scripts = [
        "kubectl delete crds --ignore-not-found deviceconfigs.amd.com remediationworkflowstatuses.amd.com",
        "if kubectl get crds deviceconfigs.amd.com; then\n  kubectl delete crds deviceconfigs.amd.com\nfi",
    ]
    for script in scripts:
        container = {"name": "delete-custom-resource-definitions", "command": ["/bin/sh", "-c", script]}
        done, controller = hooks(pod(manifest({}, container)))
        controller.reconcile()
        assert ("CustomResourceDefinition", "deviceconfigs.amd.com") in done
        assert {kind for kind, *_ in done} == {"CustomResourceDefinition"}


def test_the_pre_delete_hook_of_the_amd_chart_deletes_every_device_config() -> None:
    container = {"name": "delete-leftover-deviceconfigs", "command": ["sh", "-c", "kubectl delete deviceconfigs"]}
    done, controller = hooks(pod(manifest({}, container)))
    controller.reconcile()
    assert done == [("DeviceConfig", "dc", "kube-amd-gpu")]


def test_the_post_delete_hook_of_node_feature_discovery_prunes() -> None:
    prune = pod(manifest({**NFD, "role": "prune"}, {"name": "nfd-master", "args": ["-prune"]}))
    done, controller = hooks(prune)
    controller.reconcile()
    controller.reconcile()
    assert done == [("prune", "p")]


class Part:
    """A controller that ends the loop in its last round."""

    name = "part"

    def __init__(self, loop: Loop, rounds: int, fail: Exception | None = None) -> None:
        self.loop, self.rounds, self.fail, self.calls = loop, rounds, fail, 0

    def reconcile(self) -> float | None:
        self.calls += 1
        if self.calls == self.rounds:
            self.loop.stop()
        elif self.fail is not None:
            raise self.fail
        return 0.01


def test_the_loop_calls_again_after_the_shortest_delay_that_was_asked_for() -> None:
    loop = Loop()
    part = Part(loop, rounds=3)
    loop.wake()
    loop.run([part], lambda: True)
    assert part.calls == 3


def test_a_part_that_fails_stops_neither_itself_nor_the_others(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    failing = Part(loop, rounds=99, fail=RuntimeError("a defect"))
    other = Part(loop, rounds=3)
    loop.wake()
    loop.run([failing, other], lambda: True)
    assert other.calls == 3
    assert failing.calls == 3
    assert "a defect" in caplog.text


def test_nothing_is_done_before_every_kind_was_listed() -> None:
    loop = Loop()
    answers = deque([False, True])
    part = Part(loop, rounds=1)

    def ready() -> bool:
        loop.wake()
        return answers.popleft()

    loop.wake()
    loop.run([part], ready)
    assert part.calls == 1
    assert not answers
