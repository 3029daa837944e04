"""Programs that end at start: shown on the pod as the kubelet would, since no container runs here."""

import logging
from datetime import UTC, datetime
from typing import Any

from berkelium_lab.api import STRATEGIC_PATCH, Api
from berkelium_lab.hardware.pods import Pod

log = logging.getLogger(__name__)


class Crashes:
    """Marks pods as failing; each pod and container once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reported: set[tuple[str, str]] = set()

    def report(self, pod: Pod, container: str, message: str) -> None:
        """Put the container into CrashLoopBackOff, make the pod not ready and tell of it in an event."""
        if (pod.uid, container) in self._reported:
            return
        log.error("%s on %s: container %s ends at start: %s", pod.key, pod.node, container, message)
        self._api.patch(
            "v1", "Pod", pod.name, _status(pod, container, message), pod.namespace, STRATEGIC_PATCH, "status"
        )
        self._api.create(_event(pod, container, message))
        self._reported.add((pod.uid, container))


def _status(pod: Pod, container: str, message: str) -> dict[str, Any]:
    failing = next(entry for entry in pod.containers if entry.name == container)
    now = _now()
    why = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{container}]"}
    return {
        "status": {
            "conditions": [
                {"type": kind, "status": "False", "lastTransitionTime": now, **why}
                for kind in ("Ready", "ContainersReady")
            ],
            "containerStatuses": [
                {
                    "name": container,
                    "image": failing.image,
                    "imageID": "",
                    "ready": False,
                    "started": False,
                    "restartCount": 1,
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}},
                    "lastState": {
                        "terminated": {
                            "exitCode": 1,
                            "reason": "Error",
                            "message": message,
                            "startedAt": now,
                            "finishedAt": now,
                        }
                    },
                }
            ],
        }
    }


def _event(pod: Pod, container: str, message: str) -> dict[str, Any]:
    now = _now()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{pod.name}.", "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "fieldPath": f"spec.containers{{{container}}}",
        },
        "type": "Warning",
        "reason": "BackOff",
        "message": f"Back-off restarting failed container {container}: {message}",
        "source": {"component": "kubelet", "host": pod.node},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
