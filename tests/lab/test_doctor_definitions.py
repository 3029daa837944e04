"""The doctor on a CRD that the API server died over, and its remedy."""

import pytest

from berkelium_lab.api import Api, ApiError, connect
from berkelium_lab.doctor import Finding, diagnose, from_defaults
from berkelium_lab.wait import NotYet, until
from tests.lab import etcd
from tests.lab.labs import LabFactory
from tests.lab.test_teardown import FOREIGN

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", FOREIGN["metadata"]["name"])


def things(api: Api) -> list[dict]:
    """The objects of the kind; raises `NotYet` while it is not served."""
    try:
        return api.list("example.com/v1", "Thing")
    except ApiError as error:
        raise NotYet(str(error)) from None


def found(api: Api) -> list[Finding]:
    """What the doctor says of it."""
    return [each for each in diagnose(api, from_defaults()).findings if each.id == "definition-not-served"]


def test_a_definition_that_is_not_served_is_found_and_any_change_of_it_mends_that(labs: LabFactory) -> None:
    lab = labs.up("cut-off", "upstream")
    api = connect(lab.kubeconfig)
    api.create(FOREIGN)
    until(lambda: things(api) == [], "the kind is served", 30)
    assert found(api) == []
    etcd.cut_off(lab, CRD[2])
    api = connect(lab.kubeconfig)
    (finding,) = found(api)
    assert finding.subject == "customresourcedefinition/things.example.com"
    assert "kubectl annotate crd things.example.com berkelium.io/served-again=true" in finding.remedy
    with pytest.raises(NotYet):
        things(api)
    api.patch(*CRD, {"metadata": {"annotations": {"berkelium.io/served-again": "true"}}})
    until(lambda: things(api) == [], "the kind is served again", 30)
    assert found(api) == []
