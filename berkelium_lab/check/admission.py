"""The first two questions, put to the API server: is the object valid, and do the policies admit it.

Both are one server-side dry run with strict field validation, which runs the whole chain of admission and stores
nothing. What the server answers is taken apart into findings.
"""

import copy
import re
from collections.abc import Callable, Iterator

from berkelium_lab.api import UNKNOWN_KIND, Api, ApiError
from berkelium_lab.check.findings import UNCHECKED, Finding, Item, Object, error, note, warning
from berkelium_lab.check.shapes import containers, mapping, pod_template
from berkelium_lab.check.stale import Stale

_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.*)", re.DOTALL)
_POLICY_WARNING = re.compile(
    r"Validation failed for ValidatingAdmissionPolicy '([^']+)' with binding '[^']+': (.*)", re.DOTALL
)
_STRICT = re.compile(r"strict decoding error: (.*)", re.DOTALL)
_FIELD = re.compile(r'(unknown|duplicate) field "([^"]+)"')
_DECODING = re.compile(r"json: cannot unmarshal (\S+) into Go struct field \S*?\.([a-zA-Z0-9_.]+) of type (\S+)")
_CLASS_MISSING = re.compile(r'no (PriorityClass) with name (\S+) was found|(RuntimeClass) "([^"]+)" not found')

AMPLE = {"cpu": "1", "memory": "1Gi"}
"""Amounts for asking the remaining policies about an object that one policy refuses for its missing amounts."""


def ask(api: Api, item: Item, obj: Object, stale: list[Stale], restore: Callable[[str], str]) -> None:
    """Put the two questions about `obj`, a copy of the item's object, and add what comes out to the item's findings.

    `restore` puts the input's names back into the server's words.
    """
    warnings: list[str] = []
    try:
        _dry_run(api, obj, warnings)
        refusals: list[Finding] = []
    except ApiError as refusal:
        refusals = list(_refusals(refusal, item))
        if any(finding.code == "unknown-kind" for finding in refusals):
            item.skipped = not any(form.refused for form in stale)
        if any(finding.code == "policy" for finding in refusals):
            refusals += _further(api, obj, refusal)
    item.add(*_merged([_restored(finding, restore) for finding in refusals], stale))
    item.add(*(_restored(_of_warning(text), restore) for text in warnings))


def _dry_run(api: Api, obj: Object, warnings: list[str]) -> None:
    try:
        api.create(obj, dry_run=True, warnings=warnings)
    except ApiError as refusal:
        # Objects of the cluster may be there already; to apply them anew is then the question.
        if refusal.reason != "AlreadyExists":
            raise
        api.apply(obj, manager="berkelium-check", dry_run=True, warnings=warnings)


def _refusals(refusal: ApiError, item: Item) -> Iterator[Finding]:
    policy = _POLICY.search(refusal.message)
    strict = _STRICT.search(refusal.message)
    if refusal.reason == UNKNOWN_KIND:
        message = f"not checked: the API server knows no kind {item.kind} in {item.api_version}"
        yield note("unknown-kind", message, "give its definition with --crd FILE if it matters here")
    elif policy:
        yield error("policy", f"policy {policy[1]}: {policy[2].strip()}")
    elif strict and _FIELD.search(strict[1]):
        for kind, field in _FIELD.findall(strict[1]):
            yield error(f"{kind}-field", f"{kind} field {field}", path=field)
    elif refusal.reason == "Invalid":
        yield from _invalid(refusal)
    elif refusal.reason == "Forbidden" and re.search(r"User \"[^\"]+\" cannot create", refusal.message):
        yield error(UNCHECKED, f"not checked, for lack of permission: {refusal.message}")
    elif refusal.status >= 500 or refusal.status in (401, 429):
        yield error(UNCHECKED, f"not checked: {refusal.message or refusal.reason}")
    else:
        yield _other(refusal)


def _invalid(refusal: ApiError) -> Iterator[Finding]:
    causes = (refusal.body.get("details") or {}).get("causes") or []
    if not causes:
        yield error("invalid", refusal.message)
    for cause in causes:
        field, text = str(cause.get("field", "")), str(cause.get("message", ""))
        field = "" if field == "<nil>" else field
        yield error("invalid", f"{field}: {text}" if field else text, path=field)


def _other(refusal: ApiError) -> Finding:
    decoding = _DECODING.search(refusal.message)
    if decoding:
        got, field, wanted = decoding.groups()
        return error("wrong-type", f"{field}: {got} stands where the API wants {wanted.rpartition('.')[2]}", path=field)
    missing = _CLASS_MISSING.search(refusal.message)
    if missing:
        kind, name = (missing[1], missing[2]) if missing[1] else (missing[3], missing[4])
        hint = f"give the manifest of the {kind} to the check as well, if your cluster has it"
        return error("missing-reference", f"there is no {kind} {name}", hint)
    if "exceeded quota" in refusal.message:
        return error("quota", refusal.message)
    message = re.sub(r"^.*?\(.*?\): ", "", refusal.message) if refusal.status == 400 else refusal.message
    return error("refused", message or refusal.reason)


def _further(api: Api, obj: Object, first: ApiError) -> list[Finding]:
    """What the other policies say: the server names one, whichever it meets first, and an author mends all at once.

    The object is asked about again with what each policy looks at made harmless.
    """
    seen = {match[1] for match in [_POLICY.search(first.message)] if match}
    found = []
    for change in (_with_amounts, _with_work):
        changed = copy.deepcopy(obj)
        template = pod_template(changed)
        for container, _ in containers(template[0]) if template else ():
            change(container)
        try:
            api.create(changed, dry_run=True)
        except ApiError as refusal:
            policy = _POLICY.search(refusal.message)
            if policy and policy[1] not in seen:
                seen.add(policy[1])
                found.append(error("policy", f"policy {policy[1]}: {policy[2].strip()}"))
    return found


def _with_amounts(container: Object) -> None:
    resources = mapping(container.get("resources"))
    stated = {side: {**mapping(resources.get(side)), **AMPLE} for side in ("requests", "limits")}
    container["resources"] = {**resources, **stated}


def _with_work(container: Object) -> None:
    container.update(image="example.com/work:1", command=["work"], args=[])


def _of_warning(text: str) -> Finding:
    policy = _POLICY_WARNING.search(text)
    if policy:
        return warning("policy", f"policy {policy[1]}: {policy[2].strip()}")
    return warning("server", text)


def _merged(refusals: list[Finding], stale: list[Stale]) -> Iterator[Finding]:
    """A stale form that the server refuses is one finding: where, what it is, what to write."""
    refused = [form for form in stale if form.refused]
    if not refusals and not refused:
        yield from (form.finding() for form in stale)
        return
    paths = {form.covers or form.path for form in refused}
    for finding in refusals:
        explained = finding.path in paths or any(finding.path.startswith(f"{path}.") for path in paths)
        if not explained and not (finding.code == "unknown-kind" and refused):
            yield finding
    for form in stale:
        yield error("stale-form", form.problem, form.instead, form.path) if form.refused else form.finding()


def _restored(finding: Finding, restore: Callable[[str], str]) -> Finding:
    return Finding(finding.severity, finding.code, restore(finding.message), restore(finding.hint), finding.path)
