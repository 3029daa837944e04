"""Drift: what counts as one, and which of it the program itself puts back."""

import json
import shlex
from typing import Any

from berkelium_infra.drifted import Change, Drifted, changes, digest
from berkelium_infra.mending import Wanted
from berkelium_infra.versions import nvidia_driver
from berkelium_lab.drift import Finding
from berkelium_lab.drift.search import _without_secrets as without_secrets

CHART = nvidia_driver("25.12.0").chart


def test_a_changed_field_has_its_path_and_both_values() -> None:
    assert list(changes({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}})) == [Change("a.b", 1, 3)]


def test_a_field_that_only_one_side_has_differs_from_nothing() -> None:
    (removed,) = changes({"a": 1}, {})
    (added,) = changes({}, {"a": 1})
    assert (removed, removed.added) == (Change("a", 1, None), False)
    assert (added, added.added) == (Change("a", None, 1), True)


def test_named_entries_of_a_list_are_compared_by_name_whatever_their_order() -> None:
    declared = [{"name": "x", "image": "a"}, {"name": "y", "image": "b"}]
    found = [{"name": "y", "image": "c"}, {"name": "x", "image": "a"}]
    assert list(changes({"containers": declared}, {"containers": found})) == [Change("containers[y].image", "b", "c")]


def test_other_lists_are_one_value() -> None:
    assert list(changes({"args": ["a", "b"]}, {"args": ["a"]})) == [Change("args", ["a", "b"], ["a"])]


def test_the_same_edit_made_again_later_is_another_drift() -> None:
    def edited(version: str) -> list[Drifted]:
        return [Drifted("DaemonSet", "n", "d", (Change("spec.x", 1, 2),), version)]

    assert digest(edited("10"), 1) == digest(edited("10"), 1)
    assert digest(edited("10"), 1) != digest(edited("11"), 1)
    assert digest(edited("10"), 1) != digest(edited("10"), 2)


def record(**over: Any) -> dict[str, Any]:
    found = {
        "chart": {"metadata": {"version": "v25.12.0"}},
        "config": {"a": {"b": 1}},
        "info": {"description": "chart 123, drift abc mended"},
    }
    return found | over


def test_a_release_that_is_to_be_upgraded_anyway_is_not_marked_as_drifted() -> None:
    wanted = Wanted(CHART, "25.12.0", {"a": {"b": 1}}, "chart 123")
    assert wanted.is_deployed(record())
    assert not wanted.is_deployed(record(config={"a": {"b": 2}}))
    assert not wanted.is_deployed(record(chart={"metadata": {"version": "25.8.0"}}))
    assert not wanted.is_deployed(record(info={"description": "chart 999"}))


def test_a_finding_says_which_release_an_object_belongs_to_and_whether_it_is_gone() -> None:
    finding = Finding.of(Drifted("DaemonSet", "n", "d", ()), "driver")
    assert (finding.release, finding.gone, finding.differences) == ("driver", True, ())


def test_encrypted_values_of_a_state_are_not_compared() -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}
    assert without_secrets({"kind": "Secret", "stringData": {"a": secret}, "l": [{"b": secret}]}) == {
        "kind": "Secret",
        "stringData": {},
        "l": [{}],
    }


def test_what_was_added_is_removed_from_the_end_by_escaped_pointers() -> None:
    declared = {"spec": {"hard": {"cpu": "1"}, "items": [{"name": "a"}]}}
    found = {
        "spec": {
            "hard": {"cpu": "2", "requests.nvidia.com/h100": "3"},
            "items": [{"name": "b"}, {"name": "a"}, {"name": "c"}],
        }
    }
    drifted = Drifted("ResourceQuota", "team", "project-quota", tuple(changes(declared, found)))
    removal = Finding.of(drifted).removal
    assert removal
    *command, operations = shlex.split(removal)
    assert command[:6] == ["kubectl", "patch", "resourcequota", "project-quota", "--namespace", "team"]
    assert [(each["op"], each["path"]) for each in json.loads(operations)] == [
        ("remove", "/spec/items/2"),
        ("remove", "/spec/items/0"),
        ("remove", "/spec/hard/requests.nvidia.com~1h100"),
    ]


def test_nothing_is_to_be_removed_where_a_value_was_only_changed_or_a_release_puts_it_back() -> None:
    changed = Drifted("DeviceClass", "", "x", tuple(changes({"a": 1}, {"a": 2})))
    added = Drifted("DaemonSet", "d", "x", tuple(changes({}, {"a": 2})))
    assert Finding.of(changed).removal is None
    assert Finding.of(added, "release").removal is None
