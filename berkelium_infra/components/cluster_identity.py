"""Which cluster the stack belongs to, remembered in its state, so that it is never applied to another by mistake."""

import os

import pulumi
from pulumi.runtime.sync_await import _sync_await as wait_for

from berkelium_infra.errors import UserError
from berkelium_infra.live import Live, Refused

ACCEPT = "BERKELIUM_ACCEPT_CLUSTER"
"""Environment variable with the identity of a rebuilt cluster, for the one run that makes the stack belong to it."""

UNKNOWN = "not known: previewed without the cluster"


class WrongCluster(UserError):
    """The kubeconfig leads to another cluster than the one that the stack was applied to."""


class ClusterIdentity:
    """The UID of the cluster's kube-system namespace, which a cluster keeps as long as it lives.

    It lies in a `Stash`, a resource without a provider whose output stays what it was at its creation. Everything else
    depends on `resource`. Raises `WrongCluster` before anything else is declared; with no live cluster (a preview)
    nothing is compared.
    """

    def __init__(self, live: Live | None, context: str) -> None:
        found = _found(live) if live else None
        accepted = os.environ.get(ACCEPT)
        if found and accepted and accepted != found:
            raise WrongCluster(f"{ACCEPT} names the cluster {accepted}, but this one is {found}; nothing was changed.")
        taken_over = bool(found and accepted)
        self.resource = pulumi.Stash(
            "cluster-identity",
            input=found or UNKNOWN,
            opts=pulumi.ResourceOptions(
                ignore_changes=None if taken_over else ["input"],
                replace_on_changes=["input"] if taken_over else None,
            ),
        )
        # Waited for, not applied to: nothing of the stack may be declared before the answer.
        recorded = wait_for(self.resource.output.future())
        if found and recorded not in (None, UNKNOWN, found):
            where = f"context {context!r}" if context else "the current context"
            raise WrongCluster(
                f"{where} leads to another cluster: its identity is {found}, the stack belongs to {recorded}; nothing "
                f"was changed. Was the cluster rebuilt? Then say so once: {ACCEPT}={found} pulumi up --refresh "
                "--run-program"
            )
        self.uid = found


def _found(live: Live) -> str | None:
    """The live cluster's identity; None in a preview by an identity that may not read it."""
    try:
        return live.namespace_uid("kube-system")
    except Refused as error:
        if not pulumi.runtime.is_dry_run():
            raise
        pulumi.log.warn(f"whether this is the stack's cluster could not be checked: {error}")
        return None
