"""Known faults of Kubernetes' scheduler and its neighbours in handing out devices, by minor version.

A new fault is one entry. Issue and pull request numbers are those of kubernetes/kubernetes; the patch releases were
compared in the source of 1.34.3, 1.35.4, 1.36.3 and 1.37.2. A fault that was fixed in an unknown patch of a minor is
listed for none of that minor's releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class SchedulerFault:
    """A fault; `minors` maps each affected minor of Kubernetes 1 to its first good patch, None where there is none yet.

    `needs_mig` says that only partitionable devices meet it.
    """

    issue: str
    minors: Mapping[int, int | None]
    summary: str
    remedy: str
    needs_mig: bool = False

    def affects(self, version: tuple[int, int, int]) -> bool:
        """Whether that release of Kubernetes has the fault."""
        major, minor, patch = version
        if major != 1 or minor not in self.minors:
            return False
        fixed = self.minors[minor]
        return fixed is None or patch < fixed


SCHEDULER_FAULTS = (
    SchedulerFault(
        "#141103",
        {36: None, 37: None},
        "The scheduler loses an extended resource when one of two classes that share it is deleted or changed.",
        "Keep one class for each extended resource, and change classes in place.",
    ),
    SchedulerFault(
        "PR #138917",
        {36: None},
        "Partitionable devices are scheduled at about 3 pods a second instead of about 100.",
        "Upgrade to 1.37, or expect MIG pods to wait on a large cluster.",
        needs_mig=True,
    ),
    SchedulerFault(
        "#138882",
        {36: 3},
        "The scheduler crashes on a claim with allocationMode All for devices that consume counters.",
        "Upgrade to 1.36.3 or later; until then ask for MIG-capable GPUs by count.",
        needs_mig=True,
    ),
    SchedulerFault(
        "PR #140431",
        {36: 3, 37: 2},
        "A leaked counter reservation keeps a pod pending although its devices are free.",
        "Upgrade to 1.36.3 or 1.37.2; restarting the scheduler frees the reservation.",
        needs_mig=True,
    ),
    SchedulerFault(
        "#131730",
        {34: None, 35: None, 36: None, 37: None},
        "A claim that cannot be met may take the scheduler 10 seconds per node to give up.",
        "Ask for several GPUs by one request with a count, not by several requests.",
    ),
    SchedulerFault(
        "enhancements #5690",
        {34: None, 35: None, 36: None, 37: None},
        "A pod's priority evicts nobody to free a device: pods with claims are not helped by preemption.",
        "Do not rely on priorities to free GPUs; use quotas.",
    ),
    SchedulerFault(
        "PR #141426",
        {36: None, 37: None},
        "A container fails to start on a node where a device plugin served the same extended resource before.",
        "Drain and reboot a node when it moves from a device plugin to dynamic resource allocation.",
    ),
    SchedulerFault(
        "#133488",
        {34: None},
        "An allocatable zero that a removed device plugin left behind keeps pods off the node.",
        "Upgrade to 1.35, or remove the resource from the node's status.",
    ),
    SchedulerFault(
        "#134880",
        {34: None},
        "Init containers that ask for an extended resource are given devices of their own beside the pod's.",
        "Upgrade to 1.35.",
    ),
    SchedulerFault(
        "#141912",
        {34: None, 35: None, 36: None, 37: None},
        "A driver's slices stay when it dies: pods are placed on its node and hang while their devices are prepared.",
        "Watch the finding slices-without-plugin.",
    ),
)
