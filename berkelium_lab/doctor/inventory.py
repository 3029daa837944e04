"""The devices that the drivers publish, as far as the examinations need them."""

from collections.abc import Iterator
from dataclasses import dataclass

from berkelium_infra.catalog import AMD, MODELS, NVIDIA, GpuModel
from berkelium_lab.doctor.cluster import Cluster
from berkelium_lab.doctor.pools import newest
from berkelium_lab.doctor.selectors import attributes


@dataclass(frozen=True)
class Published:
    """One published device; `attributes` are qualified by their domain."""

    driver: str
    pool: str
    name: str
    node: str
    attributes: dict[str, str]

    @property
    def type(self) -> str:
        """The driver's `type`; empty where it publishes none."""
        return self.attributes.get(f"{self.driver}/type", "")

    @property
    def product(self) -> str:
        """What tells the model: the product name or, for AMD, the PCI device id."""
        key = "deviceID" if self.driver == AMD.driver else "productName"
        return self.attributes.get(f"{self.driver}/{key}", "")

    @property
    def of_known_vendor(self) -> bool:
        """Whether the catalog says anything of the device's driver."""
        return self.driver in (NVIDIA.driver, AMD.driver)

    @property
    def model(self) -> GpuModel | None:
        """The catalog's model of the device, if it has one."""
        for model in MODELS:
            names = model.device_ids if model.vendor is AMD else (model.product_name,)
            if model.vendor.driver == self.driver and self.product in names:
                return model
        return None


def published(cluster: Cluster) -> Iterator[Published]:
    """All devices of the newest generation of every pool."""
    for (driver, pool), specs in newest(cluster).items():
        for spec in specs:
            for device in spec.get("devices") or []:
                yield Published(driver, pool, device["name"], spec.get("nodeName", ""), attributes(driver, device))
