"""A whole check: read the input, ask where it was told to ask, and report."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from berkelium_lab.check import admission, lints, reading, stale
from berkelium_lab.check.findings import Item, Object, note, warning
from berkelium_lab.check.findings import Report as Outcome
from berkelium_lab.check.in_lab import LabCheck
from berkelium_lab.check.missing import missing
from berkelium_lab.check.reading import Input, InputError
from berkelium_lab.check.references import CLASS, Index
from berkelium_lab.check.shapes import pod_template
from berkelium_lab.check.target import Report, Target

_AT_ONCE = 8


@dataclass(frozen=True)
class Question:
    """What to check.

    `paths` are files and directories, `-` being `standard_input`; `namespace` is that of objects that state none;
    `definitions` are files with CustomResourceDefinitions to install in the lab.
    """

    paths: Sequence[str]
    standard_input: bytes | None = None
    namespace: str | None = None
    definitions: Sequence[str] = ()


def check(question: Question, target: AbstractContextManager[Target], report: Report) -> Outcome:
    """Check everything. The target is entered only when there is something to ask.

    Raises `UserError` (`InputError`, `LabError`, …) when the check itself cannot work.
    """
    given = reading.read(question.paths, question.standard_input, question.namespace)
    definitions = _definitions(question.definitions)
    for item in given.items:
        item.add(*lints.findings(item))
    if not given.items:
        return Outcome([], given.complaints, "nothing")
    with target as where:
        report(f"checking {len(given.items)} objects")
        if where.program is None:
            _ask_cluster(where, given)
        else:
            LabCheck(where, given, definitions, report).run()
    _note_injection(given.items)
    return Outcome(given.items, given.complaints, where.where)


def _definitions(paths: Sequence[str]) -> list[Item]:
    found = reading.read(paths)
    wrong = [f"{c.file}:{c.line}: {c.finding.message}" for c in found.complaints]
    wrong += [f"{i.file}:{i.line}: {i.title} is no CustomResourceDefinition" for i in found.items if not _defines(i)]
    if wrong:
        raise InputError("--crd: " + "; ".join(wrong))
    return found.items


def _defines(item: Item) -> bool:
    return item.kind == "CustomResourceDefinition"


def _note_injection(items: list[Item]) -> None:
    injected = lints.injected_namespaces(items)
    for item in items:
        if item.namespace in injected and pod_template(item.obj):
            item.add(lints.injection(item.namespace, injected[item.namespace]))


def _ask_cluster(where: Target, given: Input) -> None:
    """The first two questions, and whether what the objects name is there; nothing is created."""
    index = Index(given.items)
    declared = {item.name for item in given.items if item.kind == "Namespace"}
    classes = [c["metadata"]["name"] for c in where.api.list("resource.k8s.io/v1", CLASS)]

    def ask(item: Item) -> None:
        obj: Object = {**item.obj, "metadata": dict(item.metadata)}
        if item.namespace_given and "namespace" not in obj["metadata"]:
            obj["metadata"]["namespace"] = item.namespace
        admission.ask(where.api, item, obj, stale.forms(item), lambda text: text)
        absent = [f for f in item.findings if f.message == f'namespaces "{item.namespace}" not found']
        if item.namespace in declared and absent:
            item.findings = [finding for finding in item.findings if finding not in absent]
            item.add(warning("no-namespace", f"not checked: namespace {item.namespace} does not exist there yet"))
        missing(item, index, classes, lambda kind, name: _exists(where, kind, name, item.namespace))
        if pod_template(item.obj):
            item.add(note("not-tried", "whether it gets devices was not tried: a live cluster is only asked"))

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        list(pool.map(ask, given.items))


def _exists(where: Target, kind: str, name: str, namespace: str) -> bool:
    return where.api.get("resource.k8s.io/v1", kind, name, namespace) is not None
