"""Leaf types of the configuration: quantities, images, namespaces, tolerations, container resources.

Each refuses what Kubernetes or a chart would refuse later, and says what to write. A problem and its remedy travel in
one `PydanticCustomError`, made by `refuse`.
"""

import re
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

FAULT = "fault"
"""Type of the pydantic errors that carry a problem and a remedy of ours."""

REPOSITORY = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
"""Regular expression of an image's name without tag, registry and port included."""

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_IMAGE = re.compile(rf"(?P<repository>{REPOSITORY}):(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]*)(@sha256:[0-9a-f]{{64}})?")
_QUANTITY = re.compile(r"(?P<number>\d+(\.\d*)?|\.\d+)(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?")
_BINARY = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def refuse(problem: str, remedy: str) -> PydanticCustomError:
    """The error to raise in a validator; both texts are whole sentences."""
    return PydanticCustomError(FAULT, "{problem} {remedy}", {"problem": problem, "remedy": remedy})


def amount(quantity: str) -> Decimal:
    """The number that a Kubernetes quantity stands for. Raises ValueError when it is none (a sign counts as none)."""
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is no quantity")
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    if suffix in _BINARY:
        return number * _BINARY[suffix]
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return number.scaleb(exponent)


def _text(value: object) -> object:
    """A YAML number, such as `cpu: 2`, is a quantity too."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _quantity(value: str) -> str:
    try:
        positive = amount(value) > 0
    except ValueError:
        raise refuse(
            f"{value!r} is no quantity.", "Write a number with a unit, such as 500m, 2, 512Mi or 4Gi."
        ) from None
    if not positive:
        raise refuse(f"{value!r} means unlimited.", "Write an amount above zero.")
    return value


def _namespace(value: str) -> str:
    if not _DNS_LABEL.fullmatch(value):
        raise refuse(
            f"{value!r} is no name of a namespace.",
            "Write lower case letters, digits and '-', beginning and ending with a letter or digit, "
            "63 characters at most; patterns are not understood.",
        )
    return value


def _object_name(value: str) -> str:
    if len(value) > 253 or not _DNS_SUBDOMAIN.fullmatch(value):
        raise refuse(f"{value!r} is no object name.", "Write lower case letters, digits, '-' and '.'.")
    return value


def _qualified_name(value: str) -> str:
    prefix, slash, name = value.rpartition("/")
    if not _NAME_PART.fullmatch(name) or (slash and not _DNS_SUBDOMAIN.fullmatch(prefix)):
        raise refuse(f"{value!r} is no label key.", "Write a name, or a domain and a name such as example.com/pool.")
    return value


def _extended_resource(value: str) -> str:
    prefix, _, _ = _qualified_name(value).rpartition("/")
    if not prefix or prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io"):
        raise refuse(
            f"{value!r} is no extended resource name.",
            "Write a domain outside kubernetes.io and a name, such as example.com/gpu.",
        )
    return value


def _label_value(value: str) -> str:
    if value and not _NAME_PART.fullmatch(value):
        raise refuse(f"{value!r} is no label value.", "Write letters, digits, '-', '_' and '.', 63 characters at most.")
    return value


def _image(value: str) -> str:
    match = _IMAGE.fullmatch(value)
    if match is None:
        raise refuse(
            f"{value!r} names no image with a tag.",
            "Write registry/repository:tag, with a fixed tag (a digest may follow it).",
        )
    if match["tag"].lower() == "latest" or match["tag"].endswith("-latest"):
        raise refuse(f"{value!r} may be another image tomorrow.", "Write a fixed tag instead of latest.")
    return value


def _max_unavailable(value: object) -> object:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not re.fullmatch(r"[1-9][0-9]*|([1-9][0-9]?|100)%", text):
        raise refuse(f"{value!r} is no number of nodes.", "Write a number such as 1, or a share such as 10%.")
    return text


def split_image(image: str) -> tuple[str, str]:
    """Repository and tag (with the digest, if there is one) of an image that is an `Image`."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        raise ValueError(f"{image!r} names no image with a tag")
    return match["repository"], image[len(match["repository"]) + 1 :]


Quantity = Annotated[str, BeforeValidator(_text), AfterValidator(_quantity)]
NamespaceName = Annotated[str, AfterValidator(_namespace)]
ObjectName = Annotated[str, AfterValidator(_object_name)]
LabelKey = Annotated[str, AfterValidator(_qualified_name)]
LabelValue = Annotated[str, AfterValidator(_label_value)]
ExtendedResource = Annotated[str, AfterValidator(_extended_resource)]
Image = Annotated[str, AfterValidator(_image)]
MaxUnavailable = Annotated[str, BeforeValidator(_max_unavailable)]
NodeSelector = dict[LabelKey, LabelValue]


class Section(BaseModel):
    """A part of the configuration: camelCase keys, unknown ones refused, unchangeable once read."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Toleration(Section):
    """A taint that a chart's pods may live with, in the words of the Kubernetes API."""

    key: LabelKey | None = Field(default=None, description="Taint key; absent with operator Exists means every taint.")
    operator: Literal["Exists", "Equal"] = Field(default="Equal", description="Exists, or Equal to `value`.")
    value: LabelValue | None = Field(default=None, description="Taint value, with operator Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Taint effect; absent means every effect."
    )
    toleration_seconds: int | None = Field(default=None, description="How long, with effect NoExecute.")

    @model_validator(mode="after")
    def _shape(self) -> Self:
        if self.key is None and self.operator != "Exists":
            raise refuse("A toleration without key tolerates nothing.", "Write key, or operator: Exists.")
        if self.operator == "Exists" and self.value:
            raise refuse("A toleration with operator Exists has no value.", "Remove value, or write operator: Equal.")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise refuse(
                "tolerationSeconds counts only with effect NoExecute.", "Write effect: NoExecute, or remove it."
            )
        return self

    def manifest(self) -> dict[str, object]:
        """The toleration as it stands in a pod's spec."""
        return self.model_dump(by_alias=True, exclude_none=True)


class Amounts(Section):
    """CPU and memory."""

    cpu: Quantity = Field(description="CPU, such as 100m or 2.")
    memory: Quantity = Field(description="Memory, such as 256Mi.")


class Resources(Section):
    """Requests and limits of one container, all four, as the policy require-resources asks of everybody."""

    requests: Amounts = Field(description="What is reserved.")
    limits: Amounts = Field(description="What may be used.")

    @model_validator(mode="after")
    def _within_limits(self) -> Self:
        for name in ("cpu", "memory"):
            request, limit = getattr(self.requests, name), getattr(self.limits, name)
            if amount(request) > amount(limit):
                raise refuse(
                    f"requests.{name} {request} is above limits.{name} {limit}.",
                    f"Write a request of at most {limit}, or raise the limit.",
                )
        return self

    def manifest(self) -> dict[str, dict[str, str]]:
        """The resources as they stand in a container's spec."""
        return self.model_dump()


def resources(cpu: str, memory: str, cpu_limit: str, memory_limit: str) -> Resources:
    """Shorthand for a default."""
    return Resources(requests=Amounts(cpu=cpu, memory=memory), limits=Amounts(cpu=cpu_limit, memory=memory_limit))
