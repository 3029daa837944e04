"""Composes a policy from its source, its parts and what all policies share, as two Kubernetes manifests."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from berkelium_infra import catalog
from berkelium_infra.errors import UserError
from berkelium_infra.policy_source.parts import FastLoader, Parts, load

POLICIES = Path(__file__).resolve().parents[2] / "policies"
GENERATED = "# Composed by `berkelium policies compose --write` from {sources}: change those, not this file.\n"

# Resource names that hold a GPU whatever the catalog says: device plugins, MIG, the implicit names of device classes.
GPU_PREFIXES = (r"nvidia\.com/", r"amd\.com/gpu", r"deviceclass\.resource\.kubernetes\.io/")

PLACEHOLDER = re.compile(r"\$\{([a-z]+)(?::([^}]*))?\}")
COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)

Manifest = dict[str, Any]


def names() -> list[str]:
    """The policies that have a source, in alphabetical order."""
    return sorted(path.parent.name for path in POLICIES.glob("*/source.yaml"))


def manifests(name: str, parts: Parts | None = None) -> list[Manifest]:
    """The ValidatingAdmissionPolicy and its binding, with other parts than the policy's own where they are given.

    Raises `UserError` for an unknown name or a bad source.
    """
    if name not in names():
        raise UserError(f"no policy is called {name!r}; there are {', '.join(names())}")
    shared, source = _read(POLICIES / "shared.yaml"), _read(POLICIES / name / "source.yaml")
    return [_policy(name, shared, source, parts or parts_of(name)), _binding(name, shared["exempt"])]


@cache
def parts_of(name: str) -> Parts | None:
    """The named patterns of a policy; None when it has none."""
    directory = POLICIES / name / "parts"
    return load(directory) if directory.is_dir() else None


def exempt_namespaces() -> list[str]:
    """The system namespaces that no policy may touch, as `policies/shared.yaml` has them."""
    return list(_read(POLICIES / "shared.yaml")["exempt"])


def text(name: str) -> str:
    """The composed `policy.yaml`, byte for byte."""
    return _header(name) + "---\n".join(dump(manifest) for manifest in manifests(name))


def dump(manifest: Manifest) -> str:
    """One manifest as YAML, long expressions as blocks, so that a difference is read line by line."""
    return yaml.dump(manifest, Dumper=_BlockDumper, sort_keys=False, width=10**6, allow_unicode=True)


def gpu_resources() -> str:
    """The expression for resource names that hold a GPU: known prefixes, and what the catalog has beyond them."""
    known = re.compile("|".join(GPU_PREFIXES))
    classes = [c.extended_resource for c in catalog.DEVICE_CLASSES if c.extended_resource]
    further = [re.escape(name) + "$" for name in classes if not known.match(name)]
    return f"^(?:{'|'.join([*GPU_PREFIXES, *further])})"


def _policy(name: str, shared: Manifest, source: Manifest, parts: Parts | None) -> Manifest:
    composer = _Composer(source, parts)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": shared["resourceRules"] + source.get("resourceRules", [])},
            "matchConditions": composer.named(shared["matchConditions"] + source.get("matchConditions", [])),
            "variables": composer.named(shared["variables"] + source["variables"]),
            "validations": [
                {
                    "expression": f"variables.unchanged || ({source['validation']['expression']})",
                    "message": source["validation"]["message"],
                    "messageExpression": composer.expression(source["validation"]["messageExpression"]),
                    "reason": "Invalid",
                }
            ],
        },
    }


def _binding(name: str, exempt: list[str]) -> Manifest:
    term = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(exempt)}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny", "Audit"],
            "matchResources": {"namespaceSelector": {"matchExpressions": [term]}},
        },
    }


class _Composer:
    """Puts patterns and macros into a source's expressions."""

    def __init__(self, source: Manifest, parts: Parts | None) -> None:
        self.parts = parts
        self.macros: dict[str, str] = source.get("macros", {})

    def named(self, entries: list[dict[str, str]]) -> list[dict[str, str]]:
        return [{"name": entry["name"], "expression": self.expression(entry["expression"])} for entry in entries]

    def expression(self, source: str) -> str:
        """`${re:NAME}` a pattern, `${macro:NAME}` a macro, `${letters:c}` and the like; comments dropped."""
        return PLACEHOLDER.sub(lambda found: self._value(found[1], found[2] or ""), COMMENT.sub("", source)).strip()

    def _value(self, kind: str, name: str) -> str:
        if kind == "macro" and name in self.macros:
            return self.expression(self.macros[name])
        if kind == "gpus":
            return literal(gpu_resources())
        if self.parts is None:
            raise UserError(f"${{{kind}}} needs a directory parts beside the source")
        if kind == "re":
            return literal(self.parts.pattern(name))
        if kind in ("letters", "programs"):
            letters = self.parts.letters if kind == "letters" else self.parts.programs
            return (
                "".join(f"{name}.matches({literal(self.parts.letter(each))}) ? '{each.letter}' :\n" for each in letters)
                + "'x'"
            )
        if kind == "shapes":
            return literal(self.parts.any_shape())
        if kind == "looks":
            return " ||\n".join(
                f"{name}.matches({literal(self.parts.pattern(look.name))})" for look in self.parts.looks
            )
        raise UserError(
            f"${{{kind}:{name}}} is no placeholder; write re:NAME, macro:NAME, letters:VARIABLE, programs:VARIABLE,"
            " looks:VARIABLE, shapes or gpus"
        )


def literal(pattern: str) -> str:
    """A regular expression as a raw CEL string."""
    return f"r'{pattern}'" if "'" not in pattern else f"r'''{pattern}'''"


def _header(name: str) -> str:
    own = ("source.yaml", "parts/") if (POLICIES / name / "parts").is_dir() else ("source.yaml",)
    return GENERATED.format(sources=", ".join(["../shared.yaml", *own]))


def _read(path: Path) -> Manifest:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=FastLoader)


class _BlockDumper(yaml.SafeDumper):
    """Writes text of several lines as a block and keeps the indentation of lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _block(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_BlockDumper.add_representer(str, _block)
