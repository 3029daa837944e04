"""The example manifests are the documentation's, letter by letter, and each is expected somewhere."""

import hashlib
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from berkelium_cli.catalog import catalog as catalog_command
from berkelium_infra import catalog
from berkelium_lab import examples
from berkelium_lab.placement import Device, Placement

DOCUMENTATION = Path(__file__).resolve().parents[3] / "shared" / "seed" / "gpu-accelerated-pods.md"
LOADED = examples.load()
DOCUMENTED = [example.manifest for example in LOADED.documented]

# SHA-256 (the first half of it) of the manifests as the user documentation prints them.
DIGESTS = {
    "b300/blackwell-training-pod.yaml": "24d955cb87f699a787bca95f69301b4c",
    "h200/h200-gpu-claim.yaml": "d7ee0716ba305bd6346bb5c4b7c58dbc",
    "h200/h200-nvlink-pod.yaml": "d90ee749e58e0d451005e043d756ea70",
    "h100/h100-distributed-pod.yaml": "672707d9341e1e1c1f68196cb7830f66",
    "a40/general-gpu-pod.yaml": "50ea679e94a1b0375e61968ba726711f",
    "dynamic-mig/mig-inference-pod.yaml": "e60cdc607ca2620eb635df74322c56e3",
    "extended-resources/simple-gpu-pod.yaml": "8739c8908916008c13095e631a3e2a68",
    "extended-resources/h100-extended-resource-pod.yaml": "d7dd88e5fe880d97caa09f28090c0523",
    "mi100/rocm-pytorch-job.yaml": "e6d09a7ade1f25dc9f374f5b8caca459",
    "mi100/rocm-dra-job.yaml": "5671c2def0306478a17c8ce49f01fff8",
}


@pytest.mark.parametrize("manifest", DOCUMENTED)
def test_a_documented_manifest_is_verbatim(manifest: str) -> None:
    assert hashlib.sha256((examples.DIRECTORY / manifest).read_bytes()).hexdigest()[:32] == DIGESTS[manifest]


@pytest.mark.skipif(not DOCUMENTATION.exists(), reason="the user documentation is not part of this repository")
@pytest.mark.parametrize("manifest", DOCUMENTED)
def test_a_documented_manifest_stands_in_the_user_documentation(manifest: str) -> None:
    assert f"\n{(examples.DIRECTORY / manifest).read_text()}" in DOCUMENTATION.read_text()


def test_the_nine_documented_pods_are_expected() -> None:
    assert [pod for example in LOADED.documented for pod in example.pods] == [
        "blackwell-training-pod",
        "h200-nvlink-pod",
        "h100-distributed-pod",
        "general-gpu-pod",
        "mig-inference-pod",
        "simple-gpu-pod",
        "h100-extended-resource-pod",
        "rocm-pytorch-job",
        "rocm-dra-job",
    ]


def test_every_manifest_is_expected_and_every_expectation_has_its_pods() -> None:
    listed = {example.manifest: set(example.pods) for example in (*LOADED.documented, *LOADED.further)}
    found = {
        str(path.relative_to(examples.DIRECTORY)): {
            document["metadata"]["name"]
            for document in yaml.safe_load_all(path.read_text())
            if document["kind"] == "Pod"
        }
        for path in examples.DIRECTORY.glob("*/*.yaml")
    }
    assert found == listed


def test_every_topic_folder_explains_itself() -> None:
    for folder in {path.parent for path in examples.DIRECTORY.glob("*/*.yaml")}:
        text = (folder / "README.md").read_text()
        for manifest in folder.glob("*.yaml"):
            assert re.search(rf"\b{re.escape(manifest.name)}\b", text), f"{folder.name}/README.md: {manifest.name}"


def test_the_any_fleet_example_is_what_the_catalog_generates() -> None:
    generated = CliRunner().invoke(catalog_command, ["nvlink-claim"]).output
    assert (examples.DIRECTORY / "h200/h200-nvlink-any-fleet-pod.yaml").read_text().startswith(generated + "---\n")


EXPECTED = examples.Expected(model="h200", devices=4, route="claim", domains=1)


def placed(devices: list[Device], route: str = "claim") -> Placement:
    return Placement("pod", "h200-1", "Running", tuple(devices), (route,))


def gpu(index: int, key: str = "h200", profile: str | None = None) -> Device:
    return Device(f"gpu-{index}", "h200-1", "gpu.nvidia.com", "gpu", catalog.model(key), profile)


def test_a_placement_as_expected_has_no_fault() -> None:
    assert list(examples.faults(EXPECTED, placed([gpu(i) for i in range(4)]))) == []


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (placed([gpu(i) for i in range(2, 6)]), "is spread over the NVLink domains pci0000, pci0001; allowed: 1"),
        (placed([gpu(i) for i in range(3)]), "has 3 devices instead of 4"),
        (placed([gpu(i, "h100") for i in range(4)]), "is on h100 instead of h200"),
        (placed([gpu(i, profile="1g.18gb") for i in range(4)]), "has 1g.18gb instead of whole GPUs"),
        (placed([gpu(i) for i in range(4)], "nvidia.com/h200"), "asked by nvidia.com/h200 instead of claim"),
    ],
)
def test_a_placement_that_differs_is_a_fault(found: Placement, fault: str) -> None:
    assert fault in list(examples.faults(EXPECTED, found))
