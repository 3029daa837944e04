"""Device classes of the input: what they would hand out, and what they would do to those that are there."""

from collections.abc import Iterator, Sequence

from berkelium_lab.check import narrowing
from berkelium_lab.check.devices import Devices, summary
from berkelium_lab.check.findings import Finding, Item, Object, error, note, warning
from berkelium_lab.check.shapes import dig, mapping, selectors


def findings(item: Item, devices: Devices, present: Sequence[Object], others: Sequence[Item]) -> Iterator[Finding]:
    """The findings of one DeviceClass against the devices, the classes `present` and the other classes of the input."""
    yield from _extended_resource(item, present, others)
    own = selectors(mapping(item.obj.get("spec")))
    narrowing.evaluate_all(devices, [("selector", expression) for expression in own])
    if any(outcome.invalid for outcome in devices.evaluate(own)):
        return
    steps = narrowing.narrow(devices, [("selector", expression) for expression in own])
    failing = [step for step in steps if step.errors]
    for step in failing:
        yield narrowing.cel_error(devices, step, "spec.selectors")
    left = steps[-1].left if steps else tuple(devices.all)
    if not left and not failing:
        empty = next(step for step in steps if not step.left)
        position = steps.index(empty)
        before = steps[position - 1].left if position else tuple(devices.all)
        hint = f"{narrowing.table(steps[: position + 1])}\n{narrowing.nothing_left(before, empty)}"
        yield error("no-devices", "no device of the cluster is of this class", hint, "spec.selectors")
    kinds = sorted({device.kind for device in left})
    if len(kinds) > 1:
        drivers = sorted({device.driver for device in left})
        message = f"the class hands out devices of several types, {' and '.join(kinds)}: {summary(left)}"
        hint = f'say which: device.attributes["{drivers[0]}"].type == "{kinds[0]}"'
        yield warning("mixed-class", message, hint, "spec.selectors")
    elif left and not failing:
        yield note("class", f"the class hands out {summary(left)}")


def _extended_resource(item: Item, present: Sequence[Object], others: Sequence[Item]) -> Iterator[Finding]:
    name = dig(item.obj, "spec.extendedResourceName")
    if not isinstance(name, str):
        return
    owners = [c["metadata"]["name"] for c in present if dig(c, "spec.extendedResourceName") == name]
    owners += [other.name for other in others if dig(other.obj, "spec.extendedResourceName") == name]
    for owner in dict.fromkeys(owner for owner in owners if owner != item.name):
        message = f"{item.name} and {owner} both stand for {name}: of two classes the one made later wins, silently"
        hint = "give the class an extended resource of its own, or none"
        yield error("shared-resource", message, hint, "spec.extendedResourceName")
