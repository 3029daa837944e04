"""The stack's configuration: read once, checked as a whole, typed from there on.

`parse` needs no Pulumi: it takes the entries of a stack file and gives `Settings`, or one `SettingsError` with every
fault. `load` does so inside a Pulumi program.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from berkelium_infra.settings import rules, shape
from berkelium_infra.settings.faults import Fault, SettingsError
from berkelium_infra.settings.model import SYSTEM_NAMESPACES, Settings
from berkelium_infra.settings.sections import OFFICIAL, ExtraDeviceClass, PolicyMode
from berkelium_infra.settings.types import Resources, Toleration
from berkelium_infra.settings.warnings import warnings

__all__ = [
    "OFFICIAL",
    "SYSTEM_NAMESPACES",
    "ExtraDeviceClass",
    "Fault",
    "PolicyMode",
    "Resources",
    "Settings",
    "SettingsError",
    "Toleration",
    "load",
    "parse",
    "warnings",
]

PROJECT = Path(__file__).resolve().parents[2]
"""The directory of Pulumi.yaml."""


def parse(
    raw: Mapping[str, object], stack: str, project: Path = PROJECT, secret: Collection[str] | None = None
) -> Settings:
    """The settings of a stack.

    `raw` holds the entries of the stack file without the project's prefix, as parsed YAML or JSON; `project` is the
    directory of Pulumi.yaml, in which chart directories and policies are looked up. `secret` names the entries that
    hold something encrypted; with None that is not known, and not checked.

    Raises `SettingsError` with all faults: those of shape, and those of the rules on what is left without them.
    """
    settings, faults = shape.read(raw)
    reported = {fault.key for fault in faults}
    faults += [fault for fault in rules.check(settings, stack, project, secret) if fault.key not in reported]
    if faults:
        raise SettingsError(stack, faults)
    return settings


def load(project: Path = PROJECT) -> Settings:
    """The settings of the stack that this Pulumi program runs for.

    Raises `SettingsError` as `parse` does.
    """
    import pulumi
    from pulumi.runtime.config import CONFIG, get_config_env, get_config_secret_keys_env, is_config_secret

    # The provider is declared by the program: settings of the default one would do nothing, so they are refused.
    own, ignored = f"{pulumi.get_project()}:", "kubernetes:"
    # The command line's language host hands the configuration over in the environment, an inline program has it set.
    given = {**get_config_env(), **CONFIG.get()}
    raw = {key.removeprefix(own): _decoded(value) for key, value in given.items() if key.startswith((own, ignored))}
    encrypted = {key for key in given if is_config_secret(key)} | set(get_config_secret_keys_env())
    return parse(raw, pulumi.get_stack(), project, {key.removeprefix(own) for key in encrypted})


def _decoded(value: str) -> object:
    """Pulumi hands lists and mappings over as JSON, and everything else as text."""
    try:
        return json.loads(value) if value[:1] in ("[", "{") else value
    except json.JSONDecodeError:
        return value
