"""What two snapshots say of each other: what was declared differently, and nothing that was generated."""

from typing import Any

import pytest

from berkelium_lab.review import compare, pools
from berkelium_lab.review.differences import differences
from berkelium_lab.review.model import Difference
from berkelium_lab.review.snapshot import Key, Snapshot, is_by_itself, stripped


def found(old: Any, new: Any) -> list[tuple[str, str, Any, Any]]:
    """The differences as tuples."""
    return [(each.path, each.change, each.old, each.new) for each in differences(old, new)]


def test_a_difference_has_its_path_and_both_values() -> None:
    old = {"spec": {"replicas": 1, "gone": None, "same": [1]}}
    new = {"spec": {"replicas": 2, "same": [1], "labels": {"a.b/c": "x"}}}
    assert found(old, new) == [
        ("spec.replicas", "changed", 1, 2),
        ("spec.gone", "removed", None, None),
        ("spec.labels", "added", None, {"a.b/c": "x"}),
    ]
    assert found({"labels": {"a.b/c": "x"}}, {"labels": {"a.b/c": "y"}}) == [('labels["a.b/c"]', "changed", "x", "y")]


def test_named_things_are_matched_by_name_whatever_their_place() -> None:
    old = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}
    new = {"containers": [{"name": "new", "image": "1"}, {"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}
    assert found(old, new) == [
        ("containers[b].image", "changed", "1", "2"),
        ("containers[new]", "added", None, {"name": "new", "image": "1"}),
    ]


def test_another_order_of_named_things_is_a_difference() -> None:
    old, new = [{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}]
    assert found({"env": old}, {"env": new}) == [("env (order)", "changed", ["a", "b"], ["b", "a"])]


def test_an_element_put_in_front_does_not_change_those_after_it() -> None:
    assert found({"args": ["-a", "-b"]}, {"args": ["-new", "-a", "-b"]}) == [("args[]", "added", None, "-new")]
    old, new = [{"expression": "x"}], [{"expression": "y"}, {"expression": "x"}]
    assert found({"validations": old}, {"validations": new}) == [("validations[0]", "added", None, {"expression": "y"})]
    assert found({"validations": [{"expression": "x"}]}, {"validations": [{"expression": "y"}]}) == [
        ("validations[0].expression", "changed", "x", "y")
    ]


def test_true_and_one_are_not_the_same() -> None:
    assert found({"flag": True}, {"flag": 1}) == [("flag", "changed", True, 1)]
    assert found({"flag": True}, {"flag": True}) == []


DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {
        "name": "plugin",
        "namespace": "drivers",
        "uid": "1",
        "resourceVersion": "17",
        "generation": 1,
        "creationTimestamp": "2026-11-30T20:00:00Z",
        "managedFields": [{"manager": "helm", "time": "2026-11-30T20:00:00Z"}],
        "annotations": {"deprecated.daemonset.template.generation": "1", "meta.helm.sh/release-name": "driver"},
        "ownerReferences": [{"kind": "DeviceConfig", "name": "config", "uid": "2", "controller": True}],
    },
    "spec": {"template": {"spec": {"containers": [{"name": "gpus", "image": "driver:1"}]}}},
    "status": {"numberReady": 3},
}


def again(obj: dict[str, Any]) -> dict[str, Any]:
    """The same declaration as another cluster would have it."""
    metadata = {
        **obj["metadata"],
        "uid": "9",
        "resourceVersion": "99",
        "generation": 4,
        "creationTimestamp": "2026-12-01T08:00:00Z",
        "managedFields": [{"manager": "helm", "time": "2026-12-01T08:00:00Z"}],
        "annotations": {**obj["metadata"]["annotations"], "deprecated.daemonset.template.generation": "4"},
        "ownerReferences": [{"kind": "DeviceConfig", "name": "config", "uid": "8", "controller": True}],
    }
    return {**obj, "metadata": metadata, "status": {"numberReady": 0}}


def test_what_the_api_server_generates_is_no_difference() -> None:
    assert stripped(DAEMON_SET) == stripped(again(DAEMON_SET))
    assert stripped(DAEMON_SET)["metadata"]["annotations"] == {"meta.helm.sh/release-name": "driver"}


def test_a_services_addresses_are_generated_and_being_headless_is_declared() -> None:
    def service(address: str, port: int) -> dict[str, Any]:
        spec = {"clusterIP": address, "clusterIPs": [address], "ports": [{"port": 80, "nodePort": port}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}

    assert stripped(service("10.0.0.1", 30001)) == stripped(service("10.0.0.2", 30002))
    assert stripped(service("None", 30001)) != stripped(service("10.0.0.2", 30001))


def test_a_webhooks_authority_is_made_anew_each_time() -> None:
    def webhook(bundle: str, policy: str) -> dict[str, Any]:
        hook = {"name": "w", "clientConfig": {"caBundle": bundle}, "failurePolicy": policy}
        kind = "ValidatingWebhookConfiguration"
        return {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "w"}, "webhooks": [hook]}

    assert stripped(webhook("one", "Fail")) == stripped(webhook("other", "Fail"))
    assert stripped(webhook("one", "Fail")) != stripped(webhook("one", "Ignore"))


def test_a_secret_shows_that_it_changed_and_never_its_value() -> None:
    def secret(value: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": value}}

    one, other = stripped(secret("aHVudGVyMg==")), stripped(secret("c2VjcmV0"))
    assert stripped(secret("aHVudGVyMg==")) == one
    (difference,) = differences(one, other)
    assert difference.path == "data.password"
    assert str(difference.old).startswith("(secret ")
    assert "aHVudGVyMg==" not in repr(one)


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "Secret", "metadata": {}, "type": "helm.sh/release.v1"},
        {"kind": "ConfigMap", "metadata": {"managedFields": [{"manager": "kube-controller-manager"}]}},
        {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "my-project"}},
    ],
    ids=["Helm's record", "the root certificate", "the default account"],
)
def test_what_kubernetes_and_helm_keep_for_themselves_is_left_out(obj: dict[str, Any]) -> None:
    assert is_by_itself(obj)


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "Secret", "metadata": {}, "type": "Opaque"},
        {"kind": "ConfigMap", "metadata": {"managedFields": [{"manager": "helm"}, {"manager": "kube-apiserver"}]}},
        {"kind": "ServiceAccount", "metadata": {}},
    ],
)
def test_what_somebody_declared_is_not_left_out(obj: dict[str, Any]) -> None:
    assert not is_by_itself(obj)


def test_a_namespace_is_its_name_and_the_labels_given_to_it() -> None:
    labels = {"kubernetes.io/metadata.name": "n", "pod-security.kubernetes.io/enforce": "privileged"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": labels}, "spec": {}}
    assert stripped(namespace)["metadata"] == {
        "name": "n",
        "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
    }


def key(obj: dict[str, Any]) -> Key:
    """The key of an object in a snapshot."""
    metadata = obj["metadata"]
    return Key(obj["apiVersion"].rpartition("/")[0], obj["kind"], metadata.get("namespace", ""), metadata["name"])


def snapshot(*objects: dict[str, Any]) -> Snapshot:
    """A snapshot of these objects."""
    return Snapshot({key(obj): stripped(obj) for obj in objects}, {})


def test_an_object_of_a_release_is_shown_with_the_release() -> None:
    newer = {**DAEMON_SET, "spec": {"template": {"spec": {"containers": [{"name": "gpus", "image": "driver:2"}]}}}}
    (change,) = compare.changes(snapshot(DAEMON_SET), snapshot(again(newer)))
    assert (change.change, change.kind, change.namespace, change.name) == ("changed", "DaemonSet", "drivers", "plugin")
    assert change.release == "driver"
    path = "spec.template.spec.containers[gpus].image"
    assert change.differences == [Difference(path=path, change="changed", old="driver:1", new="driver:2")]


def test_added_and_removed_objects_are_shown_whole() -> None:
    (added,) = compare.changes(snapshot(), snapshot(DAEMON_SET))
    (removed,) = compare.changes(snapshot(DAEMON_SET), snapshot())
    assert (added.change, removed.change) == ("added", "removed")
    assert added.manifest == removed.manifest == stripped(DAEMON_SET)
    assert compare.changes(snapshot(DAEMON_SET), snapshot(again(DAEMON_SET))) == []


def piece(name: str, devices: list[str], generation: int = 1, count: int = 1, **attributes: str) -> dict[str, Any]:
    """A ResourceSlice of the node h200-1."""
    values = {"productName": "NVIDIA H200 NVL", "type": "gpu", **attributes}
    given = {attribute: {"string": value} for attribute, value in values.items()}
    pool = {"name": "h200-1", "generation": generation, "resourceSliceCount": count}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "h200-1", "pool": pool}
    return {
        "metadata": {"name": name},
        "spec": {**spec, "devices": [{"name": d, "attributes": given} for d in devices]},
    }


def test_the_same_devices_in_other_slices_are_no_difference() -> None:
    once = pools.of([piece("a", ["gpu-0", "gpu-1"])])
    republished = pools.of([piece("b", ["gpu-1"], 2, 2), piece("c", ["gpu-0"], 2, 2), piece("a", ["old"], 1)])
    assert pools.changes(once, republished) == []


def test_devices_that_vanish_are_counted_by_model_and_profile() -> None:
    full = pools.of([piece("a", ["gpu-0"]), piece("b", ["m-0", "m-1"], type="mig", profile="1g.18gb")])
    (change,) = pools.changes(full, pools.of([piece("a", ["gpu-0"])]))
    assert (change.lost, change.lost_sorts) == (["m-0", "m-1"], {"NVIDIA H200 NVL 1g.18gb": 2})
    assert (change.gained, change.left, change.node) == ([], 1, "h200-1")
    (change,) = pools.changes(full, {})
    assert (len(change.lost), change.left) == (3, 0)


def test_an_attribute_of_a_device_that_stays_is_a_difference() -> None:
    before, after = pools.of([piece("a", ["gpu-0"])]), pools.of([piece("b", ["gpu-0"], pcieRoot="pci0000")])
    (change,) = pools.changes(before, after)
    assert change.differences == [
        Difference(path="gpu-0.attributes.pcieRoot", change="added", new={"string": "pci0000"})
    ]
