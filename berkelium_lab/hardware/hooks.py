"""Hook jobs of the charts: KWOK completes their pods without running anything, so their effect is made here."""

import logging
import re
from dataclasses import dataclass

from berkelium_lab.api import Api
from berkelium_lab.hardware.cluster import DEVICE_CONFIGS, Cluster
from berkelium_lab.hardware.nfd_master import NfdMaster
from berkelium_lab.hardware.pods import Pod, Role

log = logging.getLogger(__name__)

_DELETE_CRDS = re.compile(r"kubectl delete (?:crds?|customresourcedefinitions?) (.*)")


@dataclass
class HookController:
    """Does once for each hook pod what its container says.

    - node-feature-discovery, post-delete: `nfd-master -prune`;
    - AMD operator, pre-delete: all DeviceConfigs are deleted; post-delete: the CRDs named in the script.
    """

    cluster: Cluster
    api: Api
    master: NfdMaster

    name = "chart hooks"

    def reconcile(self) -> float | None:
        """See `controller.Controller`."""
        while self.cluster.hooks:
            pod = self.cluster.hooks[0]
            if pod.role is Role.NFD_PRUNE:
                self._prune(pod)
            else:
                self._amd(pod)
            self.cluster.hooks.popleft()
        return None

    def _prune(self, pod: Pod) -> None:
        if {"-prune", "--prune"} & set(pod.containers[0].args):
            self.master.prune(pod)

    def _amd(self, pod: Pod) -> None:
        container = pod.containers[0]
        script = "\n".join((*container.command, *container.args))
        if container.name == "delete-leftover-deviceconfigs" and self.cluster.served(DEVICE_CONFIGS):
            for config in self.cluster.device_configs.items():
                metadata = config["metadata"]
                self.api.delete("amd.com/v1alpha1", "DeviceConfig", metadata["name"], metadata["namespace"])
        for crd in _deleted_crds(script):
            log.info("%s deletes the CRD %s", pod.key, crd)
            self.api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd)


def _deleted_crds(script: str) -> list[str]:
    words = (word for line in _DELETE_CRDS.findall(script) for word in line.split())
    return [word for word in words if not word.startswith("-")]
