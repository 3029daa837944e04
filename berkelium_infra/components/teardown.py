"""No teardown under running work: what has to be asked before drivers or the whole stack are deleted."""

import os
from collections.abc import Sequence

import pulumi

from berkelium_infra.catalog import VENDORS
from berkelium_infra.claims_held import HeldClaim, held_claims
from berkelium_infra.errors import UserError
from berkelium_infra.gpu import Vendor
from berkelium_infra.live import Live

OVERRIDE = "BERKELIUM_DESTROY_HELD_CLAIMS"
"""Environment variable by which a deletion goes on although pods hold devices."""

_SHOWN = 10


class ClaimsHeld(UserError):
    """Pods still hold devices."""


class Teardown:
    """The hook that runs before a deletion, and the resource that is deleted first.

    Hooks live in the program: a plain `pulumi destroy`, which does not run it, is refused by the engine, which asks
    for `--run-program`. A driver's own resources have a hook too (`of`), so that switching a driver off by its setting
    asks as well.
    """

    def __init__(self, live: Live | None) -> None:
        self._live = live
        # All of them in every run: what is deleted may have been declared by an earlier program.
        self._all = self._hook("no-claims-held", [vendor.driver for vendor in VENDORS])
        self._of = {vendor.driver: self._hook(f"no-claims-held-{vendor.driver}", [vendor.driver]) for vendor in VENDORS}

    def of(self, vendor: Vendor) -> pulumi.ResourceHookBinding:
        """What binds the question for devices of this vendor's driver to a resource."""
        return self._of[vendor.driver]

    def guard(self, everything: Sequence[pulumi.Resource]) -> None:
        """Declare the resource that depends on `everything`, so that its deletion, and with it the question, comes
        first."""
        pulumi.Stash(
            "teardown",
            input="asks for held claims before anything is deleted",
            opts=pulumi.ResourceOptions(depends_on=list(everything), hooks=self._all),
        )

    def _hook(self, name: str, drivers: Sequence[str]) -> pulumi.ResourceHookBinding:
        def refuse_while_claims_are_held(args: pulumi.ResourceHookArgs) -> None:
            if self._live is None:
                raise UserError("there is no cluster to ask for held claims")
            if held := held_claims(self._live, drivers):
                if not os.environ.get(OVERRIDE):
                    raise ClaimsHeld(refusal(held))
                pulumi.log.warn(f"{args.name} is deleted although {listed(held)} ({OVERRIDE} is set)")

        return pulumi.ResourceHookBinding(before_delete=[pulumi.ResourceHook(name, refuse_while_claims_are_held)])


def refusal(held: Sequence[HeldClaim]) -> str:
    """Why nothing was deleted, and what to do."""
    return (
        f"{listed(held)}; nothing was deleted. Let the pods end or delete them, or set {OVERRIDE}=1 to go on without "
        "regard to them."
    )


def listed(held: Sequence[HeldClaim]) -> str:
    """The claims in one phrase, each with its pods and devices."""
    shown = [str(claim) for claim in held[:_SHOWN]]
    if len(held) > _SHOWN:
        shown.append(f"and {len(held) - _SHOWN} more")
    return f"{'1 claim is' if len(held) == 1 else f'{len(held)} claims are'} still held: {'; '.join(shown)}"
