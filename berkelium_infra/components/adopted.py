"""Adoption: resources whose objects exist already are imported, not created."""

import pulumi

from berkelium_infra.settings.adoption import Adopt, identify


def adopt_existing(adopt: Adopt) -> None:
    """Make every resource that is declared from now on, and whose object `adopt` names, an import of that object.

    An import takes away what the declaration does not have; the provider's own upsert would leave it and hide it. The
    engine fails on an object that does not exist, and does nothing with one that is in the state already.
    """
    if not adopt:
        return

    def transform(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        identity = identify(args.type_, args.props)
        if identity is None or identity.entry not in getattr(adopt, identity.part):
            return None
        imported = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(import_=identity.id))
        return pulumi.ResourceTransformationResult(args.props, imported)

    pulumi.runtime.register_stack_transformation(transform)
