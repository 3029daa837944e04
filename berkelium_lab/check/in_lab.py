"""A check in a lab: all three questions."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from berkelium_lab.api import ApiError
from berkelium_lab.check import admission, classes, prepare, references, stale
from berkelium_lab.check.cluster_objects import NEEDED, ClusterObjects, install_definitions
from berkelium_lab.check.devices import Devices
from berkelium_lab.check.explain import Explainer
from berkelium_lab.check.findings import Item, Object, note, warning
from berkelium_lab.check.missing import missing
from berkelium_lab.check.prepare import RULES, Prepared
from berkelium_lab.check.reading import Input, InputError
from berkelium_lab.check.references import Index
from berkelium_lab.check.shapes import claim_spec
from berkelium_lab.check.target import Target
from berkelium_lab.check.throwaway import Lane, Run
from berkelium_lab.check.trial import Trial, Trials
from berkelium_lab.check.verdict import Verdicts
from berkelium_lab.interrupts import Interrupts

_AT_ONCE = 8
_ORDER = (*RULES, references.TEMPLATE, references.CLAIM)


class LabCheck:
    """Checks the objects of an input in a lab, and leaves nothing there."""

    def __init__(self, target: Target, given: Input, definitions: list[Item], report: Callable[[str], None]) -> None:
        assert target.program is not None
        self._target = target
        self._api = target.api
        self._items = given.items
        self._definitions = definitions
        self._report = report
        self._run = Run(self._api, self._items)
        self._index = Index(self._items)
        self._present = self._api.list("resource.k8s.io/v1", references.CLASS)
        self._devices = Devices(self._api.list("resource.k8s.io/v1", "ResourceSlice"), target.program)
        self._cluster = ClusterObjects(self._api, self._run)
        self._lanes: dict[int, Lane] = {}

    def run(self) -> None:
        """Ask everything; the findings are the items'."""
        with Interrupts() as interrupts:
            try:
                self._check()
            finally:
                if not self._target.ephemeral:
                    with interrupts.held():
                        self._run.remove()

    def _check(self) -> None:
        self._install_definitions()
        groups = references.groups(self._items, self._index)
        for group in groups:
            lane = self._run.lane_for(group)
            self._lanes |= {id(item): lane for item in group}
        self._run.make_namespaces()
        self._admit([item for item in self._items if item.kind in NEEDED])
        self._classes()
        self._cluster.make(self._items, self._present)
        self._admit([item for item in self._items if item.kind not in NEEDED])
        self._references()
        self._try(groups)

    def _install_definitions(self) -> None:
        try:
            install_definitions(self._api, self._run, self._definitions)
        except ApiError as error:
            raise InputError(f"--crd: {error.message}") from None

    def _admit(self, items: list[Item]) -> None:
        exempt = self._exempt_namespaces()

        def ask(item: Item) -> None:
            if item.namespace in exempt:
                text = f"namespace {item.namespace} is exempt from the policies; whether it gets devices was not tried"
                item.add(note("exempt", text))
                obj: Object = item.obj
            else:
                obj = self._lanes[id(item)].place(item)
            admission.ask(self._api, item, obj, stale.forms(item), self._run.restore_names)

        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            list(pool.map(ask, items))

    def _exempt_namespaces(self) -> set[str]:
        """Namespaces that the policies' bindings leave out and that are there."""
        named: set[str] = set()
        kind = "ValidatingAdmissionPolicyBinding"
        for binding in self._api.list("admissionregistration.k8s.io/v1", kind):
            selector = (binding["spec"].get("matchResources") or {}).get("namespaceSelector") or {}
            for term in selector.get("matchExpressions") or []:
                if term.get("key") == "kubernetes.io/metadata.name" and term.get("operator") == "NotIn":
                    named |= set(term.get("values") or [])
        return named & {namespace["metadata"]["name"] for namespace in self._api.list("v1", "Namespace")}

    def _classes(self) -> None:
        own = [item for item in self._items if item.kind == references.CLASS]
        for item in own:
            if not item.failed:
                others = [other for other in own if other is not item]
                item.add(*classes.findings(item, self._devices, self._present, others))

    def _references(self) -> None:
        known = [c["metadata"]["name"] for c in self._present]
        for item in self._items:
            missing(item, self._index, known, lambda _kind, _name: False)

    def _try(self, groups: list[list[Item]]) -> None:
        own = [item.obj for item in self._items if item.kind == references.CLASS and item.name]
        overridden = {obj["metadata"]["name"] for obj in own}
        known = [*(c for c in self._present if c["metadata"]["name"] not in overridden), *own]
        explainer = Explainer(self._devices, known, self._api.list("v1", "Node"), self._index)
        explainer.prepare(self._items)
        verdicts = Verdicts(explainer, self._index, self._run.restore_names)
        numbers = {id(item): number for number, item in enumerate(self._items)}
        trials = []
        for group in groups:
            prepared = self._prepared(verdicts.ready(group), numbers)
            if any(each.pods != 0 for each in prepared):
                trials.append(Trial(prepared))
        if trials:
            Trials(self._api, self._run, lambda item: bool(explainer.explain(item)), self._report).run(trials)
        for trial in trials:
            for judgement in trial.judgements:
                verdicts.give(judgement)
            for item in trial.without_pods:
                item.add(warning("no-pods", "no node matches it, so it makes no pod"))
        verdicts.warn(self._items)

    def _prepared(self, group: list[Item], numbers: dict[int, int]) -> list[Prepared]:
        """What to create of a group, in order: rules, then claims, then pods."""
        exempt = {id(item) for item in group if any(f.code == "exempt" for f in item.findings)}
        tried = [item for item in group if id(item) not in exempt and (prepare.is_tried(item) or item.kind in RULES)]
        found = []
        for item in sorted(tried, key=lambda i: _ORDER.index(i.kind) if i.kind in _ORDER else len(_ORDER)):
            prepared = prepare.prepare(item, numbers[id(item)], self._lanes[id(item)])
            claim = claim_spec(prepared.obj)
            if claim:
                self._cluster.follow(claim[0])
            found.append(prepared)
        unused = prepare.unused(tried, self._index)
        return [*found, *(prepare.probe(item, numbers[id(item)], self._lanes[id(item)]) for item in unused)]
