"""Why a request for devices finds none: which class, which selector and which term of it leaves how many."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kubernetes.utils.quantity import parse_quantity

from berkelium_infra.catalog import NVIDIA, NVLINK_DOMAIN_ATTRIBUTE
from berkelium_lab.check import expressions, stale
from berkelium_lab.check.devices import Device, Devices, summary
from berkelium_lab.check.expressions import Access
from berkelium_lab.check.findings import Finding, error

CLASS_LABEL = "class "
"""How the label of a condition begins that is a device class's."""

_MOST_VALUES = 12


@dataclass(frozen=True)
class Step:
    """One condition in a row: `label` says where it is from, `left` are the devices that satisfy all up to here."""

    label: str
    expression: str
    selector: str
    left: tuple[Device, ...]
    errors: dict[int, str]


def narrow(devices: Devices, labelled: list[tuple[str, str]]) -> list[Step]:
    """Apply selectors, each with a label, one term after the other.

    Errors count on the devices that all conditions before have left, as for the scheduler.
    """
    rows = [(label, term, selector) for label, selector in labelled for term in _terms(devices, label, selector)]
    outcomes = devices.evaluate([term for _, term, _ in rows])
    left = tuple(devices.all)
    steps = []
    for (label, term, selector), outcome in zip(rows, outcomes, strict=True):
        errors = {device.index: outcome.errors[device.index] for device in left if device.index in outcome.errors}
        left = tuple(device for device in left if device.index in outcome.matches)
        steps.append(Step(label, term, selector, left, errors))
    return steps


def evaluate_all(devices: Devices, labelled: list[tuple[str, str]]) -> None:
    """Evaluate everything that `narrow` will ask for these selectors."""
    selectors = list(dict.fromkeys(selector for _, selector in labelled))
    devices.evaluate([*selectors, *(term for selector in selectors for term in expressions.terms(selector))])


def _terms(devices: Devices, label: str, selector: str) -> list[str]:
    """The terms of a selector; the whole of it when a term alone is no valid expression, or when a class is sound."""
    if label.startswith(CLASS_LABEL):
        (whole,) = devices.evaluate([selector])
        if whole.matches and not whole.errors:
            return [selector]
    parts = expressions.terms(selector)
    return parts if not any(outcome.invalid for outcome in devices.evaluate(parts)) else [selector]


def table(steps: list[Step]) -> str:
    """How many devices each step leaves, a line each."""
    lines = []
    for step in steps:
        of_class = step.label.startswith(CLASS_LABEL) and step.expression == step.selector and step.left
        what = step.label if of_class else f"{step.label} {' '.join(step.expression.split())}"
        lines.append(f"{what}: {summary(step.left)}")
    return "\n".join(lines)


def cel_error(devices: Devices, step: Step, path: str) -> Finding:
    """The finding for a selector that fails on some device, with a form that does not."""
    index, text = next(iter(sorted(step.errors.items())))
    device = devices.all[index]
    absent = [a for a in expressions.accesses(step.expression) if not a.guarded and not _has(device, a)]
    where = f"{device.name} on {device.node} (driver {device.driver}, {device.title})"
    if absent:
        access = absent[0]
        message = (
            f"the selector is an error on device {where}: it has no {_noun(access)} {access.qualified}. "
            "An error stops the scheduling of the whole pod; it is not a mismatch"
        )
        return error("cel-error", message, _guarded(devices, step, access), path)
    message = f"the selector is an error on device {where}: {text.removeprefix('CEL runtime error: ')}"
    return error("cel-error", message, _typed(device, step), path)


def _guarded(devices: Devices, step: Step, access: Access) -> str:
    if (access.domain, access.name) == (NVIDIA.driver, NVLINK_DOMAIN_ATTRIBUTE):
        return stale.nvlink_form()
    typed = next((d.types[access.qualified] for d in devices.all if access.qualified in d.types), "string")
    foreign = any(devices.all[index].driver != access.domain for index in step.errors)
    driver = access.domain if foreign and any(d.driver == access.domain for d in devices.all) else None
    rewritten = expressions.guarded(step.selector, access, typed, driver)
    # A second unguarded read is mended in the same way.
    for other in expressions.accesses(rewritten):
        if not other.guarded and other.text != access.text and other.text in step.expression:
            rewritten = expressions.guarded(rewritten, other, typed, None)
    (outcome,) = devices.evaluate([rewritten])
    return rewritten if not outcome.invalid else f"ask first whether it is there: has({access.text}) && …"


def _typed(device: Device, step: Step) -> str:
    for access in expressions.accesses(step.expression):
        if access.kind == "capacity":
            return f'a capacity is a quantity: {access.text}.compareTo(quantity("80Gi")) >= 0'
        if device.types.get(access.qualified) == "version":
            value = device.attributes[access.qualified]
            return f'{access.name} is a version (here {value}): {access.text}.compareTo(semver("{value}")) >= 0'
        if access.qualified in device.types:
            value_type, value = device.types[access.qualified], device.attributes[access.qualified]
            return f"{access.name} is of type {value_type} (here {value})"
    return ""


def nothing_left(before: tuple[Device, ...], step: Step) -> str:
    """What the devices have instead of what the step asks for."""
    return "\n".join(_values(before, step, access) for access in _distinct(step.expression))


def _distinct(expression: str) -> Iterator[Access]:
    seen = set()
    for access in expressions.accesses(expression):
        if access.qualified not in seen:
            seen.add(access.qualified)
            yield access


def _values(devices: tuple[Device, ...], step: Step, access: Access) -> str:
    lookup: Callable[[Device], object] = (
        (lambda d: d.capacity.get(access.qualified)) if access.kind == "capacity" else
        (lambda d: d.attributes.get(access.qualified))
    )  # fmt: skip
    by_model: dict[str, list[str]] = {}
    for device in devices:
        value = lookup(device)
        values = by_model.setdefault(device.model.title if device.model else device.title, [])
        text = "absent" if value is None else str(value)
        if text not in values:
            values.append(text)
    lines = [f"{_noun(access)} {access.name} of these devices:"]
    for title, values in by_model.items():
        shown = ", ".join(values[:_MOST_VALUES]) + (", …" if len(values) > _MOST_VALUES else "")
        lines.append(f"  {title}: {shown}{_near_miss(step, values) if access.kind == 'capacity' else ''}")
    return "\n".join(lines)


def _near_miss(step: Step, values: list[str]) -> str:
    """For a threshold that a value misses by less than a tenth: by how much."""
    for literal in expressions.literals(step.expression):
        try:
            asked, has = parse_quantity(literal), max(parse_quantity(value) for value in values)
        except ValueError:
            continue
        if asked and has < asked and has >= asked * 9 / 10:
            mebibytes = int(has / 1024**2)
            return f" (just below {literal}: write {mebibytes}Mi or less)"
    return ""


def _has(device: Device, access: Access) -> bool:
    return access.qualified in (device.capacity if access.kind == "capacity" else device.attributes)


def _noun(access: Access) -> str:
    return "capacity" if access.kind == "capacity" else "attribute"
