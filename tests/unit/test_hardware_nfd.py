"""NodeFeature objects, and how the nfd-master process follows its pod."""

import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
import yaml

from berkelium_lab import fleet as fleets
from berkelium_lab.api import Api
from berkelium_lab.hardware import nfd
from berkelium_lab.hardware.inventory import inventory
from berkelium_lab.hardware.nfd_master import NfdMaster
from berkelium_lab.hardware.pods import Container, Pod, Role
from berkelium_lab.wait import until

HARDWARE = inventory(fleets.load("berkelium"))
LABELS = "feature.node.kubernetes.io/"


def worker(node: str) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "worker", "uid": "ds", "controller": True}
    container = Container("worker", "registry.k8s.io/nfd/node-feature-discovery:v0.18.3", ("nfd-worker",), (), {})
    return Pod(
        Role.NFD_WORKER, "worker-x", "nfd", "pod-1", node, "Running", False, "1", "worker", (owner,), (container,), ()
    )


def test_a_worker_publishes_the_pci_devices_and_the_name_of_its_node() -> None:
    feature = nfd.node_feature(HARDWARE["a40-1"], worker("a40-1"), nfd.WorkerConfig())
    assert feature["metadata"]["name"] == "a40-1"
    assert feature["metadata"]["namespace"] == "nfd"
    assert feature["metadata"]["labels"] == {"nfd.node.kubernetes.io/node-name": "a40-1"}
    assert feature["metadata"]["annotations"] == {"nfd.node.kubernetes.io/worker.version": "v0.18.3"}
    features = feature["spec"]["features"]
    assert features["attributes"]["system.name"]["elements"] == {"nodename": "a40-1"}
    device = {"attributes": {"class": "0302", "vendor": "10de", "device": "2235"}}
    assert features["instances"]["pci.device"]["elements"] == [device] * 4


def test_the_node_feature_belongs_to_the_pod_and_to_the_pods_daemon_set() -> None:
    feature = nfd.node_feature(HARDWARE["a40-1"], worker("a40-1"), nfd.WorkerConfig())
    assert [(o["kind"], o["uid"], o.get("blockOwnerDeletion")) for o in feature["metadata"]["ownerReferences"]] == [
        ("DaemonSet", "ds", False),
        ("Pod", "pod-1", None),
    ]


def test_an_mi100_shows_as_a_display_controller_of_amd() -> None:
    feature = nfd.node_feature(HARDWARE["mi100-1"], worker("mi100-1"), nfd.WorkerConfig())
    (element, *_) = feature["spec"]["features"]["instances"]["pci.device"]["elements"]
    assert element["attributes"] == {"class": "0380", "vendor": "1002", "device": "738c"}


def test_a_node_without_gpus_has_no_pci_devices() -> None:
    feature = nfd.node_feature(HARDWARE["control-plane-1"], worker("control-plane-1"), nfd.WorkerConfig())
    assert feature["spec"]["labels"] == {}
    assert feature["spec"]["features"]["instances"]["pci.device"]["elements"] == []


@pytest.mark.parametrize(
    ("config", "labels"),
    [
        ("", {f"{LABELS}pci-0302_10de.present": "true"}),
        ("sources: {pci: {deviceLabelFields: [vendor]}}", {f"{LABELS}pci-10de.present": "true"}),
        ("sources: {pci: {deviceLabelFields: [device, vendor]}}", {f"{LABELS}pci-10de_2235.present": "true"}),
        ("sources: {pci: {deviceLabelFields: [nonsense]}}", {f"{LABELS}pci-0302_10de.present": "true"}),
        ('sources: {pci: {deviceClassWhitelist: ["0200"]}}', {}),
        ('sources: {pci: {deviceClassWhitelist: ["0302"]}}', {f"{LABELS}pci-0302_10de.present": "true"}),
    ],
)
def test_the_labels_of_the_pci_source_follow_the_workers_configuration(config: str, labels: dict[str, str]) -> None:
    feature = nfd.node_feature(HARDWARE["a40-1"], worker("a40-1"), nfd.worker_config(config))
    assert feature["spec"]["labels"] == labels


def test_without_owner_references_the_node_feature_belongs_to_nobody() -> None:
    config = nfd.worker_config("core: {noOwnerRefs: true}")
    assert "ownerReferences" not in nfd.node_feature(HARDWARE["a40-1"], worker("a40-1"), config)["metadata"]


class Account:
    """The part of the API that nfd-master's start needs."""

    def raw(self, _method: str, path: str, **_: Any) -> Any:
        assert path == "/api/v1/namespaces/nfd/serviceaccounts/nfd-account/token"
        return {"status": {"token": "the-token"}}

    def get(self, _api_version: str, kind: str, name: str, namespace: str) -> Any:
        assert (kind, name, namespace) == ("ConfigMap", "master-conf", "nfd")
        return {"data": {"nfd-master.conf": "resyncPeriod: 10s\n"}}


MASTER = Container(
    "master", "registry.k8s.io/nfd/node-feature-discovery:v0.18.3", ("nfd-master",),
    ("-enable-leader-election", "-extra-label-ns=x.io", "-resync-period=10s", "-port=8080"), {},
)  # fmt: skip


def master_pod(name: str = "master-1") -> Pod:
    return Pod(
        Role.NFD_MASTER, name, "nfd", f"uid-{name}", "control-plane-1", "Running", False, "1", "nfd-account", (),
        (MASTER,), ("master-conf",),
    )  # fmt: skip


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program in nfd-master's place that writes how it was started, and stays."""
    path = tmp_path / "nfd-master"
    text = f"""\
        #!{sys.executable}
        import json, os, pathlib, signal, sys
        started = {{"args": sys.argv[1:], "node": os.environ["NODE_NAME"], "ns": os.environ["KUBERNETES_NAMESPACE"]}}
        pathlib.Path({str(tmp_path)!r}, f"started-{{os.getpid()}}.draft").write_text(json.dumps(started))
        os.rename(f"{tmp_path}/started-{{os.getpid()}}.draft", f"{tmp_path}/started-{{os.getpid()}}")
        signal.pause()
        """
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def master(program: Path) -> Iterator[NfdMaster]:
    context = {"cluster": "lab", "user": "admin"}
    kubeconfig = program.parent / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "current-context": "lab",
                "contexts": [{"name": "lab", "context": context}],
                "clusters": [{"name": "lab", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "admin", "user": {"token": "secret"}}],
            }
        ),
        encoding="utf-8",
    )
    made = NfdMaster(cast(Api, Account()), program, kubeconfig, program.parent, lambda: None)
    yield made
    made.close()


def started(directory: Path) -> list[dict[str, Any]]:
    return [yaml.safe_load(path.read_text()) for path in sorted(directory.glob("started-*")) if not path.suffix]


def pids(directory: Path) -> list[int]:
    """The processes of the program that are alive."""
    numbers = [int(path.name.removeprefix("started-")) for path in directory.glob("started-*") if not path.suffix]
    return [pid for pid in numbers if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]


def seen(what: str, probe: Callable[[], Any]) -> Any:
    return until(probe, what, seconds=20)


CRDS = frozenset({"crd-1"})


def test_nfd_master_runs_with_the_pods_arguments_rights_and_configuration(master: NfdMaster, tmp_path: Path) -> None:
    master.follow([master_pod()], CRDS)
    (start,) = seen("the start of nfd-master", lambda: started(tmp_path))
    assert start["node"] == "control-plane-1"
    assert start["ns"] == "nfd"
    kubeconfig, config = tmp_path / "nfd-master.kubeconfig", tmp_path / "nfd-master.conf"
    assert start["args"] == [
        "-extra-label-ns=x.io", "-resync-period=10s", "-port=0", f"-kubeconfig={kubeconfig}", f"-config={config}",
    ]  # fmt: skip
    assert config.read_text() == "resyncPeriod: 10s\n"
    assert kubeconfig.stat().st_mode & 0o077 == 0
    document = yaml.safe_load(kubeconfig.read_text())
    assert document["users"] == [{"name": "nfd-master", "user": {"token": "the-token"}}]
    assert document["clusters"] == [{"name": "lab", "cluster": {"server": "https://127.0.0.1:1"}}]


def test_nfd_master_ends_with_its_pod(master: NfdMaster, tmp_path: Path) -> None:
    master.follow([master_pod()], CRDS)
    seen("the start of nfd-master", lambda: started(tmp_path))
    master.follow([], CRDS)
    assert pids(tmp_path) == []


def test_nfd_master_is_started_anew_when_its_crds_are(master: NfdMaster, tmp_path: Path) -> None:
    master.follow([master_pod()], CRDS)
    seen("the start of nfd-master", lambda: started(tmp_path))
    master.follow([master_pod()], CRDS)
    assert len(started(tmp_path)) == 1
    master.follow([master_pod()], frozenset({"crd-2"}))
    seen("the second start", lambda: len(started(tmp_path)) == 2)
    assert len(pids(tmp_path)) == 1


def test_after_a_crash_nfd_master_starts_again_but_not_at_once(master: NfdMaster, tmp_path: Path) -> None:
    master.follow([master_pod()], CRDS)
    seen("the start of nfd-master", lambda: started(tmp_path))
    (pid,) = pids(tmp_path)
    psutil.Process(pid).kill()
    seen("the end of nfd-master", lambda: not pids(tmp_path))
    assert seen("the pause", lambda: master.follow([master_pod()], CRDS)) == pytest.approx(2.0)
    seen("the second start", lambda: master.follow([master_pod()], CRDS) is None and len(started(tmp_path)) == 2)


def test_nfd_master_waits_for_the_end_of_a_prune(master: NfdMaster, tmp_path: Path) -> None:
    master.prune(master_pod())
    (start,) = seen("the prune", lambda: started(tmp_path))
    assert start["args"] == ["-prune", "-kubeconfig", str(tmp_path / "kubeconfig")]
    assert master.follow([master_pod()], CRDS) is None
    (prune,) = pids(tmp_path)
    psutil.Process(prune).kill()
    seen("the end of the prune", lambda: not pids(tmp_path))
    master.follow([master_pod()], CRDS)
    seen("the start of nfd-master", lambda: len(started(tmp_path)) == 2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_child_dies_with_the_simulator_even_when_that_is_killed(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""\
        import signal
        from pathlib import Path
        from berkelium_lab.hardware.children import start
        child = start(["/bin/sh", "-c", "exec sleep 600"], Path({str(tmp_path / "log")!r}), {{}})
        print(child.pid, flush=True)
        signal.pause()
        """)
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    seen("the end of the child", lambda: not child.is_running() or child.status() == "zombie")
