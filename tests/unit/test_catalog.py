"""The catalog against the user documentation: its reference table, its MIG table, its NVLink domains."""

import pytest

from berkelium_infra import catalog
from berkelium_infra.claims import nvlink_claim_template, nvlink_selector, whole_gpu_class
from berkelium_infra.gpu import MEMORY_SLICES

# The documentation's "Supported DeviceClasses Reference".
REFERENCE = {
    "nvidia-b300": ("gpu.nvidia.com", "nvidia.com/b300", "NVIDIA B300 SXM6 AC"),
    "nvidia-h200": ("gpu.nvidia.com", "nvidia.com/h200", "NVIDIA H200 NVL"),
    "nvidia-h100": ("gpu.nvidia.com", "nvidia.com/h100", "NVIDIA H100 80GB HBM3"),
    "nvidia-a100": ("gpu.nvidia.com", "nvidia.com/a100", "NVIDIA A100 80GB PCIe"),
    "nvidia-a40": ("gpu.nvidia.com", "nvidia.com/a40", "NVIDIA A40 48GB"),
    "gpu.nvidia.com": ("gpu.nvidia.com", "nvidia.com/gpu", "NVIDIA A40 48GB"),
    "mig.nvidia.com": ("gpu.nvidia.com", None, None),
    "gpu.amd.com": ("gpu.amd.com", "amd.com/gpu", "AMD Instinct MI100"),
}

# The documentation's "Available Dynamic MIG Profiles by GPU Model".
MIG = {
    "NVIDIA B300 SXM6 AC": "1g.34gb 1g.34gb+me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    "NVIDIA H200 NVL": "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    "NVIDIA H100 80GB HBM3": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "NVIDIA A100 80GB PCIe": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
}

# Memory and kind of memory per GPU, from the documentation's list of the fleet.
MEMORY = {
    "b300": (275, "HBM3e"),
    "h200": (141, "HBM3e"),
    "h100": (80, "HBM3"),
    "a100": (80, "HBM2e"),
    "a40": (48, "GDDR6"),
    "mi100": (32, "HBM2"),
}


def test_the_device_classes_are_those_of_the_reference_table() -> None:
    declared = {
        c.name: (c.vendor.driver, c.extended_resource, c.models[0].title if c.extended_resource else None)
        for c in catalog.DEVICE_CLASSES
    }
    assert declared == REFERENCE


def test_no_two_classes_share_an_extended_resource() -> None:
    names = [c.extended_resource for c in catalog.DEVICE_CLASSES if c.extended_resource]
    assert len(names) == len(set(names)) == 7


@pytest.mark.parametrize("device_class", catalog.DEVICE_CLASSES, ids=lambda c: c.name)
def test_every_selector_asks_for_the_driver_first(device_class: catalog.DeviceClass) -> None:
    assert device_class.selector.startswith(f'device.driver == "{device_class.vendor.driver}" && ')


def test_every_whole_gpu_class_of_nvidia_asks_for_type_gpu() -> None:
    for device_class in catalog.DEVICE_CLASSES:
        if device_class.vendor is catalog.NVIDIA and device_class.name != "mig.nvidia.com":
            assert 'device.attributes["gpu.nvidia.com"].type == "gpu"' in device_class.selector


def test_the_mig_profiles_are_those_of_the_documentation() -> None:
    assert {model.title: " ".join(p.name for p in model.mig_profiles) for model in catalog.MIG_MODELS} == MIG


def test_the_documented_number_of_instances_fits_on_one_gpu() -> None:
    for model in catalog.MIG_MODELS:
        assert [profile.instances for profile in model.mig_profiles] == [7, 1, 4, 3, 2, 1, 1]


def test_no_placement_reaches_beyond_the_card() -> None:
    for model in catalog.MIG_MODELS:
        for profile in model.mig_profiles:
            assert max(profile.starts) + profile.size <= MEMORY_SLICES


def test_the_memory_of_every_model_is_the_documented_one() -> None:
    assert {model.key: (model.memory_gb, model.memory_kind) for model in catalog.MODELS} == MEMORY


def test_h200_nodes_have_two_nvlink_domains_of_four_gpus() -> None:
    domains = {domain.name: domain.gpus for domain in catalog.model("h200").nvlink_domains}
    assert domains == {"pci0000": (0, 1, 2, 3), "pci0001": (4, 5, 6, 7)}


def test_no_two_models_share_a_pci_device_id() -> None:
    ids = [(model.vendor.pci_id, device) for model in catalog.MODELS for device in model.pci_devices]
    assert len(ids) == len(set(ids))


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"h300.*b300, h200, h100, a100, a40, mi100"):
        catalog.model("h300")


def test_the_class_of_whole_a40_gpus_is_the_specific_one() -> None:
    assert whole_gpu_class(catalog.model("a40")).name == "nvidia-a40"


def test_the_nvlink_claim_offers_every_domain_and_reads_no_attribute_unguarded() -> None:
    h200 = catalog.model("h200")
    template = nvlink_claim_template(h200, "four", "team", 4, h200.nvlink_domains)
    (request,) = template["spec"]["spec"]["devices"]["requests"]  # type: ignore[index]
    assert [choice["count"] for choice in request["firstAvailable"]] == [4, 4]
    for choice, domain in zip(request["firstAvailable"], h200.nvlink_domains, strict=True):
        expression = choice["selectors"][0]["cel"]["expression"]
        assert expression == nvlink_selector(h200, domain)
        assert ".pcieRoot" not in expression.replace(".?pcieRoot", "")
