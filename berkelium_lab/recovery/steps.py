"""The steps of a recovery, each reported when it had something to do."""

import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from berkelium_lab.api import Api
from berkelium_lab.recovery import definitions, helm_records, unrecorded
from berkelium_lab.recovery.errors import NotRecoverable
from berkelium_lab.recovery.recorded import RELEASE, Recorded
from berkelium_lab.recovery.unrecorded import Declared

if TYPE_CHECKING:
    from pulumi import automation

Report = Callable[[str], None]

ACCEPT = "BERKELIUM_ACCEPT_CLUSTER"
TAKE_IN = "BERKELIUM_TAKE_IN"
"""Where the program looks for the identity of a rebuilt cluster, and for the objects that it is to import."""


def reconcile(
    stack: "automation.Stack", api: Api, report: Report, *, locked: bool, rebuilt: bool = False
) -> dict[str, str]:
    """Bring the state and the cluster together, so that the program can be applied again.

    Returns environment variables for the `up` that follows, and for that one only; with `ACCEPT` among them it must
    refresh, by the program. `rebuilt` says that another cluster than the stack's is that cluster, built anew.

    `locked` says that the stack is locked by an operation that is known to be dead. Every step may be interrupted and
    begun again. Raises `NotRecoverable` when the cluster is not the stack's, before the first change, or when the API
    server goes on not serving a CRD; and `automation.errors.CommandError` when the engine fails.
    """
    if locked:
        stack.cancel()
        report("released the lock that a killed run had left")
    recorded = Recorded(stack.export_stack().deployment or {})
    accepted = _accepted(recorded, api, report, rebuilt)
    if accepted:
        # The refresh of the `up` that follows finds everything gone, and creates it again.
        return accepted
    _serve_definitions(api, report)
    _forget_pending(recorded.releases, api, report)
    _settle_pending(stack, recorded, report)
    return _unrecorded(stack, api, report)


def _accepted(recorded: Recorded, api: Api, report: Report, rebuilt: bool) -> dict[str, str]:
    """What makes the program accept a rebuilt cluster; nothing for the stack's own cluster."""
    namespace = api.get("v1", "Namespace", "kube-system") or {"metadata": {"uid": "unknown"}}
    found = namespace["metadata"]["uid"]
    if recorded.cluster in (None, found):
        return {}
    if not rebuilt:
        raise NotRecoverable(
            f"{api.server} is another cluster: its identity is {found}, the stack belongs to {recorded.cluster}; "
            "nothing was changed. Was the cluster rebuilt? Then add --rebuilt"
        )
    report(f"the stack belongs to the rebuilt cluster {found} from now on; before, to {recorded.cluster}")
    return {ACCEPT: found}


def _serve_definitions(api: Api, report: Report) -> None:
    if names := definitions.unserved(api):
        try:
            definitions.establish(api, names)
        except TimeoutError as error:
            raise NotRecoverable(str(error)) from None
        report(f"had the API server serve what it was killed over: {', '.join(names)}")


def _forget_pending(releases: Collection[tuple[str, str]], api: Api, report: Report) -> None:
    for record in helm_records.pending(api, releases):
        helm_records.forget(api, record)
        report(f"forgot an unfinished Helm revision: {helm_records.described(record)}")


def _settle_pending(stack: "automation.Stack", recorded: Recorded, report: Report) -> None:
    """Read what became of everything recorded, and drop the list of what was begun."""
    stack.refresh(clear_pending_creates=True)
    for operation in recorded.pending:
        report(f"settled an operation whose end was not recorded: {operation['type']} {_called(operation)}")


def _called(operation: Any) -> str:
    kind, _, name = operation["resource"]["urn"].rpartition("::")
    return f"{kind.rpartition(':')[2]} {name}"


def _unrecorded(stack: "automation.Stack", api: Api, report: Report) -> dict[str, str]:
    """What was created without being recorded: creating it once more would fail, since it exists."""
    declared = _declared(stack)
    # The engine outlives its provider: it saw a creation fail, and keeps no record of it.
    _forget_pending([(each.namespace, each.name) for each in declared if each.type == RELEASE], api, report)
    found = [each for each in declared if each.exists(api)]
    for each in found:
        report(f"taking in what was created but not recorded: {each}")
    return {TAKE_IN: json.dumps(unrecorded.by_resource(found))} if found else {}


def _declared(stack: "automation.Stack") -> list[Declared]:
    """What the program would create."""
    created: list[Declared] = []

    def note(event: Any) -> None:
        if event.resource_pre_event and (each := Declared.of(event.resource_pre_event.metadata)):
            created.append(each)

    stack.preview(on_event=note)
    return created
