"""The third question: objects are really created, the scheduler decides, the result is read, everything is removed.

All groups are tried at once, since that is fastest. What finds no place may only have lost it to another group, so the
groups that did not fit are tried again without those that did, until a round places nothing: then nothing was in the
way, and the scheduler's word is about the group itself.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from berkelium_lab import wait
from berkelium_lab.api import Api, ApiError
from berkelium_lab.check.findings import Item, Object
from berkelium_lab.check.judging import Judgement, describe, judge
from berkelium_lab.check.prepare import Prepared
from berkelium_lab.check.throwaway import ITEM_LABEL, Run
from berkelium_lab.placement import Inventory

STALLED_SECONDS = 30
"""How long nothing may change: three times what the scheduler may spend on one node before it gives up (10 s)."""

_SETTLE_SECONDS = 1.5
_AT_ONCE = 8

_CONTENTS = (
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/statefulsets",
    "/apis/apps/v1/namespaces/{}/daemonsets",
    "/apis/apps/v1/namespaces/{}/replicasets",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/api/v1/namespaces/{}/replicationcontrollers",
    "/api/v1/namespaces/{}/pods",
    "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "/api/v1/namespaces/{}/resourcequotas",
    "/api/v1/namespaces/{}/limitranges",
)
"""Owners come before what they own, which they would only make again."""


@dataclass(eq=False)
class Trial:
    """A group of objects that go together, in the order in which they are created, and what became of them."""

    prepared: list[Prepared]
    judgements: list[Judgement] = field(default_factory=list)

    @property
    def without_pods(self) -> list[Item]:
        """The DaemonSets that no node matches."""
        judged = [judgement.item for judgement in self.judgements]
        return [each.item for each in self.prepared if each.pods is None and each.item not in judged]

    @property
    def runs(self) -> bool:
        return all(judgement.runs for judgement in self.judgements)

    @property
    def holds_something(self) -> bool:
        return any(judgement.placed for judgement in self.judgements)


class Trials:
    """Puts trials to the scheduler of a lab; after `run`, every trial has its judgements.

    `hopeless` says of an object that found no place whether an empty cluster would not help it either.
    """

    def __init__(self, api: Api, run: Run, hopeless: Callable[[Item], bool], report: Callable[[str], None]) -> None:
        self._api = api
        self._hopeless = hopeless
        self._run = run
        self._report = report
        self._inventory = Inventory.read(api)

    def run(self, trials: list[Trial]) -> None:
        """Try all of them; see the module's text."""
        left = trials
        while left:
            count = sum(len(trial.prepared) for trial in left)
            again = "" if left is trials else " again, without those that have a place"
            self._report(f"the scheduler decides over {count} objects{again}")
            self._round(left)
            failed = [trial for trial in left if not trial.runs and not self._is_final(trial)]
            if len(failed) == len(left):
                self._without_each_other(failed)
                return
            left = failed

    def _is_final(self, trial: Trial) -> bool:
        return any(j.failure or (not j.placed and self._hopeless(j.item)) for j in trial.judgements)

    def _without_each_other(self, failed: list[Trial]) -> None:
        """Those that found a place for a part of their pods were in the way of the others, and of each other."""
        holders = [trial for trial in failed if trial.holds_something]
        if len(failed) == 1 or not holders:
            return
        others = [trial for trial in failed if not trial.holds_something]
        if others:
            self.run(others)
        for trial in holders:
            self._round([trial])

    def _round(self, trials: list[Trial]) -> None:
        try:
            with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
                refused = dict(zip(map(id, trials), pool.map(self._create, trials), strict=True))
            self._await_decisions(trials, refused)
            for trial in trials:
                for judgement in trial.judgements:
                    judgement.description = describe(self._api, judgement, self._inventory)
        finally:
            self._clear()

    def _create(self, trial: Trial) -> dict[int, str]:
        """Create a trial's objects; the refusals by the objects' numbers."""
        refusals: dict[int, str] = {}
        for prepared in trial.prepared:
            try:
                self._api.create(prepared.obj, strict=False)
            except ApiError as error:
                refusals.setdefault(prepared.number, error.message)
                continue
            if prepared.obj["kind"] == "ResourceQuota":
                self._await_quota(prepared.obj)
        return refusals

    def _await_quota(self, quota: Object) -> None:
        """A quota counts once a controller has written its status."""
        meta = quota["metadata"]

        def counted() -> bool:
            found = self._api.get("v1", "ResourceQuota", meta["name"], meta["namespace"])
            return bool(found and found.get("status", {}).get("hard"))

        wait.until(counted, f"quota {meta['name']} is counted", STALLED_SECONDS)

    def _await_decisions(self, trials: list[Trial], refused: dict[int, dict[int, str]]) -> None:
        seen, changed_at = None, time.monotonic()
        while True:
            state = self._judge(trials, refused)
            if all(judgement.decided for trial in trials for judgement in trial.judgements):
                return
            if state != seen:
                seen, changed_at = state, time.monotonic()
            quiet = time.monotonic() - changed_at
            if quiet > _SETTLE_SECONDS and self._explain_missing(trials):
                changed_at = time.monotonic()
            if quiet > STALLED_SECONDS:
                for judgement in (j for trial in trials for j in trial.judgements if not j.decided):
                    seen_last = f"{len(judgement.placed)} placed, {len(judgement.waiting)} refused"
                    judgement.undecided = f"no decision in {STALLED_SECONDS} s; seen last: {seen_last}"
                return
            # To list hundreds of pods takes the scheduler's processors.
            time.sleep(0.1 + 0.002 * sum(judgement.wanted for trial in trials for judgement in trial.judgements))

    def _judge(self, trials: list[Trial], refused: dict[int, dict[int, str]]) -> list[tuple[int, int]]:
        """Judge every object by its pods as they are now; a summary that changes when anything does."""
        pods: dict[str, list[Object]] = {}
        for pod in self._api.list("v1", "Pod", label_selector=ITEM_LABEL):
            if pod["metadata"]["namespace"] in self._run.made:
                pods.setdefault(pod["metadata"]["labels"][ITEM_LABEL], []).append(pod)
        for trial in trials:
            failures = {j.item: j.failure for j in trial.judgements}
            trial.judgements = []
            for prepared in trial.prepared:
                refusal = refused[id(trial)].get(prepared.number, "")
                wanted = self._wanted(prepared)
                if wanted == 0 and not refusal:
                    continue
                found = judge(prepared, pods.get(str(prepared.number), []), wanted)
                found.failure = refusal or failures.get(prepared.item, "")
                trial.judgements.append(found)
        return [(len(j.placed), len(j.waiting)) for trial in trials for j in trial.judgements]

    def _wanted(self, prepared: Prepared) -> int:
        """How many pods to expect; for a DaemonSet what its controller says, at least one until it has spoken."""
        if prepared.pods is not None:
            return prepared.pods
        meta = prepared.obj["metadata"]
        found = self._api.get("apps/v1", "DaemonSet", meta["name"], meta["namespace"]) or {}
        status = found.get("status", {})
        return status["desiredNumberScheduled"] if status.get("observedGeneration") else 1

    def _explain_missing(self, trials: list[Trial]) -> bool:
        """Where pods are missing, take over the controller's word for it; True when anything was learnt."""
        learnt = False
        for trial in trials:
            for prepared in trial.prepared:
                for judgement in trial.judgements:
                    if judgement.item is prepared.item and not judgement.decided and not judgement.failure:
                        judgement.failure = self._failure(prepared)
                        learnt |= bool(judgement.failure)
        return learnt

    def _failure(self, prepared: Prepared) -> str:
        meta = prepared.obj["metadata"]
        for event in self._api.list("v1", "Event", meta["namespace"], field_selector="reason=FailedCreate"):
            if event.get("involvedObject", {}).get("name", "").startswith(meta["name"]):
                return str(event.get("message", ""))
        return ""

    def _clear(self) -> None:
        """Delete what the namespaces hold and wait until all devices are free."""
        namespaces = self._run.made
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            list(pool.map(self._empty, namespaces))
        wait.until(lambda: self._is_clear(namespaces), "what was tried is gone", 2 * STALLED_SECONDS, 0.05)

    def _empty(self, namespace: str) -> None:
        body = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        for path in _CONTENTS:
            self._api.raw("DELETE", path.format(namespace), body=body)

    def _is_clear(self, namespaces: Iterable[str]) -> bool:
        left = {f"{kind} {obj['metadata']['name']}" for kind, obj in self._remains(set(namespaces))}
        if left:
            raise wait.NotYet(f"{len(left)} left, among them {min(left)}")
        return True

    def _remains(self, namespaces: set[str]) -> Iterable[tuple[str, Object]]:
        for api_version, kind in (("v1", "Pod"), ("resource.k8s.io/v1", "ResourceClaim")):
            for obj in self._api.list(api_version, kind):
                if obj["metadata"]["namespace"] in namespaces:
                    if kind == "Pod":
                        # Made by an owner between its own deletion and that of its pods.
                        meta = obj["metadata"]
                        self._api.delete("v1", "Pod", meta["name"], meta["namespace"], grace_seconds=0)
                    yield kind, obj
