"""The API server's own type check of the policies has nothing to say."""

import pytest

from berkelium_infra.policy_source import compose
from berkelium_lab.api import Api
from berkelium_lab.wait import NotYet, until
from tests.lab.policies.conftest import Judge


def type_checked(api: Api, name: str) -> dict:
    policy = api.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", name)
    assert policy is not None
    status = policy.get("status", {})
    if status.get("observedGeneration") != policy["metadata"]["generation"] or "typeChecking" not in status:
        raise NotYet(f"status {status}")
    return {"warnings": status["typeChecking"].get("expressionWarnings", [])}


@pytest.mark.parametrize("name", compose.names())
def test_type_checking_gives_no_warning(judge: Judge, name: str) -> None:
    assert until(lambda: type_checked(judge.api, name), f"{name} is type-checked", 60) == {"warnings": []}
