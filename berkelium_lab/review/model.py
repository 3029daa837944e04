"""What a review found, as `berkelium preview --json` prints it."""

from typing import Any, Literal

from pydantic import BaseModel

Change = Literal["added", "removed", "changed"]
State = Literal["runs", "admitted", "unschedulable", "refused", "undecided"]
"""What became of a workload; `admitted` is said of manifests without pods of their own."""


class Difference(BaseModel):
    """One property that differs. `old` or `new` is None where it is absent; `change` tells that from a null."""

    path: str
    change: Change
    old: Any = None
    new: Any = None


class ObjectChange(BaseModel):
    """An object of the cluster that differs. `release` is the Helm release that it is part of, if any.

    `differences` are those of a changed object; `manifest` is an added or removed one.
    """

    change: Change
    api_version: str
    kind: str
    namespace: str | None
    name: str
    release: str | None = None
    differences: list[Difference] = []
    manifest: dict[str, Any] | None = None


class PoolChange(BaseModel):
    """The devices of one driver on one node that differ: their names, and how many of which sort."""

    driver: str
    pool: str
    node: str | None
    lost: list[str] = []
    gained: list[str] = []
    lost_sorts: dict[str, int] = {}
    gained_sorts: dict[str, int] = {}
    left: int = 0
    differences: list[Difference] = []


class Outcome(BaseModel):
    """What became of a pod, or of a manifest without pods, whose kinds and names then stand in `pod`.

    `devices` says what the pod was given, by sort, whatever the node.
    """

    manifest: str
    pod: str
    state: State
    devices: dict[str, int] = {}
    routes: list[str] = []
    message: str = ""
    warnings: list[str] = []

    def result(self) -> tuple[object, ...]:
        """What makes two outcomes differ for the pod's owner; messages quote names and numbers that vary."""
        return self.state, self.devices, self.routes, sorted(self.warnings)


class WorkloadChange(BaseModel):
    """A workload with another outcome; None where a state has no such workload."""

    manifest: str
    pod: str
    verdict: str
    before: Outcome | None
    after: Outcome | None


class Step(BaseModel):
    """A resource of the program that the engine would touch; `paths` are the inputs that differ."""

    operation: str
    type: str
    name: str
    paths: dict[str, str] = {}


class Forecast(BaseModel):
    """The engine's own preview: `text` as `pulumi preview --diff` prints it, `counts` of resources by operation."""

    counts: dict[str, int] = {}
    steps: list[Step] = []
    text: str = ""


class Failure(BaseModel):
    """What could not be done; `stage` is what was being done."""

    stage: str
    message: str


class Compared(BaseModel):
    """How much was looked at."""

    objects: int = 0
    devices: int = 0
    workloads: int = 0


class Review(BaseModel):
    """A whole review. Without `failure`, everything was applied and compared."""

    base: str
    base_name: str
    head: str
    stack: str
    notes: list[str] = []
    warnings_gone: list[str] = []
    warnings_new: list[str] = []
    forecast: Forecast = Forecast()
    objects: list[ObjectChange] = []
    pools: list[PoolChange] = []
    workloads: list[WorkloadChange] = []
    compared: Compared = Compared()
    failure: Failure | None = None
    seconds: float = 0

    @property
    def changed(self) -> bool:
        """Whether anything at all differs."""
        found = (self.forecast.steps, self.objects, self.pools, self.workloads, self.warnings_new, self.warnings_gone)
        return any(found)
