"""Recovery: what is done, in which order, and what is said, by a stack and a cluster that note every call."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from berkelium_lab.api import Api
from berkelium_lab.recovery import ACCEPT, NotRecoverable, reconcile
from berkelium_lab.recovery.steps import TAKE_IN

URN = "urn:pulumi:lab::berkelium-infra::"
RELEASE = "kubernetes:helm.sh/v3:Release"
CLASS = "kubernetes:resource.k8s.io/v1:DeviceClass"


class Stack:
    """A stack with a state, and a program that would create some resources."""

    def __init__(self, calls: list[str], state: dict[str, Any], created: list[tuple[str, str, dict]]) -> None:
        self._calls, self._state, self._created = calls, state, created

    def cancel(self) -> None:
        self._calls.append("cancel")

    def export_stack(self) -> Any:
        return SimpleNamespace(deployment=self._state)

    def refresh(self, **options: Any) -> None:
        self._calls.append(f"refresh {options}")

    def preview(self, on_event: Any) -> None:
        self._calls.append("preview")
        for kind, name, inputs in self._created:
            new = SimpleNamespace(inputs=inputs)
            metadata = SimpleNamespace(op="create", type=kind, urn=f"{URN}{kind}::{name}", new=new)
            on_event(SimpleNamespace(resource_pre_event=SimpleNamespace(metadata=metadata)))


class Cluster:
    """A cluster with some objects and Helm records."""

    server = "https://cluster.example.com"

    def __init__(self, calls: list[str], uid: str, objects: set[tuple[str, str]], records: list[dict]) -> None:
        self._calls, self._uid, self._objects, self._records = calls, uid, objects, records

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> dict | None:  # noqa: ARG002
        if (kind, name) == ("Namespace", "kube-system"):
            return {"metadata": {"uid": self._uid}}
        return {} if (kind, name) in self._objects else None

    def list(self, api_version: str, kind: str, namespace: str = "", label_selector: str = "") -> list[dict]:  # noqa: ARG002
        if kind == "CustomResourceDefinition":
            return []
        wanted = label_selector.rpartition("name=")[2]
        return [
            each
            for each in self._records
            if each["metadata"]["labels"]["name"] == wanted
            and ("status in" not in label_selector or each["metadata"]["labels"]["status"].startswith("pending"))
        ]

    def delete(self, api_version: str, kind: str, name: str, namespace: str) -> None:  # noqa: ARG002
        self._calls.append(f"delete {kind} {namespace}/{name}")
        self._records = [each for each in self._records if each["metadata"]["name"] != name]


def record(name: str, status: str, version: int = 1) -> dict[str, Any]:
    labels = {"name": name, "status": status, "version": str(version)}
    return {"metadata": {"name": f"sh.helm.release.v1.{name}.v{version}", "namespace": "n", "labels": labels}}


def state(uid: str | None = "ours", pending: tuple[str, ...] = ()) -> dict[str, Any]:
    resources = []
    if uid:
        urn = f"{URN}pulumi:index:Stash::cluster-identity"
        resources.append({"type": "pulumi:index:Stash", "urn": urn, "outputs": {"output": uid}})
    operations = [
        {
            "type": "creating",
            "resource": {"type": RELEASE, "urn": f"{URN}{RELEASE}::{name}", "inputs": {"namespace": "n", "name": name}},
        }
        for name in pending
    ]
    return {"resources": resources, "pending_operations": operations}


def run(
    state: dict[str, Any],
    created: list[tuple[str, str, dict]] | None = None,
    objects: set[tuple[str, str]] | None = None,
    records: list[dict] | None = None,
    uid: str = "ours",
    **options: bool,
) -> tuple[list[str], list[str], dict[str, str]]:
    calls: list[str] = []
    said: list[str] = []
    stack = Stack(calls, state, created or [])
    cluster = Cluster(calls, uid, objects or set(), records or [])
    given = reconcile(cast(Any, stack), cast(Api, cluster), said.append, **{"locked": False, **options})
    return calls, said, given


def test_a_clean_stack_is_refreshed_and_nothing_is_said() -> None:
    calls, said, given = run(state())
    assert calls == ["refresh {'clear_pending_creates': True}", "preview"]
    assert (said, given) == ([], {})


def test_the_lock_goes_first_then_unfinished_helm_revisions_then_what_was_pending() -> None:
    records = [record("driver", "pending-install"), record("foreign", "pending-upgrade")]
    calls, said, _ = run(state(pending=("driver",)), records=records, locked=True)
    assert calls == [
        "cancel",
        "delete Secret n/sh.helm.release.v1.driver.v1",
        "refresh {'clear_pending_creates': True}",
        "preview",
    ]
    assert [line.partition(":")[0] for line in said] == [
        "released the lock that a killed run had left",
        "forgot an unfinished Helm revision",
        "settled an operation whose end was not recorded",
    ]


def test_an_installation_that_only_the_program_knows_of_is_forgotten_and_not_imported() -> None:
    created = [(RELEASE, "driver", {"namespace": "n", "name": "driver"})]
    calls, said, given = run(state(), created, records=[record("driver", "pending-install")])
    assert calls[-1] == "delete Secret n/sh.helm.release.v1.driver.v1"
    assert said == ["forgot an unfinished Helm revision: n/driver revision 1 (pending-install)"]
    assert given == {}


def test_what_exists_without_being_recorded_is_imported_by_the_run_that_follows_and_nothing_else() -> None:
    created = [
        (CLASS, "there", {"metadata": {"name": "there"}}),
        (CLASS, "new", {"metadata": {"name": "new"}}),
        (RELEASE, "driver", {"namespace": "n", "name": "driver"}),
        ("pulumi:index:Stash", "teardown", {}),
    ]
    _, said, given = run(state(), created, objects={("DeviceClass", "there")}, records=[record("driver", "deployed")])
    assert json.loads(given[TAKE_IN]) == {f"{CLASS}::there": "there", f"{RELEASE}::driver": "n/driver"}
    assert said == [
        "taking in what was created but not recorded: DeviceClass there",
        "taking in what was created but not recorded: Release n/driver",
    ]


def test_another_cluster_is_refused_before_anything_is_done() -> None:
    with pytest.raises(NotRecoverable, match=r"another cluster.*nothing was changed.*--rebuilt"):
        run(state(pending=("driver",)), uid="other", records=[record("driver", "pending-install")])


def test_a_rebuilt_cluster_is_handed_to_the_program_by_its_identity() -> None:
    calls, said, given = run(state(), uid="other", rebuilt=True)
    assert calls == []
    assert given == {ACCEPT: "other"}
    assert said == ["the stack belongs to the rebuilt cluster other from now on; before, to ours"]


def test_a_first_run_that_was_killed_before_it_knew_its_cluster_recovers_too() -> None:
    calls, _, _ = run(state(uid=None), uid="other")
    assert calls[-1] == "preview"
