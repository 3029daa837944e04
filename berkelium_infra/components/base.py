"""What the components have in common."""

from collections.abc import Sequence

import pulumi


class Component(pulumi.ComponentResource):
    """A part of the cluster, whose resources all use one provider and wait for what the part depends on.

    `depends_on` goes to every resource of the part, since Pulumi itself orders resources, not components; so do
    `protect` (no deletion) and `hooks`.
    """

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        depends_on: Sequence[pulumi.Resource] = (),
        *,
        protect: bool = False,
        hooks: pulumi.ResourceHookBinding | None = None,
    ) -> None:
        super().__init__(f"berkelium:cluster:{type(self).__name__}", name, {}, pulumi.ResourceOptions())
        self._provider = provider
        self._depends_on = list(depends_on)
        self._protect = protect
        self._hooks = hooks

    def options(
        self,
        *after: pulumi.Resource,
        delete_before_replace: bool = False,
        hooks: pulumi.ResourceHookBinding | None = None,
    ) -> pulumi.ResourceOptions:
        """Options of a resource of this part, which also waits for `after` and has `hooks` beside the part's own."""
        return pulumi.ResourceOptions(
            parent=self,
            provider=self._provider,
            depends_on=[*self._depends_on, *after],
            delete_before_replace=delete_before_replace or None,
            protect=self._protect or None,
            hooks=pulumi.ResourceHookBinding.merge(self._hooks, hooks),
        )
