"""Labs of a test run, and namespaces in them: made where a test asks, always taken away."""

import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from berkelium_lab.api import Api, connect
from berkelium_lab.fleet import load
from berkelium_lab.lab import Lab
from berkelium_lab.wait import NotYet, until

PREFIX = "test-"
GPU_NODES = "berkelium.io/gpu-model"


class LabFactory:
    """Labs of one test run; `test-<process id>-<name>`, so that a run can tell and remove what a killed one left."""

    def __init__(self) -> None:
        self._labs: dict[str, Lab] = {}
        self._deployed: dict[str, Api] = {}

    def named(self, name: str) -> Lab:
        """The lab of that name, which need not have been started; it is taken down at the end."""
        return self._labs.setdefault(name, Lab(f"{PREFIX}{os.getpid()}-{name}"))

    def up(self, name: str, fleet: str | None = None) -> Lab:
        """The lab of that name, running."""
        lab = self.named(name)
        lab.up(fleet)
        return lab

    def applied(self, name: str) -> Lab:
        """The lab of that name, running, with the program applied to it now: a test before may have changed it."""
        from berkelium_lab.workspace import deploy

        lab = self.up(name)
        deploy(lab)
        return lab

    def deployed(
        self,
        name: str,
        fleet: str = "berkelium",
        settings: Mapping[str, object] | None = None,
        settle: bool = True,
    ) -> Api:
        """The API of the lab of that name, with the program applied to it once.

        With `settle`, every GPU node of the fleet has published its devices.
        """
        if name not in self._deployed:
            from berkelium_lab.workspace import deploy

            lab = self.up(name, fleet)
            deploy(lab, settings)
            api = connect(lab.kubeconfig)
            if settle:
                nodes = gpu_nodes(fleet)
                until(lambda: publish_their_devices(api, nodes), "every GPU node publishes its devices", 60)
            self._deployed[name] = api
        return self._deployed[name]

    def close(self, keep: Collection[str] = ()) -> None:
        """Take down every lab but those to `keep`; raises only after all have been tried."""
        errors = []
        for name in [name for name in self._labs if name not in keep]:
            self._deployed.pop(name, None)
            try:
                self._labs.pop(name).down()
            except Exception as error:
                errors.append(error)
        if errors:
            raise ExceptionGroup("labs that could not be taken down", errors)


@contextmanager
def fresh_namespace(api: Api) -> Iterator[str]:
    """A new namespace; at the end its pods and claims are gone, so that the next test finds their devices free."""
    name = f"{PREFIX}{secrets.token_hex(4)}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield name
    finally:
        api.delete("v1", "Namespace", name)
        # The namespace controller begins after some seconds; nothing new can be created here by now.
        for pod in api.list("v1", "Pod", name):
            api.delete("v1", "Pod", pod["metadata"]["name"], name, grace_seconds=0)
        until(_empty(api, name), f"namespace {name} has no pods and claims any more", 60)


def _empty(api: Api, namespace: str) -> Callable[[], bool]:
    def probe() -> bool:
        pods = api.list("v1", "Pod", namespace)
        claims = api.list("resource.k8s.io/v1", "ResourceClaim", namespace)
        if left := [each["metadata"]["name"] for each in (*pods, *claims)]:
            raise NotYet(f"{', '.join(left)} still there")
        return True

    return probe


def gpu_nodes(fleet: str) -> set[str]:
    """The nodes of a fleet that have GPUs."""
    return {name for group in load(fleet).node_groups if group.gpu_model for name in group.node_names}


def publish_their_devices(api: Api, nodes: set[str]) -> bool:
    """Whether exactly these nodes are labelled with their model and have a complete pool of slices."""
    labelled = {node["metadata"]["name"] for node in api.list("v1", "Node", label_selector=GPU_NODES)}
    pools: dict[str, list[dict]] = {}
    for piece in api.list("resource.k8s.io/v1", "ResourceSlice"):
        pools.setdefault(piece["spec"]["nodeName"], []).append(piece["spec"]["pool"])
    complete = {node for node, slices in pools.items() if len(slices) == slices[0]["resourceSliceCount"]}
    if labelled != nodes or complete != nodes:
        raise NotYet(f"labelled: {sorted(labelled)}; with a complete pool: {sorted(complete)}")
    return True
