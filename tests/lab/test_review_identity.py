"""The identity that a preview on a cluster needs: with it the server's dry run happens, without it silently not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from berkelium_lab.api import Api, ApiError, connect
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from berkelium_lab.wait import NotYet, until
from berkelium_lab.workspace import preview

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = [each for each in yaml.safe_load_all((ROOT / "docs/preview-identity.yaml").read_text()) if each]
NAMESPACE, ACCOUNT = "berkelium-preview", "preview"

# CEL that compiles nowhere: no attribute is selected.
BROKEN_CLASS = {"name": "broken", "selector": 'device.driver == "gpu.nvidia.com" && device.nonsense'}
NEW_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "by-preview"},
    "spec": {},
}


class AsAccount(Lab):
    """A lab seen by a service account of it."""

    def __init__(self, lab: Lab, account: str, directory: Path) -> None:
        super().__init__(lab.name)
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = connect(lab.kubeconfig).raw("POST", path, body=request)["status"]["token"]
        config = yaml.safe_load(lab.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        self._kubeconfig = directory / f"kubeconfig-{account}"
        self._kubeconfig.write_text(yaml.safe_dump(config))

    @property
    def kubeconfig(self) -> Path:
        return self._kubeconfig


@pytest.fixture(scope="module")
def identities(deployed: Api) -> Iterator[None]:
    """The documented identity, and one that may only read, in the main lab."""
    reader = {**MANIFESTS[1], "metadata": {"name": "reader", "namespace": NAMESPACE}}
    binding = {
        **MANIFESTS[3],
        "metadata": {"name": "berkelium-reader"},
        "roleRef": {**MANIFESTS[3]["roleRef"], "name": "reader-of-everything"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": NAMESPACE}],
    }
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader-of-everything"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    }
    everything = [*MANIFESTS, reader, role, binding]
    try:
        for manifest in everything:
            deployed.apply(manifest)
        yield
    finally:
        for manifest in reversed(everything):
            metadata = manifest["metadata"]
            deployed.delete(manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace"))


@pytest.fixture
def as_preview(lab: Lab, identities: None, tmp_path: Path) -> Lab:  # noqa: ARG001
    """The main lab with the documented identity."""
    return AsAccount(lab, ACCOUNT, tmp_path)


def test_the_documented_identity_gets_the_dry_run_that_finds_a_broken_selector(as_preview: Lab) -> None:
    with pytest.raises(LabError, match=r"broken.*undefined field 'nonsense'"):
        preview(as_preview, {"extraDeviceClasses": [BROKEN_CLASS]})


def test_a_read_only_identity_loses_the_dry_run_and_the_broken_selector_passes(
    lab: Lab,
    identities: None,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    seen = preview(AsAccount(lab, "reader", tmp_path), {"extraDeviceClasses": [BROKEN_CLASS]})
    assert seen.changes["create"] == 1


def test_the_documented_identity_can_change_nothing(as_preview: Lab, deployed: Api) -> None:
    api = connect(as_preview.kubeconfig)

    def refused() -> str:
        try:
            api.create(NEW_CLASS, dry_run=True)
            api.create(NEW_CLASS)
        except ApiError as error:
            return error.message
        deployed.delete("resource.k8s.io/v1", "DeviceClass", "by-preview")
        raise NotYet("the API server does not know the policy yet")

    assert "it may only ask for dry runs" in until(refused, "the real creation is refused", 15)
    with pytest.raises(ApiError, match="cannot patch resource"):
        api.patch(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
            "no-idle-gpu",
            {"spec": {"validationActions": ["Audit"]}},
            dry_run=True,
        )
