"""A lab whose only tenants are the policies, each as it stands in its policy.yaml."""

from functools import partial

import pytest
import yaml

from berkelium_infra.policy_source import compose
from berkelium_lab.api import Api, connect
from berkelium_lab.policy_trial import Refusal, ask
from berkelium_lab.wait import NotYet, until
from tests.lab.labs import LabFactory
from tests.lab.policies.world import container, job, pod_spec, workload

TENANT = "team-a"
FIRST_DENIALS = {
    "require-resources": workload("Pod", pod_spec(container(resources={}))),
    "no-idle-gpu": job("sleep infinity"),
}


class Judge:
    """Asks the API server by dry run, in a tenant's namespace unless another is named."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def install(self) -> None:
        """Apply the policies and wait until each has denied something by its name."""
        for name in compose.names():
            for document in yaml.safe_load_all((compose.POLICIES / name / "policy.yaml").read_text()):
                self.api.apply(document)
        for name, obj in FIRST_DENIALS.items():
            until(partial(_denied_by, self, obj, name), f"{name} is live", 30, 0.05)

    def suspend(self) -> None:
        """Take the bindings away and wait until nothing is denied any more."""
        for name in compose.names():
            self.api.delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", name)
        for name, obj in FIRST_DENIALS.items():
            until(lambda obj=obj: self.policy(obj) is None, f"{name} is suspended", 30, 0.05)

    def refusal(self, obj: dict, namespace: str = TENANT) -> Refusal | None:
        return ask(self.api, obj, namespace)

    def policy(self, obj: dict, namespace: str = TENANT) -> str | None:
        """The name of the policy that refuses, None when the object is allowed."""
        refusal = self.refusal(obj, namespace)
        return refusal.policy if refusal else None

    def text(self, obj: dict, namespace: str = TENANT) -> str:
        """What the policy says; empty when the object is allowed."""
        refusal = self.refusal(obj, namespace)
        return refusal.text if refusal else ""


@pytest.fixture(scope="session")
def policies_api(labs: LabFactory) -> Api:
    """The API of a lab of its own, so that no deployed program brings policies too."""
    return connect(labs.up("policies").kubeconfig)


@pytest.fixture(scope="session")
def judge(policies_api: Api) -> Judge:
    """The policies of `policies/*/policy.yaml`, live."""
    judge = Judge(policies_api)
    policies_api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}})
    judge.install()
    return judge


def _denied_by(judge: Judge, obj: dict, name: str) -> bool:
    if (seen := judge.policy(obj)) != name:
        raise NotYet(f"its first denial was {seen}")
    return True
