"""`berkelium check` says why something will not run, in terms of what its author wrote."""

from pathlib import Path

import pytest

from berkelium_lab.api import Api
from berkelium_lab.lab import Lab
from tests.lab.manifests import (
    AMOUNTS,
    NVIDIA,
    Object,
    all_words,
    checked,
    claiming,
    device_class,
    pod,
    template,
    workload,
)

MEMORY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{}")) >= 0'
CASES: dict[str, tuple[list[Object], list[str]]] = {
    "more devices than a node has": (
        claiming("nvidia-h200", count=9),
        ["no node has more than 8", "h200-1, h200-2", "ask for 8 or fewer"],
    ),
    "more of an extended resource than a node has": (
        [pod(limits={"nvidia.com/a100": "5"})],
        ["nvidia.com/a100: 5", "no node has more than 4"],
    ),
    "a class that does not exist": (claiming("nvidia-h800"), ["no DeviceClass nvidia-h800", "did you mean nvidia-h"]),
    "an extended resource that no class stands for": (
        [pod(limits={"nvidia.com/h10": "1"})],
        ["no device class stands for", "did you mean nvidia.com/h100"],
    ),
    "a MIG profile that no card has": (
        claiming("mig.nvidia.com", f'{NVIDIA}.profile == "1g.5gb"'),
        ["no device", "NVIDIA A100 80GB PCIe: 1g.10gb, 1g.10gb+me, 1g.20gb", "NVIDIA H200 NVL: 1g.18gb"],
    ),
    "a MIG profile of another card": (
        claiming("mig.nvidia.com", f'{NVIDIA}.profile == "1g.18gb" && {NVIDIA}.productName == "NVIDIA A40"'),
        ["112 × MIG device of NVIDIA H200 NVL", "productName", "NVIDIA H200 NVL: NVIDIA H200 NVL"],
    ),
    "more MIG devices than a GPU has": (
        claiming("mig.nvidia.com", f'{NVIDIA}.profile == "1g.18gb"', count=8, match="gpu.nvidia.com/parentUUID"),
        ["8 devices must share it, and no more than 7 do"],
    ),
    "a memory threshold that just misses": (
        claiming("nvidia-h100", MEMORY.format("80Gi")),
        ["NVIDIA H100 80GB HBM3: 81152Mi", "just below 80Gi"],
    ),
    "an attribute that does not exist": (
        claiming("mig.nvidia.com", f'{NVIDIA}.numaNode == 0 && {NVIDIA}.profile == "1g.18gb"'),
        ["it has no attribute gpu.nvidia.com/numaNode", "stops the scheduling", ".?numaNode.orValue("],
    ),
    "the attribute of Berkelium's own nodes": (
        claiming("nvidia-a100", f'{NVIDIA}.pcieRoot == "pci0000"'),
        ["it has no attribute gpu.nvidia.com/pcieRoot", "a selector that holds on any fleet"],
    ),
    "a version compared with a text": (
        claiming("nvidia-h100", f'{NVIDIA}.driverVersion == "580"'),
        ["no such overload", "compareTo(semver("],
    ),
    "an attribute that too few devices share": (
        claiming("nvidia-h200", count=4, match="resource.kubernetes.io/pcieRoot"),
        ["4 devices must share it, and no more than 1 do"],
    ),
    "more CPUs than the node with the devices has": (
        [
            template("nvidia-a40"),
            pod(claims="t", resources={"limits": {"cpu": "100", "memory": "1Gi"}, "claims": [{"name": "gpu"}]}),
        ],
        ["asks for 100 CPUs", "have 96 CPUs"],
    ),
    "a label of the device plugin's": (
        [pod(limits={"nvidia.com/gpu": "1"}, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})],
        ["node affinity/selector", "deviceClassName: nvidia-h100"],
    ),
    "a MIG resource of the device plugin's": (
        [pod(limits={"nvidia.com/mig-1g.10gb": "1"})],
        ["name of the device plugin's", "deviceClassName: mig.nvidia.com", '"1g.10gb"'],
    ),
    "a template that is nowhere": (
        [pod(claims="absent")],
        ["no ResourceClaimTemplate absent in namespace team", "give its file"],
    ),
    "a template of another namespace": (
        [template(namespace="other"), pod(claims="t")],
        ["one in namespace other", "its own namespace"],
    ),
    "replicas that do not all fit": (
        [workload("Deployment", replicas=10, limits={"nvidia.com/a40": "1"})],
        ["8 of 10 pods find a place", "8 × NVIDIA A40 48GB in the cluster"],
    ),
    "a quota that the second pod exceeds": (
        [
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q", "namespace": "team"},
                "spec": {"hard": {"requests.nvidia.com/gpu": "1"}},
            },
            pod("one", limits={"nvidia.com/gpu": "1"}),
            pod("two", limits={"nvidia.com/gpu": "1"}),
        ],
        ["exceeded quota"],
    ),
    "a class that fails on other devices": (
        [device_class("mine", f"{NVIDIA}.profile == '1g.10gb'"), template("mine"), pod(claims="t")],
        [
            "it has no attribute gpu.nvidia.com/profile",
            'device.driver == "gpu.nvidia.com" && ',
            '.?profile.orValue("")',
        ],
    ),
    "a class for a name that no device has": (
        [device_class("mine", f"device.driver == 'gpu.nvidia.com' && {NVIDIA}.productName == 'NVIDIA-A40'")],
        ["no device of the cluster is of this class", "NVIDIA A40 48GB: NVIDIA A40"],
    ),
    "a class with the extended resource of another": (
        [device_class("mine", "device.driver == 'gpu.nvidia.com'", "nvidia.com/gpu")],
        ["mine and gpu.nvidia.com both stand for nvidia.com/gpu"],
    ),
    "fields beside the request": (
        [
            {
                **template(),
                "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "nvidia-a40"}]}}},
            }
        ],
        ["belongs under exactly", "exactly:\n    deviceClassName: nvidia-a40"],
    ),
    "the nesting of v1alpha2": (
        [
            template(),
            pod(
                resources={"limits": AMOUNTS, "claims": [{"name": "gpu"}]},
                resourceClaims=[{"name": "gpu", "source": {"resourceClaimTemplateName": "t"}}],
            ),
        ],
        ["source is of v1alpha2", "resourceClaimTemplateName: t"],
    ),
    "an old API version": (
        [{**template(), "apiVersion": "resource.k8s.io/v1alpha3"}],
        ["API version of earlier", "apiVersion: resource.k8s.io/v1"],
    ),
    "a field that does not exist": ([pod(restartPolice="Never")], ["unknown field spec.restartPolice"]),
    "missing amounts and an idle command at once": (
        [workload("Job", resources={"limits": {**AMOUNTS, "nvidia.com/gpu": "1"}}, command="sleep infinity")],
        ["policy require-resources", "policy no-idle-gpu", "sleep infinity"],
    ),
    "a node name that passes the scheduler over": (
        [pod(limits={"nvidia.com/gpu": "1"}, nodeName="a40-1")],
        ["nodeName passes the scheduler over"],
    ),
    "two requests for more than a node has together": (
        [
            {
                **template(),
                "spec": {
                    "spec": {
                        "devices": {
                            "requests": [
                                {"name": name, "exactly": {"deviceClassName": "nvidia-h200", "count": 5}}
                                for name in ("a", "b")
                            ]
                        }
                    }
                },
            },
            pod(claims="t"),
        ],
        ["10 together, and no node has more than 8"],
    ),
}


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("case", CASES)
def test_the_reason_is_given(case: str, lab: Lab, tmp_path: Path) -> None:
    objects, expected = CASES[case]
    report = checked(lab, tmp_path, objects)
    said = all_words(report)
    assert report.exit_code() == 1, said
    assert [text for text in expected if text not in said] == [], said


def test_what_is_only_risky_is_a_warning(deployed: Api, lab: Lab, tmp_path: Path) -> None:
    del deployed
    mixed = device_class("mine", f"device.driver == 'gpu.nvidia.com' && {NVIDIA}.productName.contains('A100')")
    report = checked(lab, tmp_path, [mixed])
    assert (report.exit_code(), report.exit_code(strict=True)) == (0, 1)
    assert "several types, gpu and mig" in all_words(report)
