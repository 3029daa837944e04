"""Objects of the input that are in no namespace and that others need: made for the time of the check.

A class that the lab has already keeps its own; the input's then goes by another name, and claims are told so.
"""

import copy

from berkelium_lab.api import Api, ApiError
from berkelium_lab.check.findings import Item, Object
from berkelium_lab.check.shapes import dig, entries, mapping
from berkelium_lab.check.throwaway import Run
from berkelium_lab.wait import until

NEEDED = ("PriorityClass", "RuntimeClass", "DeviceClass")


class ClusterObjects:
    """Makes them; `renamed` are the device classes under another name."""

    def __init__(self, api: Api, run: Run) -> None:
        self._api = api
        self._run = run
        self.renamed: dict[str, str] = {}

    def make(self, items: list[Item], present: list[Object]) -> None:
        """Create those of the items that are of a kind `NEEDED`; what the API server refuses is left out."""
        existing = {c["metadata"]["name"]: c for c in present}
        taken = {name for c in present if (name := dig(c, "spec.extendedResourceName"))}
        for item in items:
            if item.kind not in NEEDED or item.failed or not item.name:
                continue
            obj = copy.deepcopy(item.obj)
            if item.kind == "DeviceClass":
                spec = mapping(obj.get("spec"))
                if spec == existing.get(item.name, {}).get("spec"):
                    continue
                if spec.get("extendedResourceName") in taken:
                    spec.pop("extendedResourceName")
                if item.name in existing:
                    self.renamed[item.name] = f"check-{self._run.id}-{item.name}"[:253]
                    obj["metadata"]["name"] = self.renamed[item.name]
                    self._run.aliases[self.renamed[item.name]] = item.name
            try:
                self._run.create_for_cluster(obj)
            except ApiError:
                # The dry run has said why; it is a finding already.
                continue

    def follow(self, claim: Object) -> None:
        """Let the requests of a claim spec name renamed classes by their present names."""
        for _, request in entries(dig(claim, "devices.requests")):
            choices = [choice for _, choice in entries(request.get("firstAvailable"))]
            for body in (mapping(request.get("exactly")), *choices):
                if body.get("deviceClassName") in self.renamed:
                    body["deviceClassName"] = self.renamed[body["deviceClassName"]]


def install_definitions(api: Api, run: Run, definitions: list[Item]) -> None:
    """Create CustomResourceDefinitions and wait until they are served. Raises `ApiError` when one is refused."""
    for item in definitions:
        run.create_for_cluster(item.obj)

    def served(name: str) -> bool:
        found = api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name) or {}
        conditions = found.get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    for item in definitions:
        until(lambda name=item.name: served(name), f"{item.name} is served", 20)
