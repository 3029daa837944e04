"""Throw-away namespaces: every namespace of the input gets one of its own, and names in objects follow.

Groups of objects share them as long as no two objects of the same kind and name meet; otherwise a further set is made.
"""

import copy
import secrets
from collections.abc import Iterable
from typing import Any

from berkelium_lab.api import Api, ApiError
from berkelium_lab.check.findings import Item, Object
from berkelium_lab.check.references import TOGETHER
from berkelium_lab.check.shapes import dig, entries, mapping, pod_template

LABEL = "berkelium.io/check"
"""Label of everything that a check makes; its value is the run."""

ITEM_LABEL = "berkelium.io/check-item"
"""Label of the pods that a check makes, directly or through a workload; its value is the number of the object."""

_OWN_LABELS = ("kubernetes.io/metadata.name",)


class Lane:
    """One set of namespaces, one for each namespace of the input."""

    def __init__(self, run: "Run", number: int) -> None:
        self._run = run
        self._number = number
        self._taken: set[tuple[str, str, str]] = set()
        self._ruled: set[str] = set()
        self.namespaces: dict[str, str] = {}

    def has_room(self, group: list[Item]) -> bool:
        """Whether none of the objects is there already, and no rule of a namespace would act on another group."""
        ruled = {item.namespace for item in group if item.kind in TOGETHER}
        used = {namespace for _, namespace, _ in self._taken}
        if (ruled & used) or (self._ruled & {item.namespace for item in group}):
            return False
        return not any(self._key(item) in self._taken for item in group)

    def take(self, group: list[Item]) -> None:
        """Reserve the names of the objects and name their namespaces."""
        self._ruled |= {item.namespace for item in group if item.kind in TOGETHER}
        for item in group:
            self._taken.add(self._key(item))
            self.namespace(item.namespace)

    def namespace(self, name: str) -> str:
        """The throw-away namespace that stands for `name`."""
        if name not in self.namespaces:
            self.namespaces[name] = f"check-{self._run.id}-{self._number}-{len(self.namespaces)}"
        return self.namespaces[name]

    def place(self, item: Item) -> Object:
        """A copy of the object in its throw-away namespace, references to other namespaces included."""
        obj = copy.deepcopy(item.obj)
        if not isinstance(obj.get("metadata"), dict):
            obj["metadata"] = {}
        obj["metadata"]["namespace"] = self.namespace(item.namespace)
        template = pod_template(obj)
        if template:
            self._affinity(template[0])
        for _, subject in entries(obj.get("subjects")):
            if isinstance(subject.get("namespace"), str):
                subject["namespace"] = self.namespace(subject["namespace"])
        return obj

    def _affinity(self, pod: Object) -> None:
        for kind in ("podAffinity", "podAntiAffinity"):
            terms = mapping(dig(pod, f"spec.affinity.{kind}"))
            required = [t for _, t in entries(terms.get("requiredDuringSchedulingIgnoredDuringExecution"))]
            preferred = [
                mapping(t.get("podAffinityTerm"))
                for _, t in entries(terms.get("preferredDuringSchedulingIgnoredDuringExecution"))
            ]
            for term in (*required, *preferred):
                if isinstance(term.get("namespaces"), list):
                    term["namespaces"] = [self.namespace(n) if isinstance(n, str) else n for n in term["namespaces"]]

    @staticmethod
    def _key(item: Item) -> tuple[str, str, str]:
        return item.kind, item.namespace, item.name


class Run:
    """All that one check makes in a lab; `remove` takes every trace of it away."""

    def __init__(self, api: Api, items: Iterable[Item]) -> None:
        self.id = secrets.token_hex(3)
        self.lanes: list[Lane] = []
        self.aliases: dict[str, str] = {}
        self._api = api
        self._declared = {item.name: item for item in items if item.kind == "Namespace"}
        self._made: set[str] = set()
        self._cluster_objects: list[Object] = []

    def lane_for(self, group: list[Item]) -> Lane:
        """The first set of namespaces that has room for the group."""
        for lane in self.lanes:
            if lane.has_room(group):
                break
        else:
            lane = Lane(self, len(self.lanes))
            self.lanes.append(lane)
        lane.take(group)
        return lane

    def make_namespaces(self) -> None:
        """Create the namespaces named so far, with the labels and annotations that the input gives theirs."""
        for lane in self.lanes:
            for name, stand_in in list(lane.namespaces.items()):
                if stand_in not in self._made:
                    self._made.add(stand_in)
                    self._api.create(self._namespace(name, stand_in))

    def _namespace(self, name: str, stand_in: str) -> Object:
        metadata = self._declared[name].metadata if name in self._declared else {}
        labels = {key: str(v) for key, v in mapping(metadata.get("labels")).items() if key not in _OWN_LABELS}
        annotations = {key: str(v) for key, v in mapping(metadata.get("annotations")).items()}
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": stand_in, "labels": {**labels, LABEL: self.id}, "annotations": annotations},
        }

    @property
    def made(self) -> list[str]:
        """The throw-away namespaces that exist."""
        return sorted(self._made)

    def create_for_cluster(self, obj: Object) -> bool:
        """Create an object that is in no namespace; False when one of that name is there already."""
        labelled = copy.deepcopy(obj)
        labelled["metadata"].setdefault("labels", {})[LABEL] = self.id
        try:
            self._api.create(labelled)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return False
            raise
        self._cluster_objects.append(labelled)
        return True

    def restore_names(self, text: str) -> str:
        """The text with the names of the input instead of those that stand for them."""
        for alias, name in self.aliases.items():
            text = text.replace(alias, name)
        for lane in self.lanes:
            for name, stand_in in lane.namespaces.items():
                text = text.replace(stand_in, name)
        return text

    def remove(self) -> None:
        """Delete what was made in the cluster; namespaces go on to vanish after this returns."""
        for obj in self._cluster_objects:
            self._api.delete(obj["apiVersion"], obj["kind"], obj["metadata"]["name"])
        for name in self.made:
            self._api.delete("v1", "Namespace", name)
        self._cluster_objects.clear()
        self._made.clear()


def label_pods(obj: Object, number: int) -> None:
    """Mark the object's pods, so that they are found again among a lab's."""
    template: Any = pod_template(obj)
    if template:
        metadata = template[0].setdefault("metadata", {})
        if not isinstance(metadata.get("labels"), dict):
            metadata["labels"] = {}
        metadata["labels"][ITEM_LABEL] = str(number)
