"""From what the scheduler did to findings: which objects can be tried, and what to say of those that were."""

import re
from collections import Counter
from collections.abc import Callable

from berkelium_lab.check import references
from berkelium_lab.check.explain import Explainer
from berkelium_lab.check.findings import Finding, Item, Severity, error, note, warning
from berkelium_lab.check.judging import Judgement
from berkelium_lab.check.references import Index
from berkelium_lab.check.shapes import claim_spec

_PREEMPTION = re.compile(r"\.? preemption: .*", re.DOTALL)
_TIMEOUT = "timed out trying to allocate devices"


class Verdicts:
    """Gives the items their findings. `restore` puts the input's names back into the cluster's words."""

    def __init__(self, explainer: Explainer, index: Index, restore: Callable[[str], str]) -> None:
        self._explainer = explainer
        self._index = index
        self._restore = restore

    def ready(self, group: list[Item]) -> list[Item]:
        """The items of a group that can be tried: admitted, with all that they name admitted too."""
        fit = [item for item in group if not item.failed and not item.skipped]
        usable = []
        for item in fit:
            broken = [target for target in self._named(item) if target.failed or target.skipped]
            if broken:
                named = ", ".join(f"{target.title} ({target.file}:{target.line})" for target in broken)
                item.add(error("unusable-reference", f"it needs {named}, which has an error of its own"))
            else:
                usable.append(item)
        return usable

    def _named(self, item: Item) -> list[Item]:
        found = [self._index.find(reference, item) for reference in references.of(item)]
        return [target for target in found if target is not None]

    def give(self, judgement: Judgement) -> None:
        """Say where the object's pods are, or why they are nowhere."""
        item = judgement.item
        if judgement.runs:
            item.placement = judgement.description
            return
        if judgement.failure:
            item.add(error("not-created", self._restore(judgement.failure)))
            return
        if judgement.placed:
            self._give_partial(judgement)
            return
        words = self._scheduler_words(judgement)
        explained = self._explainer.explain(item)
        for owner, finding in explained:
            owner.add(finding)
            if owner is not item:
                where = f"{owner.title} ({owner.file}:{owner.line_of(finding.path)})"
                item.add(error("no-devices", f"gets no devices: {finding.message}", f"see {where}"))
        if not explained:
            item.add(error("no-place", f"the scheduler finds no place: {words}", _advice(words)))
        else:
            item.add(note("scheduler", f"the scheduler's own words: {words}"))

    def _give_partial(self, judgement: Judgement) -> None:
        item = judgement.item
        message = f"{len(judgement.placed)} of {judgement.wanted} pods find a place"
        hint = "; ".join(part for part in (judgement.description, self._explainer.available(item)) if part)
        item.add(error("not-all-fit", message, hint), note("scheduler", self._scheduler_words(judgement)))

    def _scheduler_words(self, judgement: Judgement) -> str:
        if not judgement.waiting:
            return judgement.undecided or "nothing was decided"
        most_common = Counter(judgement.waiting).most_common(1)[0][0]
        return self._restore(_PREEMPTION.sub("", most_common))

    def warn(self, items: list[Item]) -> None:
        """Selectors that are an error on some device are a risk even where the scheduler found a device before."""
        for item in items:
            if claim_spec(item.obj) and not item.failed and not item.skipped:
                for finding in self._explainer.errors(item):
                    item.add(_as_warning(finding))


def _as_warning(finding: Finding) -> Finding:
    if finding.severity is not Severity.ERROR:
        return finding
    return warning(finding.code, finding.message, finding.hint, finding.path)


def _advice(words: str) -> str:
    if _TIMEOUT in words:
        return "the scheduler gave up searching: write one request with count: N instead of N requests"
    return ""
