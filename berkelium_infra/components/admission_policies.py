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
from berkelium_infra.field_owner import hand_over
from berkelium_infra.live import Live
from berkelium_infra.policy_source import bare_pods
from berkelium_infra.settings import Settings
from berkelium_infra.typed import arguments

_API = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{_API}/validatingadmissionpolicies", f"{_API}/validatingadmissionpolicybindings"
"""Where the API serves them."""

_BARE_PODS_OF = "no-idle-gpu"


class AdmissionPolicies(Component):
    """Every policy of `policies/`, in the mode that the settings give it."""

    def __init__(
        self,
        name: str,
        provider: pulumi.ProviderResource,
        settings: Settings,
        depends_on: Sequence[pulumi.Resource] = (),
        *,
        live: Live | None = None,
    ) -> None:
        super().__init__(name, provider, depends_on, protect=settings.protect)
        self._created = {path: hand_over(live, path) for path in (POLICIES, BINDINGS)}
        self.modes = {policy: settings.policy_mode(policy).value for policy in policies.policy_names()}
        for policy_name, mode in self.modes.items():
            self._declare(*policies.load(policy_name, mode, settings.policy_exemptions))
        if settings.bare_gpu_pods != "allow":
            policy, binding = policies.load(_BARE_PODS_OF, "deny", settings.policy_exemptions)
            assert binding is not None
            self._declare(*bare_pods.variant(policy, binding, settings.bare_gpu_pods))
            self.modes[bare_pods.NAME] = settings.bare_gpu_pods
        self.register_outputs({})

    def _declare(self, policy: policies.Manifest, binding: policies.Manifest | None) -> None:
        name = policy["metadata"]["name"]
        where = f"policies/{name}/policy.yaml"
        declared = ValidatingAdmissionPolicy(
            name,
            arguments(ValidatingAdmissionPolicyInitArgs, policy, where),
            opts=self.options(hooks=self._created[POLICIES]),
        )
        if binding is not None:
            ValidatingAdmissionPolicyBinding(
                name,
                arguments(ValidatingAdmissionPolicyBindingInitArgs, binding, where),
                opts=self.options(declared, hooks=self._created[BINDINGS]),
            )
