"""The search: every object and release of the stack's state against the cluster."""

from collections.abc import Mapping
from typing import Any

from berkelium_infra import drifted
from berkelium_infra.errors import UserError
from berkelium_infra.live import Live
from berkelium_lab.drift.findings import Drift, Finding
from berkelium_lab.recovery.recorded import RELEASE, Recorded, identified

_PREFIX = "kubernetes:"
_SECRET = "4dabf18193072939515e22adb298388d"
"""Key that marks an encrypted value in a state file."""


def search(deployment: Mapping[str, Any], live: Live) -> Drift:
    """Compare what a stack's state (as `pulumi stack export` gives it) last applied with the live cluster.

    Raises `UserError` when the cluster is not the stack's or the state is empty, and what `Live` raises.
    """
    recorded = Recorded(deployment)
    _require_own_cluster(recorded, live)
    inputs = [(each["type"], each["inputs"]) for each in recorded.resources if each["type"].startswith(_PREFIX)]
    objects = [_without_secrets(given) for kind, given in inputs if kind != RELEASE]
    findings = [Finding.of(each) for each in drifted.of_objects(live, [each for each in objects if each.get("kind")])]
    releases = [identified(given) for kind, given in inputs if kind == RELEASE]
    for namespace, name in releases:
        inside = drifted.of_release(live, namespace, name)
        if inside is None:
            findings.append(Finding(kind="Release", namespace=namespace, name=name, gone=True))
        findings += [Finding.of(each, name) for each in inside or ()]
    return Drift(server=live.server, compared=len(objects) + len(releases), findings=tuple(findings))


def _require_own_cluster(recorded: Recorded, live: Live) -> None:
    if not recorded.resources:
        raise UserError("the stack's state is empty: nothing was ever applied")
    found = live.namespace_uid("kube-system")
    if recorded.cluster and found != recorded.cluster:
        raise UserError(
            f"{live.server} is another cluster: its identity is {found}, the stack belongs to {recorded.cluster}"
        )


def _without_secrets(value: Any) -> Any:
    """Inputs without the values that are encrypted; what a Secret holds is not compared."""
    if isinstance(value, Mapping):
        return {key: _without_secrets(each) for key, each in value.items() if not _is_secret(each)}
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value


def _is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and _SECRET in value
