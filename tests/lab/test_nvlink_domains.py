"""Four GPUs of one NVLink domain: the free one is taken, and none when both are partly busy."""

from berkelium_lab.api import Api
from berkelium_lab.examples import load
from tests.lab import workloads

NODE = "h200-1"
DOMAINS = ("pci0000", "pci0001")


def occupy(namespace: str, name: str, domain: str) -> list[dict]:
    """A pod that holds one GPU of that domain of the node."""
    selector = f'device.attributes["gpu.nvidia.com"].pcieRoot == "{domain}"'
    return workloads.claiming(namespace, name, "nvidia-h200", node=NODE, selectors=[selector])


def documented_pod(namespace: str) -> list[dict]:
    """The documentation's claim for four GPUs of one domain, pinned to one node."""
    (example,) = [e for e in load().documented if "h200-nvlink-pod" in e.pods]
    objects = example.objects()
    for obj in objects:
        obj["metadata"]["namespace"] = namespace
    objects[1]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    return objects


def test_the_second_domain_is_taken_when_the_first_is_partly_busy(deployed: Api, namespace: str) -> None:
    workloads.create(deployed, occupy(namespace, "holder", DOMAINS[0]))
    workloads.running(deployed, namespace, "holder")
    workloads.create(deployed, documented_pod(namespace))
    found = workloads.running(deployed, namespace, "h200-nvlink-pod")
    assert [domain and domain.name for domain in found.nvlink_domains] == [DOMAINS[1]]
    assert found.requests == ("claim nvidia-h200 (domain1)",)


def test_a_pod_waits_while_both_domains_are_partly_busy_and_starts_when_a_gpu_is_freed(
    deployed: Api, namespace: str
) -> None:
    for index, domain in enumerate(DOMAINS):
        workloads.create(deployed, occupy(namespace, f"holder-{index}", domain))
        workloads.running(deployed, namespace, f"holder-{index}")
    workloads.create(deployed, documented_pod(namespace))
    assert "cannot allocate all claims" in workloads.unschedulable(deployed, namespace, "h200-nvlink-pod")
    workloads.remove(deployed, namespace, "holder-0")
    found = workloads.running(deployed, namespace, "h200-nvlink-pod")
    assert [domain and domain.name for domain in found.nvlink_domains] == [DOMAINS[0]]
