"""Secrets: a registry's password is in no preview, difference, output, log or state; only in the cluster's Secret."""

import base64
import json
import secrets
from pathlib import Path

import pytest

from berkelium_lab import workspace
from berkelium_lab.api import connect
from berkelium_lab.lab import Lab
from tests.lab.labs import LabFactory

PATH = "berkelium-infra:amd.registryCredentials.password"
SETTINGS = {"amd": {"registryCredentials": {"server": "registry.example.com", "username": "builder"}}}


@pytest.fixture(scope="module")
def stack(labs: LabFactory) -> Lab:
    """A lab of these tests' own: whoever sees its files sees the password or does not."""
    return labs.up("secrets")


def spellings(password: str) -> set[str]:
    """The password as text and as it stands in a Secret or in a login, at any alignment of base64."""
    login = base64.b64encode(f"builder:{password}".encode()).decode()
    shifted = {
        base64.b64encode(f"{' ' * shift}{password}".encode()).decode()[4 if shift else 0 : -4] for shift in range(3)
    }
    return {password, login, *shifted}


def holding(directory: Path, password: str) -> list[str]:
    """The files below the directory, other than etcd's data, that hold the password in any spelling."""
    found = []
    for path in directory.rglob("*"):
        if path.is_file() and "etcd" not in path.relative_to(directory).parts[0]:
            content = path.read_bytes()
            found += [str(path.relative_to(directory)) for each in spellings(password) if each.encode() in content]
    return found


def test_a_registry_password_reaches_the_cluster_and_nothing_else(
    stack: Lab, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = (secrets.token_hex(16) for _ in range(2))
    said: list[str] = []
    results = []
    for password in (first, second):
        given = {PATH: password}
        results.append(workspace.preview(stack, SETTINGS, report=said.append, secrets=given))
        results.append(workspace.deploy(stack, SETTINGS, report=said.append, secrets=given))
        secret = connect(stack.kubeconfig).get("v1", "Secret", "amd-driver-registry", "kube-amd-gpu")
        assert secret
        login = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))
        assert login["auths"]["registry.example.com"]["password"] == password
    assert not results[-1].unchanged, "the second password was no difference"
    shown = "\n".join([*said, *(f"{each.text} {each.outputs} {each.steps} {each.warnings}" for each in results)])
    shown += "".join(capfd.readouterr())
    for password in (first, second):
        assert not [each for each in spellings(password) if each in shown]
        assert holding(stack.directory, password) == []


def test_the_search_finds_a_password_that_is_there(tmp_path: Path) -> None:
    password = secrets.token_hex(16)
    for name, content in (
        ("plain", password),
        ("encoded", base64.b64encode(json.dumps({"password": password}).encode()).decode()),
        ("login", json.dumps({"auth": base64.b64encode(f"builder:{password}".encode()).decode()})),
    ):
        (tmp_path / name).write_text(content)
    assert set(holding(tmp_path, password)) == {"plain", "encoded", "login"}
