"""Faults for the doctor to find, each undone at the end whatever happens."""

import base64
import copy
import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from berkelium_lab.api import JSON_PATCH, Api, ApiError
from berkelium_lab.doctor import Expectation, Finding, Severity, from_stack
from berkelium_lab.doctor.cluster import Cluster
from berkelium_lab.doctor.diagnosing import examine
from berkelium_lab.lab import Lab
from berkelium_lab.wait import NotYet, until

SECONDS = 30
RESOURCE_API = "resource.k8s.io/v1"
ADMISSION_API = "admissionregistration.k8s.io/v1"

Problem = tuple[str, str, str]
"""Severity, id and subject of a finding."""


@dataclass(frozen=True)
class Doctor:
    """The doctor on one cluster."""

    api: Api
    expectation: Expectation

    def findings(self) -> list[Finding]:
        """Everything that it finds now."""
        return examine(Cluster(self.api), self.expectation)

    def problems(self) -> set[Problem]:
        """What it finds that is more than an info."""
        return {(str(f.severity), f.id, f.subject) for f in self.findings() if f.severity is not Severity.INFO}

    def finds(self, *problems: Problem) -> None:
        """Wait until exactly these problems are found."""

        def probe() -> bool:
            found = self.problems()
            if found != set(problems):
                raise NotYet(f"missing {sorted(set(problems) - found)}, beyond {sorted(found - set(problems))}")
            return True

        until(probe, "the doctor finds what it must", SECONDS)

    def healthy(self) -> None:
        """Wait until nothing is found."""
        self.finds()

    def only(self, id: str) -> Finding:
        """The one finding with that id."""
        (finding,) = (finding for finding in self.findings() if finding.id == id)
        return finding


def applied_to(lab: Lab) -> Expectation:
    """What was last deployed to the lab."""
    return from_stack("lab", project=lab.directory / "project")


@contextmanager
def on(lab: Lab, api: Api) -> Iterator[Doctor]:
    """The doctor on a lab, which is healthy before and after."""
    doctor = Doctor(api, applied_to(lab))
    doctor.healthy()
    yield doctor
    doctor.healthy()


@contextmanager
def added(api: Api, *objects: dict) -> Iterator[None]:
    """Objects that are there for a while."""
    try:
        for obj in objects:
            api.create(obj)
        yield
    finally:
        for obj in reversed(objects):
            meta = obj["metadata"]
            api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"), grace_seconds=0)


@contextmanager
def removed(api: Api, api_version: str, kind: str, name: str, namespace: str | None = None) -> Iterator[dict]:
    """An object that is gone for a while, and then there again as it was."""
    obj = api.get(api_version, kind, name, namespace)
    assert obj
    api.delete(api_version, kind, name, namespace)
    until(lambda: api.get(api_version, kind, name, namespace) is None, f"{kind} {name} is gone", SECONDS)
    try:
        yield obj
    finally:
        put_back(api, obj)


@contextmanager
def changed(
    api: Api, api_version: str, kind: str, name: str, change: Callable[[dict], None], namespace: str | None = None
) -> Iterator[None]:
    """An object that `change` has changed in place, for a while."""
    obj = api.get(api_version, kind, name, namespace)
    assert obj
    other = copy.deepcopy(obj)
    change(other)
    api.replace(other)
    try:
        yield
    finally:
        put_back(api, obj)


def put_back(api: Api, obj: dict) -> None:
    """Make an object what it was, whether it still exists or not."""
    meta = {
        key: value for key, value in obj["metadata"].items() if key in ("name", "namespace", "labels", "annotations")
    }

    def probe() -> bool:
        current = api.get(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"))
        wanted = {**obj, "metadata": dict(meta)}
        wanted.pop("status", None)
        try:
            if current is None:
                api.create(wanted)
            else:
                wanted["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
                api.replace(wanted)
        except ApiError as error:
            if error.status != 409:
                raise
            raise NotYet(str(error)) from None
        return True

    until(probe, f"{obj['kind']} {meta['name']} is what it was", SECONDS)


@contextmanager
def advertised(api: Api, node: str, resource: str, amount: str) -> Iterator[None]:
    """A resource that a device plugin would report on a node."""
    path = f"/status/allocatable/{resource.replace('/', '~1')}"
    patch = [{"op": "add", "path": path, "value": amount}]
    api.patch("v1", "Node", node, patch, content_type=JSON_PATCH, subresource="status")
    try:
        yield
    finally:
        undo = [{"op": "remove", "path": path}]
        api.patch("v1", "Node", node, undo, content_type=JSON_PATCH, subresource="status")


def device_class(name: str, expression: str, extended_resource: str | None = None) -> dict:
    """A DeviceClass with one selector."""
    spec: dict = {"selectors": [{"cel": {"expression": expression}}]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    return {"apiVersion": RESOURCE_API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def resource_slice(name: str, driver: str, count: int = 1, **content: object) -> dict:
    """A slice of a pool `odd` on a node `odd`, which no driver of the lab publishes."""
    pool = {"name": "odd", "generation": 1, "resourceSliceCount": count}
    spec = {"driver": driver, "nodeName": "odd", "pool": pool, **content}
    return {"apiVersion": RESOURCE_API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def helm_record(api: Api, release: str, revision: int, status: str, version: str | None = None) -> dict:
    """A further record of an installed release, as Helm would write it (the first revision's with changes)."""
    first = api.get("v1", "Secret", f"sh.helm.release.v1.{release}.v1", release)
    assert first
    record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(first["data"]["release"]))))
    record["version"] = revision
    record["info"]["status"] = status
    if version:
        record["chart"]["metadata"]["version"] = version
    payload = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
    name = f"sh.helm.release.v1.{release}.v{revision}"
    labels = {"name": release, "owner": "helm", "status": status, "version": str(revision)}
    metadata = {"name": name, "namespace": release, "labels": labels}
    data = {"release": payload}
    return {"apiVersion": "v1", "kind": "Secret", "type": first["type"], "metadata": metadata, "data": data}
