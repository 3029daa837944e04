"""The whole program under Pulumi's mocks: what it registers, with which options, in which order.

This is the one way in which unit tests look at the program: `run("prod", nvidia={"driverRoot": "/x"})` applies
`Pulumi.yaml`'s defaults and `Pulumi.prod.yaml` as the command line would, runs `__main__.py` and gives a `Registered`.
"""

import json
import logging
import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import json_format
from pulumi.runtime import mocks
from pulumi.runtime import settings as runtime
from pulumi.runtime.config import CONFIG, set_all_config
from pulumi.runtime.stack import Stack
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
STACKS = ("lab", "staging", "prod")
RELEASE = "kubernetes:helm.sh/v3:Release"
NAMESPACE = "kubernetes:core/v1:Namespace"
DEVICE_CLASS = "kubernetes:resource.k8s.io/v1:DeviceClass"
POLICY = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
BINDING = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding"
RULE = "kubernetes:nfd.k8s-sigs.io/v1alpha1:NodeFeatureRule"
DEVICE_CONFIG = "kubernetes:amd.com/v1alpha1:DeviceConfig"
PROVIDER = "pulumi:providers:kubernetes"
STACK_NAMESPACES = ("node-feature-discovery", "nvidia-dra-driver-gpu", "kube-amd-gpu")


def read_yaml(path: Path) -> Any:
    """YAML 1.2, as the engine reads it: `off` is a word."""
    return YAML(typ="safe").load(path.read_text(encoding="utf-8")) or {}


@dataclass(frozen=True)
class Resource:
    """A registered resource: its inputs as JSON, and the request's options."""

    type: str
    name: str
    urn: str
    inputs: dict[str, Any]
    request: Any

    @property
    def waits_for(self) -> set[str]:
        """URNs of the resources that it depends on directly."""
        return set(self.request.dependencies)


@dataclass
class Registered:
    """Everything that one run registered, by type and name."""

    resources: dict[tuple[str, str], Resource] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    logged: list[str] = field(default_factory=list)

    def __getitem__(self, key: tuple[str, str]) -> Resource:
        return self.resources[key]

    def of(self, kind: str) -> dict[str, Resource]:
        """The resources of a type, by name."""
        return {name: resource for (type_, name), resource in self.resources.items() if type_ == kind}

    @property
    def cluster_objects(self) -> list[Resource]:
        """Resources that are objects in the cluster, releases included."""
        return [resource for resource in self.resources.values() if resource.type.startswith("kubernetes:")]

    def waits(self, later: tuple[str, str], earlier: tuple[str, str]) -> bool:
        """Whether `later` is created only after `earlier`, directly or through others."""
        by_urn = {resource.urn: resource for resource in self.resources.values()}
        seen: set[str] = set()
        pending = [self[later].urn]
        while pending:
            urn = pending.pop()
            if urn == self[earlier].urn:
                return urn != self[later].urn
            if urn not in seen:
                seen.add(urn)
                pending += by_urn[urn].waits_for if urn in by_urn else ()
        return False


class _Mocks(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"the program must not call {args.token}")


class _Monitor(mocks.MockMonitor):
    def __init__(self, on_register: list[tuple[str, str]] | None) -> None:
        super().__init__(_Mocks())
        self.registered: dict[tuple[str, str], Resource] = {}
        self._on_register = on_register if on_register is not None else []

    def RegisterResource(self, request: Any) -> Any:
        key = (request.type, request.name)
        assert key not in self.registered, f"registered twice: {key}"
        self._on_register.append(key)
        response = super().RegisterResource(request)
        inputs = json_format.MessageToDict(request.object)
        self.registered[key] = Resource(request.type, request.name, response.urn, inputs, request)
        return response


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def stack_config(stack: str, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The configuration as the engine hands it over: defaults of Pulumi.yaml, the stack's file, then `overrides`."""
    project = read_yaml(ROOT / "Pulumi.yaml")
    prefix = project["name"]
    config = {f"{prefix}:{key}": each["default"] for key, each in project["config"].items() if "default" in each}
    config |= read_yaml(ROOT / f"Pulumi.{stack}.yaml")["config"]
    for key, value in (overrides or {}).items():
        config[f"{prefix}:{key}"] = value
    return config


def run(
    stack: str = "lab",
    overrides: Mapping[str, Any] | None = None,
    remove: tuple[str, ...] = (),
    on_register: list[tuple[str, str]] | None = None,
    configure: Callable[[dict[str, str]], None] = pulumi.runtime.set_all_config,
    secret: tuple[str, ...] = (),
) -> Registered:
    """Run `__main__.py` for a stack with some settings replaced or removed.

    Raises what the program raises; `on_register` gets the type and name of every resource also then. `configure` hands
    the configuration over, by default as to an inline program; `secret` are the settings with something encrypted.
    """
    config = stack_config(stack, overrides)
    for key in remove:
        del config[f"berkelium-infra:{key}"]
    encoded = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    # The root resource of an earlier run would stay the parent of everything.
    runtime.ROOT.set(None)
    monitor, collector = _Monitor(on_register), _Collector()
    logger = logging.Logger("program")
    logger.addHandler(collector)
    pulumi.runtime.set_mocks(
        _Mocks(), project="berkelium-infra", stack=stack, preview=False, logger=logger, monitor=monitor
    )
    configure(encoded)
    set_all_config(CONFIG.get(), [f"berkelium-infra:{key}" for key in secret])
    outputs: dict[str, Any] = {}

    @pulumi.runtime.test
    def program() -> None:
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")
        root = pulumi.runtime.get_root_resource()
        assert isinstance(root, Stack)
        outputs.update(root.outputs)

    program()
    return Registered(monitor.registered, outputs, collector.messages)
