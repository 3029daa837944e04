"""No teardown under running work: what has to be asked before drivers or the whole stack are deleted."""

import os
from collections.abc import Sequence

import pulumi

from berkelium_infra.catalog import VENDORS
from berkelium_infra.claims_held import OVERRIDE, held_claims, listed, refusal
from berkelium_infra.errors import UserError
from berkelium_infra.gpu import Vendor
from berkelium_infra.live import Live


class ClaimsHeld(UserError):
    """Pods still hold devices."""


class Teardown:
    """The hook that runs before a deletion, and the resource that is deleted first; bound to nothing unless `guarded`.

    Hooks live in the program: a plain `pulumi destroy` of a guarded stack, which does not run it, is refused by the
    engine, which asks for `--run-program`. A driver's own resources have a hook too (`of`), so that switching a driver
    off by its setting asks as well.
    """

    def __init__(self, live: Live | None, guarded: bool) -> None:
        self._live = live
        self._guarded = guarded
        # All of them in every run, guarded or not: what is deleted may have been declared, and guarded, earlier.
        self._all = self._hook("no-claims-held", [vendor.driver for vendor in VENDORS])
        self._of = {vendor.driver: self._hook(f"no-claims-held-{vendor.driver}", [vendor.driver]) for vendor in VENDORS}

    def of(self, vendor: Vendor) -> pulumi.ResourceHookBinding:
        """What binds the question for devices of this vendor's driver to a resource."""
        return self._of[vendor.driver] if self._guarded else pulumi.ResourceHookBinding()

    def guard(self, everything: Sequence[pulumi.Resource]) -> None:
        """Declare the resource that depends on `everything`, so that its deletion, and with it the question, comes
        first."""
        if not self._guarded:
            return
        pulumi.Stash(
            "teardown",
            input="asks for held claims before anything is deleted",
            opts=pulumi.ResourceOptions(depends_on=list(everything), hooks=self._all),
        )

    def _hook(self, name: str, drivers: Sequence[str]) -> pulumi.ResourceHookBinding:
        def refuse_while_claims_are_held(args: pulumi.ResourceHookArgs) -> None:
            if not self._guarded:
                return
            if self._live is None:
                raise UserError("there is no cluster to ask for held claims")
            if held := held_claims(self._live, drivers):
                if not os.environ.get(OVERRIDE):
                    raise ClaimsHeld(refusal(held))
                pulumi.log.warn(f"{args.name} is deleted although {listed(held)} ({OVERRIDE} is set)")

        return pulumi.ResourceHookBinding(before_delete=[pulumi.ResourceHook(name, refuse_while_claims_are_held)])
