"""Claim templates that need knowledge of the catalog: GPUs of one NVLink domain, on any fleet.

The user documentation selects a domain by `device.attributes["gpu.nvidia.com"].pcieRoot`, an attribute of Berkelium's
own nodes. On a node with the upstream driver that attribute is absent, which is an error for the scheduler and not a
non-match; there only the host bridges of a domain's GPUs are known. The form made here holds on both.
"""

from collections.abc import Sequence

from berkelium_infra.catalog import DEVICE_CLASSES, NVLINK_DOMAIN_ATTRIBUTE, DeviceClass, GpuModel, NvlinkDomain


def whole_gpu_class(model: GpuModel) -> DeviceClass:
    """The first class that hands out nothing but whole GPUs of this model; KeyError if there is none."""
    for device_class in DEVICE_CLASSES:
        if device_class.models == (model,) and device_class.device_type == model.vendor.gpu_type:
            return device_class
    raise KeyError(f"no device class is for {model.title} alone")


def nvlink_selector(model: GpuModel, domain: NvlinkDomain) -> str:
    """CEL that is true for the GPUs of that domain, and an error on no device, whichever attributes it has."""
    roots = ", ".join(f'"{root}"' for root in domain.pcie_roots)
    return (
        f'device.attributes["{model.vendor.driver}"].?{NVLINK_DOMAIN_ATTRIBUTE}.orValue("") == "{domain.name}" ||\n'
        f'device.attributes["resource.kubernetes.io"].?pcieRoot.orValue("") in [{roots}]'
    )


def nvlink_claim_template(
    model: GpuModel, name: str, namespace: str, count: int, domains: Sequence[NvlinkDomain]
) -> dict[str, object]:
    """A ResourceClaimTemplate for `count` GPUs of one NVLink domain, whichever of `domains` has them free."""
    alternatives = [
        {
            "name": f"domain{index}",
            "deviceClassName": whole_gpu_class(model).name,
            "allocationMode": "ExactCount",
            "count": count,
            "selectors": [{"cel": {"expression": nvlink_selector(model, domain)}}],
        }
        for index, domain in enumerate(domains)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}}},
    }
