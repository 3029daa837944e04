"""A lab's etcd, read and written behind the API server's back."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import urllib3

from berkelium_lab import state
from berkelium_lab.credentials import Credentials
from berkelium_lab.lab import Lab
from tests.soak import killing

CRDS = "/registry/apiextensions.k8s.io/customresourcedefinitions"


def address(lab: Lab) -> str:
    """Where etcd listens."""
    current = state.load(lab.directory)
    assert current
    return f"https://127.0.0.1:{current.ports['etcd']}"


def pool(lab: Lab) -> urllib3.PoolManager:
    """Connections with the lab's certificate, without which etcd takes none."""
    files = Credentials(lab.directory)
    return urllib3.PoolManager(
        ca_certs=str(files.authority), cert_file=str(files.etcd_certificate), key_file=str(files.etcd_key)
    )


def cut_off(lab: Lab, name: str) -> None:
    """Leave a CRD as an API server does that is killed after it has accepted the names, and before it serves them."""

    def not_established(crd: dict[str, Any]) -> None:
        (condition,) = [each for each in crd["status"]["conditions"] if each["type"] == "Established"]
        condition |= {"status": "False", "reason": "Installing"}

    killing.kill(lab, "kube-apiserver")
    rewrite(lab, f"{CRDS}/{name}", not_established)
    lab.up()


def rewrite(lab: Lab, key: str, edit: Callable[[dict[str, Any]], None]) -> None:
    """Edit in place the object under a key; it must be of a kind that is stored as JSON, as CRDs and their objects."""
    client, url, encoded = pool(lab), f"{address(lab)}/v3/kv", b64encode(key.encode()).decode()
    found = client.request("POST", f"{url}/range", json={"key": encoded}).json()
    obj = json.loads(b64decode(found["kvs"][0]["value"]))
    edit(obj)
    value = b64encode(json.dumps(obj).encode()).decode()
    assert client.request("POST", f"{url}/put", json={"key": encoded, "value": value}).status == 200
