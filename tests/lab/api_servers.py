"""API servers of other Kubernetes versions, on the etcd of a lab, and kubeconfigs for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import yaml
from urllib3.exceptions import HTTPError

from berkelium_lab.api import Api, ApiError, connect
from berkelium_lab.lab import Lab
from berkelium_lab.ports import pick
from berkelium_lab.wait import NotYet, until


def kubeconfig_of(lab: Lab, path: Path, **changes: dict) -> Path:
    """A copy of the lab's kubeconfig with changes to its `user` or `cluster`."""
    document = yaml.safe_load(lab.kubeconfig.read_text())
    for part, change in changes.items():
        document[f"{part}s"][0][part].update(change)
    path.write_text(yaml.safe_dump(document))
    return path


@contextmanager
def another_api_server(lab: Lab, directory: Path, *flags: str) -> Iterator[Api]:
    """A second API server on the lab's etcd, with further flags."""
    (component,) = (one for one in lab.status().components if one.name == "kube-apiserver")
    port = pick(["kube-apiserver"])["kube-apiserver"]
    arguments = psutil.Process(component.pid).cmdline()
    with (directory / "log").open("wb") as log:
        process = psutil.Popen([*arguments, f"--secure-port={port}", *flags], stdout=log, stderr=log, cwd=directory)
        try:
            server = f"https://127.0.0.1:{port}"
            api = connect(kubeconfig_of(lab, directory / "kubeconfig", cluster={"server": server}))
            until(lambda: ready(api, process, directory / "log"), "the second API server is ready", 60)
            yield api
        finally:
            process.kill()
            process.wait(10)


def ready(api: Api, process: psutil.Popen, log: Path) -> bool:
    """Whether the server serves."""
    assert process.is_running(), log.read_text()[-2000:]
    try:
        return api.raw("GET", "/readyz")["text"] == "ok"
    except (ApiError, HTTPError) as error:
        raise NotYet(str(error)) from None
