"""Projects: the namespaces of the users with what each may take of the cluster."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from berkelium_infra.catalog import DEVICE_CLASSES, MODELS
from berkelium_infra.settings.sections import ExtraDeviceClass
from berkelium_infra.settings.types import LabelKey, LabelValue, Quantity, Section, amount, refuse

OTHERS = "*"
"""Key of `gpus` that stands for every device class that is not named."""


def _count(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(f"{value!r} is no number of devices.", "Write a whole number, 0 for none.")
    if value < 0:
        raise refuse(f"{value} is below zero.", "Write a whole number, 0 for none.")
    return value


DeviceCount = Annotated[int, BeforeValidator(_count)]


class ProjectLimits(Section):
    """Upper bounds on the sums of the containers' limits."""

    cpu: Quantity | None = Field(default=None, description="CPU, such as 64.")
    memory: Quantity | None = Field(default=None, description="Memory, such as 512Gi.")


class ProjectQuota(Section):
    """What all pods and claims of a project together may ask for."""

    cpu: Quantity | None = Field(default=None, description="Sum of the CPU requests, such as 64.")
    memory: Quantity | None = Field(default=None, description="Sum of the memory requests, such as 512Gi.")
    limits: ProjectLimits = Field(default=ProjectLimits(), description="Sums of the CPU and memory limits.")
    gpus: dict[str, DeviceCount] = Field(
        default={},
        description="Devices by GPU model (h100) or device class (mig.nvidia.com), whichever way they are asked for; "
        '"*" is every class that is not named, and without it those are not limited.',
    )

    def __bool__(self) -> bool:
        return bool(self.cpu or self.memory or self.limits.cpu or self.limits.memory or self.gpus)


class ContainerAmounts(Section):
    """CPU and memory of one container, either or both."""

    cpu: Quantity | None = Field(default=None, description="CPU, such as 100m or 2.")
    memory: Quantity | None = Field(default=None, description="Memory, such as 256Mi.")

    def manifest(self) -> dict[str, str]:
        """The amounts that are given, by resource."""
        return {name: canonical(value) for name, value in self.model_dump(exclude_none=True).items()}


class ProjectLimitRange(Section):
    """The least and the most that one container of a project may ask for."""

    min: ContainerAmounts = Field(default=ContainerAmounts(), description="The least that a container may request.")
    max: ContainerAmounts = Field(default=ContainerAmounts(), description="The highest limit of a container.")

    @model_validator(mode="before")
    @classmethod
    def _no_defaults(cls, value: Any) -> Any:
        for key in ("default", "defaultRequest"):
            if isinstance(value, Mapping) and key in value:
                raise refuse(
                    f"{key} fills in what a pod does not say, and the policy require-resources refuses what was "
                    "filled in.",
                    f"Remove {key}; min and max are possible.",
                )
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for name in ("cpu", "memory"):
            least, most = getattr(self.min, name), getattr(self.max, name)
            if least and most and amount(least) > amount(most):
                raise refuse(f"min.{name} {least} is above max.{name} {most}.", f"Write a min of at most {most}.")
        return self

    def __bool__(self) -> bool:
        return bool(self.min.manifest() or self.max.manifest())


class Project(Section):
    """A namespace of users, made once the policies are in place."""

    labels: dict[LabelKey, LabelValue] = Field(default={}, description="Labels of the namespace.")
    quota: ProjectQuota = Field(
        default=ProjectQuota(), description="What all pods and claims of the project together may ask for."
    )
    limit_range: ProjectLimitRange = Field(
        default=ProjectLimitRange(), description="The least and the most that one container may ask for."
    )


def hard_limits(quota: ProjectQuota, extra: Sequence[ExtraDeviceClass] = ()) -> dict[str, str]:
    """`spec.hard` of the ResourceQuota, amounts as the API server writes them back.

    A device class is counted by two keys, both with the same number, since no single one sees every way to ask for a
    device before the pod is placed (pkg/quota/v1/evaluator/core/resource_claims.go, Kubernetes 1.37):

    - `<class>.deviceclass.resource.k8s.io/devices`: claims, and the claim that the scheduler makes for a pod with an
      extended resource, which is late but covers all ways together;
    - `requests.<extended resource>`: pods that ask by it when they are admitted, and claims of the class. A class
      without one is asked for by the name that every class has, `deviceclass.resource.kubernetes.io/<class>`.

    Not both names: the scheduler's claim for a pod that asked by one is charged to the other, so that pods that wait
    for a device by different names could keep each other from ever getting it.
    """
    hard = {
        "requests.cpu": quota.cpu,
        "requests.memory": quota.memory,
        "limits.cpu": quota.limits.cpu,
        "limits.memory": quota.limits.memory,
    }
    given = {key: canonical(value) for key, value in hard.items() if value}
    extended = {known.name: known.extended_resource for known in (*DEVICE_CLASSES, *extra)}
    for name, count in device_counts(quota.gpus, extra).items():
        given[f"{name}.deviceclass.resource.k8s.io/devices"] = str(count)
        given[f"requests.{extended[name] or f'deviceclass.resource.kubernetes.io/{name}'}"] = str(count)
    return given


def device_counts(gpus: Mapping[str, int], extra: Sequence[ExtraDeviceClass] = ()) -> dict[str, int]:
    """The number of devices per class, from counts by model or class; unknown keys are left out.

    A model's count goes to its own class. Another class of whole GPUs of that model alone would double it, since
    quotas cannot count two classes together, so it gets 0 unless it is named too.
    """
    names = [known.name for known in (*DEVICE_CLASSES, *extra)]
    counts = {name: count for name, count in gpus.items() if name in names}
    for key, count in gpus.items():
        for position, name in enumerate(classes_of(key)):
            counts.setdefault(name, count if position == 0 else 0)
    if OTHERS in gpus:
        counts = dict.fromkeys(names, gpus[OTHERS]) | counts
    return {name: counts[name] for name in names if name in counts}


def classes_of(key: str) -> list[str]:
    """The classes that hand out whole GPUs of the model and nothing else, its own first; none for an unknown key."""
    model = next((model for model in MODELS if model.key == key), None)
    if model is None:
        return []
    whole = model.vendor.gpu_type
    return [known.name for known in DEVICE_CLASSES if known.models == (model,) and known.device_type == whole]


def shared_models(gpus: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Model keys, each with a class of the same model that gets 0 because of it."""
    for key in gpus:
        for other in classes_of(key)[1:]:
            if other not in gpus:
                yield key, other


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT = re.compile(r"[eE][+-]?\d+$")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")


def canonical(quantity: str) -> str:
    """A quantity as Kubernetes writes it (no fraction, the largest suffix), so that a refresh finds no difference."""
    value = amount(quantity)
    if _EXPONENT.search(quantity):
        return quantity
    if quantity.endswith("i") and value == int(value):
        power = 0
        while value % 1024 == 0 and power + 1 < len(_BINARY):
            value, power = value / 1024, power + 1
        return f"{int(value)}{_BINARY[power]}"
    value, power = value.scaleb(9), 0
    while value % 1000 == 0 and power + 1 < len(_DECIMAL):
        value, power = value / Decimal(1000), power + 1
    return f"{int(value)}{_DECIMAL[power]}"
