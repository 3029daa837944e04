"""Why the scheduler finds no place for a pod, in terms of what its author wrote."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kubernetes.utils.quantity import parse_quantity

from berkelium_lab.check import narrowing, references
from berkelium_lab.check.devices import Device, Devices, most_on_one_node, summary
from berkelium_lab.check.findings import Finding, Item, Object, error
from berkelium_lab.check.narrowing import Step
from berkelium_lab.check.references import Index, nearest
from berkelium_lab.check.shapes import (
    Request,
    claim_spec,
    containers,
    dig,
    entries,
    extended_resources,
    joined,
    mapping,
    pod_template,
    requests,
    selectors,
)
from berkelium_lab.check.stale import MIG_RESOURCE

Explained = tuple[Item, Finding]
"""A finding and the object to which it belongs."""


@dataclass
class Ask:
    """One request for devices of a pod. `steps` are the conditions; `owner` and `path` say where it is written."""

    what: str
    count: int
    owner: Item
    path: str
    steps: list[Step] = field(default_factory=list)
    optional: bool = False
    every: bool = False

    @property
    def left(self) -> tuple[Device, ...]:
        """The devices that satisfy all conditions."""
        return self.steps[-1].left if self.steps else ()


class Explainer:
    """Explains by the classes and devices of a cluster and by the objects of the input."""

    def __init__(self, devices: Devices, classes: Sequence[Object], nodes: Sequence[Object], index: Index) -> None:
        self._devices = devices
        self._nodes = {node["metadata"]["name"]: node for node in nodes}
        self._index = index
        self._classes = {c["metadata"]["name"]: c for c in classes}
        self.extended = {
            dig(c, "spec.extendedResourceName"): name
            for name, c in self._classes.items()
            if dig(c, "spec.extendedResourceName")
        }

    def class_names(self) -> list[str]:
        """The device classes of the cluster."""
        return sorted(self._classes)

    def prepare(self, items: Sequence[Item]) -> None:
        """Evaluate all selectors of the items at once: a question to the program costs more than what it asks."""
        rows = [row for item in items for _, labelled in self._asks(item) for row in labelled]
        narrowing.evaluate_all(self._devices, rows)

    def explain(self, item: Item) -> list[Explained]:
        """Which of the item's requests cannot be satisfied, or cannot together; each with the object that states it."""
        unknown = list(self._unknown_resources(item))
        asks = [self._narrowed(ask, labelled) for ask, labelled in self._asks(item)]
        must = [ask for ask in asks if not ask.optional]
        hopeless = [ask for ask in asks if self._fault(ask)]
        faults = [fault for ask in must if (fault := self._fault(ask))]
        if not faults and hopeless and all(ask in hopeless for ask in asks if ask.optional):
            faults = [fault for ask in hopeless if (fault := self._fault(ask))]
        found = [*unknown, *faults]
        return found or [*self._together(must), *self._room(item, must)]

    def errors(self, item: Item) -> Iterator[Finding]:
        """Selectors of a claim that fail on some device of the cluster, whether or not it mattered this time."""
        for ask, labelled in self._asks(item):
            for step in self._narrowed(ask, labelled).steps if ask.owner is item else ():
                if step.errors:
                    yield narrowing.cel_error(self._devices, step, ask.path)

    def available(self, item: Item) -> str:
        """What there is in the whole cluster of the devices that the item asks for."""
        asks = [self._narrowed(ask, labelled) for ask, labelled in self._asks(item)]
        return "; ".join(f"{ask.what}: {summary(ask.left)} in the cluster" for ask in asks)

    def _asks(self, item: Item) -> Iterator[tuple[Ask, list[tuple[str, str]]]]:
        for owner, request in self._requests(item):
            if request.device_class not in self._classes:
                continue
            what = f"request {request.name} ({request.count} × {request.device_class})"
            ask = Ask(what, request.count, owner, request.path, optional=request.optional, every=request.all_devices)
            yield ask, self._labelled(request.device_class, request.selectors)
        template = pod_template(item.obj)
        for name, count in extended_resources(template[0]).items() if template else ():
            device_class = self.extended.get(name)
            if device_class:
                path = joined(template[1], "spec.containers") if template else ""
                yield Ask(f"{name}: {count}", count, item, path), self._labelled(device_class, ())

    def _requests(self, item: Item) -> Iterator[tuple[Item, Request]]:
        owners = [item] if claim_spec(item.obj) else []
        for reference in references.of(item):
            target = self._index.find(reference, item)
            if target is not None and claim_spec(target.obj):
                owners.append(target)
        for owner in owners:
            spec = claim_spec(owner.obj)
            for request in requests(*spec) if spec else ():
                yield owner, request

    def _labelled(self, device_class: str, own: Sequence[str]) -> list[tuple[str, str]]:
        of_class = selectors(mapping(self._classes[device_class].get("spec")))
        return [
            *((narrowing.CLASS_LABEL + device_class, text) for text in of_class),
            *(("selector", text) for text in own),
        ]

    def _narrowed(self, ask: Ask, labelled: list[tuple[str, str]]) -> Ask:
        ask.steps = narrowing.narrow(self._devices, labelled)
        return ask

    def _fault(self, ask: Ask) -> Explained | None:
        """Why this request alone cannot be satisfied on an empty cluster."""
        finding = self._alone(ask)
        return (ask.owner, finding) if finding else None

    def _alone(self, ask: Ask) -> Finding | None:
        before = tuple(self._devices.all)
        for step in ask.steps:
            if step.errors and not step.left:
                return narrowing.cel_error(self._devices, step, ask.path)
            if not step.left:
                hint = narrowing.table(ask.steps[: ask.steps.index(step) + 1])
                values = narrowing.nothing_left(before, step)
                return error("no-devices", f"{ask.what}: no device satisfies it", f"{hint}\n{values}", ask.path)
            before = step.left
        failing = next((step for step in ask.steps if step.errors), None)
        if failing:
            return narrowing.cel_error(self._devices, failing, ask.path)
        most, nodes = most_on_one_node(ask.left)
        if ask.count > most and not ask.every:
            message = f"{ask.what}: one pod's devices are on one node, and no node has more than {most} of them"
            hint = f"{summary(ask.left)} in all, {most} each on {', '.join(nodes)}; ask for {most} or fewer per pod"
            return error("too-many-devices", message, hint, ask.path)
        return None

    def _unknown_resources(self, item: Item) -> Iterator[Explained]:
        template = pod_template(item.obj)
        for name in extended_resources(template[0]) if template else ():
            known = self.extended.keys()
            served = any(name in mapping(dig(node, "status.allocatable")) for node in self._nodes.values())
            if name in known or served or name.removeprefix(references.IMPLICIT_PREFIX) in self._classes:
                continue
            close = [] if MIG_RESOURCE.match(name) else nearest(name, known)
            hint = f"did you mean {', or '.join(close)}?" if close else f"there are {', '.join(sorted(known))}"
            path = joined(template[1], "spec.containers") if template else ""
            yield (
                item,
                error("unknown-resource", f"no device class stands for the extended resource {name}", hint, path),
            )

    def _together(self, asks: list[Ask]) -> Iterator[Explained]:
        """Requests that can be satisfied one by one and not at once."""
        totals: Counter[tuple[int, ...]] = Counter()
        groups: dict[tuple[int, ...], list[Ask]] = defaultdict(list)
        for ask in asks:
            key = tuple(device.index for device in ask.left)
            totals[key] += ask.count
            groups[key].append(ask)
        for key, total in totals.items():
            most, nodes = most_on_one_node(self._devices.all[index] for index in key)
            if total > most:
                names = " and ".join(ask.what for ask in groups[key])
                message = f"{names}: {total} together, and no node has more than {most} of them"
                first = groups[key][0]
                yield first.owner, error("too-many-devices", message, f"{most} each on {', '.join(nodes)}", first.path)
        having = [{device.node for device in ask.left} for ask in asks]
        if having and not set.intersection(*having):
            message = "no node has devices for all of the pod's requests"
            hint = "\n".join(f"{ask.what}: {summary(ask.left)}" for ask in asks)
            yield asks[0].owner, error("too-many-devices", message, hint, asks[0].path)
        yield from self._constraints(asks)

    def _constraints(self, asks: list[Ask]) -> Iterator[Explained]:
        for owner in {id(ask.owner): ask.owner for ask in asks}.values():
            spec = claim_spec(owner.obj)
            for number, constraint in entries(dig(spec[0], "devices.constraints")) if spec else ():
                attribute = constraint.get("matchAttribute")
                named = constraint.get("requests")
                bound = [a for a in asks if a.owner is owner and (not named or a.what.split()[1] in named)]
                if isinstance(attribute, str) and bound and spec:
                    path = f"{spec[1]}.devices.constraints[{number}]"
                    yield from ((owner, finding) for finding in self._same_attribute(attribute, bound, path))

    def _same_attribute(self, attribute: str, bound: list[Ask], path: str) -> Iterator[Finding]:
        wanted = sum(ask.count for ask in bound)
        sharing: dict[tuple[str, str], list[Device]] = defaultdict(list)
        devices = {device.index: device for ask in bound for device in ask.left}
        for device in devices.values():
            if attribute in device.attributes:
                sharing[device.node, str(device.attributes[attribute])].append(device)
        if not sharing:
            message = f"matchAttribute {attribute}: none of the devices has this attribute"
            yield error("no-devices", message, f"they are {summary(devices.values())}", path)
            return
        most = max(most_on_one_node(group)[0] for group in sharing.values())
        if wanted > most:
            message = f"matchAttribute {attribute}: {wanted} devices must share it, and no more than {most} do"
            yield error("too-many-devices", message, f"ask for {most} or fewer, or drop the constraint", path)

    def _room(self, item: Item, asks: list[Ask]) -> Iterator[Explained]:
        """CPU and memory: more than a node with the devices has."""
        template = pod_template(item.obj)
        if template is None:
            return
        possible = set(self._nodes)
        for ask in asks:
            possible &= {device.node for device in ask.left}
        for name, amount in _requested(template[0]).items():
            has = [parse_quantity(dig(self._nodes[node], f"status.allocatable.{name}") or "0") for node in possible]
            if has and amount > max(has):
                where = "the nodes with these devices have" if asks else "the largest node has"
                message = f"the pod asks for {_amount(name, amount)}, {where} {_amount(name, max(has))}"
                yield item, error("too-large-for-node", message, path=joined(template[1], "spec.containers"))


def _requested(pod: Object) -> dict[str, float]:
    """CPU and memory that the pod's containers ask for together; requests not stated are taken from the limits."""
    totals = {"cpu": 0.0, "memory": 0.0}
    for container, path in containers(pod):
        if path.startswith("spec.initContainers") and container.get("restartPolicy") != "Always":
            continue
        for name in totals:
            stated = dig(container, f"resources.requests.{name}") or dig(container, f"resources.limits.{name}") or 0
            try:
                totals[name] += float(parse_quantity(stated))
            except ValueError:
                continue
    return totals


def _amount(name: str, value: object) -> str:
    number = float(str(value))
    return f"{number / 1024**3:.4g}Gi of memory" if name == "memory" else f"{number:g} CPUs"
