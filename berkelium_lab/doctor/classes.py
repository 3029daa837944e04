"""Examinations of the device classes: there, as declared, matching something, sharing nothing."""

from collections import defaultdict
from collections.abc import Iterator

from berkelium_lab.api import Object
from berkelium_lab.doctor.cluster import Cluster, name_of
from berkelium_lab.doctor.expectation import Expectation, ExpectedClass
from berkelium_lab.doctor.finding import Finding, counted, error, info, some, warning
from berkelium_lab.doctor.inventory import Published, published
from berkelium_lab.doctor.registry import examination
from berkelium_lab.doctor.selectors import MissingAttribute, Selector, expressions, parse


@examination
def device_classes(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """The device classes of the stack: there and as the catalog says."""
    live = {name_of(one): one for one in cluster.classes}
    for wanted in expectation.classes:
        found = live.get(wanted.name)
        if found is None:
            yield error(
                "class-missing",
                f"deviceclass/{wanted.name}",
                f"The device class {wanted.name} does not exist; claims that name it stay pending.",
                "Apply the stack: `pulumi up --refresh`.",
            )
        elif differences := list(_differences(wanted, found)):
            yield error(
                "class-differs",
                f"deviceclass/{wanted.name}",
                f"The device class {wanted.name} is not what the stack declares.",
                "Apply the stack: `pulumi up --refresh`; find out who changed it in metadata.managedFields.",
                *differences,
            )


def _differences(wanted: ExpectedClass, found: Object) -> Iterator[str]:
    live = expressions(found)
    if live != [wanted.selector]:
        yield f"selector: {' and '.join(live) or 'none'}"
        yield f"declared: {wanted.selector}"
    resource = found["spec"].get("extendedResourceName")
    if resource != wanted.extended_resource:
        yield f"extended resource: {resource or 'none'}; declared: {wanted.extended_resource or 'none'}"


@examination
def class_matches(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """Whether every device class of the stack matches a device, and none stumbles over one."""
    devices = list(published(cluster))
    wanted = {one.name for one in expectation.classes}
    for one in cluster.classes:
        name, selector = name_of(one), parse(expressions(one))
        answers, stumbles = _answers(selector, devices)
        if stumbles:
            yield _stumbling(one, stumbles)
        elif name in wanted and True not in answers:
            if None in answers:
                yield info(
                    "class-not-evaluated",
                    f"deviceclass/{name}",
                    f"Whether {name} matches a device is not known: only the scheduler can evaluate its selector.",
                    "Try a claim in a lab: `berkelium check`.",
                )
                continue
            yield warning(
                "class-matches-nothing",
                f"deviceclass/{name}",
                f"The device class {name} matches none of the {len(devices)} published devices.",
                "Without such hardware in the cluster this is right; otherwise see the findings on its nodes.",
            )


def _answers(selector: Selector, devices: list[Published]) -> tuple[set[bool | None], list[str]]:
    """Every answer that occurs, and the devices for which the selector is an error."""
    answers: set[bool | None] = set()
    stumbles: list[str] = []
    for device in devices:
        try:
            answers.add(selector.matches(device.driver, device.attributes))
        except MissingAttribute as missing:
            stumbles.append(f"{device.name} of pool {device.pool} ({device.driver}) has no {missing}")
    return answers, stumbles


def _stumbling(device_class: Object, stumbles: list[str]) -> Finding:
    name = name_of(device_class)
    return error(
        "class-stumbles",
        f"deviceclass/{name}",
        f"The selector of {name} asks devices for an attribute that they lack: a pod that uses the class is not "
        "scheduled at all while the scheduler meets such a device.",
        'Begin the selector with device.driver == "…" &&, and ask with .?attribute.orValue("").',
        f"selector: {' and '.join(expressions(device_class))}",
        *stumbles[:3],
        f"{len(stumbles)} devices in all",
    )


@examination
def shared_extended_resources(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:  # noqa: ARG001
    """Whether two device classes have the same extended resource."""
    owners: dict[str, list[Object]] = defaultdict(list)
    for one in cluster.classes:
        if resource := one["spec"].get("extendedResourceName"):
            owners[resource].append(one)
    for resource, classes in owners.items():
        if len(classes) > 1:
            # The later one wins, of equally old ones the first by name (KEP-5004).
            by_name = sorted(classes, key=name_of)
            winner = max(by_name, key=lambda one: one["metadata"]["creationTimestamp"])
            yield error(
                "extended-resource-shared",
                f"extended-resource/{resource}",
                f"{len(classes)} device classes have the extended resource {resource}; {name_of(winner)} wins, being "
                "the newest. This flips when a class is made anew, and the resource may be lost when one goes.",
                "Take extendedResourceName from every class but one; then restart the scheduler, which may have lost "
                "the resource (kubernetes #141103).",
                *(f"{name_of(one)}, created {one['metadata']['creationTimestamp']}" for one in by_name),
            )


@examination
def unclassed_devices(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:  # noqa: ARG001
    """Whether every device is offered by a class, and every product known to the catalog."""
    selectors = [parse(expressions(one)) for one in cluster.classes]
    left: dict[tuple[str, str, str], list[Published]] = defaultdict(list)
    strange: dict[tuple[str, str], list[Published]] = defaultdict(list)
    for device in published(cluster):
        if not any(one.may_match(device.driver, device.attributes) for one in selectors):
            left[device.driver, device.type, device.product].append(device)
        if device.of_known_vendor and device.model is None:
            strange[device.driver, device.product].append(device)
    for (driver, kind, product), devices in sorted(left.items()):
        yield warning(
            "device-unclassed",
            f"device/{driver}/{kind or 'untyped'}/{product or 'unnamed'}",
            f"{counted(devices, 'device')} of {driver} (type {kind or 'none'}, product {product or 'none'}) that no "
            "device class offers.",
            "Add the model to a class of berkelium_infra/catalog.py, or a class to extraDeviceClasses.",
            f"pools: {', '.join(some(sorted({device.pool for device in devices})))}",
        )
    for (driver, product), devices in sorted(strange.items()):
        yield warning(
            "product-unknown",
            f"product/{driver}/{product or 'unnamed'}",
            f"The catalog does not know the product {product or '(no name)'} of {driver}.",
            "Add the model to berkelium_infra/catalog.py with the product name exactly as it is published.",
            f"pools: {', '.join(some(sorted({device.pool for device in devices})))}",
        )
