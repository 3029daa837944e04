"""Objects that an interrupted run created without recording them: imported once, by the run that recovers."""

import json
import os
from collections.abc import Mapping

import pulumi

TAKE_IN = "BERKELIUM_TAKE_IN"
"""Environment variable with a JSON object: the id of the live object by `<type>::<name>` of the resource."""


def take_in_unrecorded() -> None:
    """Make the resources that the environment names imports of the objects that it names, for this run.

    Set by `berkelium recover`, which has found that the objects exist and the state lacks them.
    """
    ids: Mapping[str, str] = json.loads(os.environ.get(TAKE_IN) or "{}")
    if not ids:
        return

    def transform(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        found = ids.get(f"{args.type_}::{args.name}")
        if found is None:
            return None
        imported = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(import_=found))
        return pulumi.ResourceTransformationResult(args.props, imported)

    pulumi.runtime.register_stack_transformation(transform)
