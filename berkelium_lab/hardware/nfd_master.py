"""The real nfd-master as a child process, with the arguments, configuration and rights of the release's master pod."""

import logging
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from berkelium_lab.api import Api
from berkelium_lab.hardware import nfd
from berkelium_lab.hardware.children import start, stop
from berkelium_lab.hardware.pods import Pod
from berkelium_lab.paths import write_private

log = logging.getLogger(__name__)

_RESTART_SECONDS = 2.0
"""The pause after a crash, as the kubelet makes one, so that a process that cannot run does not spin."""
_TOKEN_SECONDS = 30 * 24 * 3600
# One process stands for all replicas, so there is nothing to elect; its port would be open on every interface, so the
# system chooses a free one instead of the chart's.
_DROPPED = ("port", "enable-leader-election", "kubeconfig", "config")


@dataclass(frozen=True)
class _Wanted:
    pod: Pod
    crd_uids: frozenset[str]


class NfdMaster:
    """Runs nfd-master while a master pod runs, and again after a crash or when its CRDs were made anew.

    `exited` is called when the process has ended, from another thread.
    """

    def __init__(self, api: Api, binary: Path, kubeconfig: Path, directory: Path, exited: Callable[[], None]) -> None:
        self._api = api
        self._binary = binary
        self._kubeconfig = kubeconfig
        self._directory = directory
        self._exited = exited
        self._process: subprocess.Popen[bytes] | None = None
        self._running: _Wanted | None = None
        self._prunes: list[subprocess.Popen[bytes]] = []
        self._not_before = 0.0

    def follow(self, pods: Sequence[Pod], crd_uids: frozenset[str]) -> float | None:
        """Run as the oldest of the running master pods; stop when there is none.

        It does not start before a prune is finished, which would take the new labels away again, nor at once after a
        crash. Returns the seconds after which to be called again, if any.
        """
        wanted = _Wanted(min(pods, key=lambda pod: (pod.created, pod.name)), crd_uids) if pods else None
        alive = self._process is not None and self._process.poll() is None
        if alive and wanted == self._running:
            return None
        crashed = self._process is not None and not alive
        self.stop()
        if wanted is None or self._pruning():
            return None
        pause = self._not_before - time.monotonic()
        if crashed:
            pause = _RESTART_SECONDS
        if pause > 0:
            self._not_before = time.monotonic() + pause
            return pause
        return self._start(wanted)

    def stop(self) -> None:
        """End the process."""
        process, self._process, self._running = self._process, None, None
        if process is not None and process.poll() is None:
            stop(process)
            log.info("nfd-master stopped")

    def prune(self, pod: Pod) -> None:
        """Do what the release's post-delete job does: remove all that NFD has put on nodes. Does not wait for it."""
        environment = {"NODE_NAME": pod.node, "KUBERNETES_NAMESPACE": pod.namespace}
        # The job's own account is deleted as soon as the job is complete, which here is at once.
        command = [str(self._binary), "-prune", "-kubeconfig", str(self._kubeconfig)]
        self._prunes.append(start(command, self._log_file(), environment))
        log.info("nfd-master -prune started for %s", pod.key)
        threading.Thread(target=self._await_prune, args=(self._prunes[-1],), daemon=True).start()

    def close(self) -> None:
        """End everything."""
        self.stop()
        for process in self._prunes:
            stop(process)

    def _start(self, wanted: _Wanted) -> float | None:
        pod = wanted.pod
        environment = {"NODE_NAME": pod.node, "KUBERNETES_NAMESPACE": pod.namespace}
        try:
            self._process = start([str(self._binary), *self._arguments(pod)], self._log_file(), environment)
        except OSError as error:
            log.error("nfd-master cannot be started: %s", error)
            return 5 * _RESTART_SECONDS
        self._running = wanted
        log.info("nfd-master started for %s, pid %d", pod.key, self._process.pid)
        threading.Thread(target=self._await, args=(self._process,), daemon=True).start()
        return None

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        if process is self._process:
            log.warning("nfd-master ended with status %d; see %s", process.returncode, self._log_file())
            self._exited()

    def _await_prune(self, process: subprocess.Popen[bytes]) -> None:
        log.info("nfd-master -prune ended with status %d", process.wait())
        self._exited()

    def _pruning(self) -> bool:
        self._prunes = [process for process in self._prunes if process.poll() is None]
        return bool(self._prunes)

    def _arguments(self, pod: Pod) -> list[str]:
        container = pod.container("master") or pod.containers[0]
        kept = [arg for arg in container.args if arg.lstrip("-").split("=")[0] not in _DROPPED]
        return [*kept, "-port=0", f"-kubeconfig={self._account(pod)}", f"-config={self._config(pod)}"]

    def _account(self, pod: Pod) -> Path:
        """A kubeconfig with the rights of the pod's service account."""
        path = f"/api/v1/namespaces/{pod.namespace}/serviceaccounts/{pod.service_account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_SECONDS},
        }
        token = self._api.raw("POST", path, body=request)["status"]["token"]
        admin = yaml.safe_load(self._kubeconfig.read_text(encoding="utf-8"))
        context = next(entry for entry in admin["contexts"] if entry["name"] == admin["current-context"])
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [entry for entry in admin["clusters"] if entry["name"] == context["context"]["cluster"]],
            "users": [{"name": "nfd-master", "user": {"token": token}}],
            "contexts": [
                {"name": "lab", "context": {"cluster": context["context"]["cluster"], "user": "nfd-master"}},
            ],
            "current-context": "lab",
        }
        target = self._directory / "nfd-master.kubeconfig"
        write_private(target, yaml.safe_dump(document))
        return target

    def _config(self, pod: Pod) -> Path:
        """The configuration file that the pod mounts, empty when it mounts none."""
        text = ""
        for name in pod.config_maps:
            config_map = self._api.get("v1", "ConfigMap", name, pod.namespace)
            text = ((config_map or {}).get("data") or {}).get(nfd.MASTER_CONFIG_KEY, text)
        target = self._directory / nfd.MASTER_CONFIG_KEY
        write_private(target, text)
        return target

    def _log_file(self) -> Path:
        logs = self._directory / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        return logs / "nfd-master.log"
