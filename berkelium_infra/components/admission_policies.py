"""The admission policies with their bindings."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.admissionregistration.v1 import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingInitArgs,
    ValidatingAdmissionPolicyInitArgs,
)

from berkelium_infra import policies
from berkelium_infra.components.base import Component
from berkelium_infra.settings import Settings
from berkelium_infra.typed import arguments


class AdmissionPolicies(Component):
    """Every policy of `policies/`, in the mode that the settings give it."""

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        settings: Settings,
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> None:
        super().__init__(name, provider, depends_on)
        self.modes = {policy: settings.policy_mode(policy).value for policy in policies.policy_names()}
        for policy_name, mode in self.modes.items():
            where = f"policies/{policy_name}/policy.yaml"
            policy, binding = policies.load(policy_name, mode, settings.policy_exemptions)
            declared = ValidatingAdmissionPolicy(
                policy_name, arguments(ValidatingAdmissionPolicyInitArgs, policy, where), opts=self.options()
            )
            if binding is not None:
                ValidatingAdmissionPolicyBinding(
                    policy_name,
                    arguments(ValidatingAdmissionPolicyBindingInitArgs, binding, where),
                    opts=self.options(declared),
                )
        self.register_outputs({})
