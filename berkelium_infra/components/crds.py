"""CustomResourceDefinitions that must be up to date before a chart's release: Helm installs them once and no more.

They are declared as patches: server-side apply makes what is missing and changes what Helm or an earlier stack left
there, on every version of the provider. An ordinary resource would fail from provider 4.29 on where the definition
exists already, and it does exist wherever the chart was installed before.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi_kubernetes.apiextensions.v1 import CustomResourceDefinitionPatch, CustomResourceDefinitionSpecPatchArgs
from pulumi_kubernetes.meta.v1 import ObjectMetaPatchArgs

from berkelium_infra.typed import arguments

CRDS = Path(__file__).resolve().parents[1] / "crds"


def definitions(name: str) -> list[dict[str, Any]]:
    """The definitions of that directory of `berkelium_infra/crds/`, sorted by file name.

    Raises FileNotFoundError where there are none: an upgrade without them would break only on the cluster.
    """
    files = sorted((CRDS / name).glob("*.yaml"))
    if not files:
        raise FileNotFoundError(f"{CRDS / name} holds no CRD")
    return [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]


def declare(name: str, options: Callable[[], pulumi.ResourceOptions]) -> list[pulumi.Resource]:
    """Declare the definitions of that directory; `options` makes the options of each.

    They stay when the stack goes: deleting a definition deletes all of its objects, whoever made them.
    """
    keep = pulumi.ResourceOptions(retain_on_delete=True)
    return [_patch(each, pulumi.ResourceOptions.merge(options(), keep)) for each in definitions(name)]


def _patch(definition: Mapping[str, Any], options: pulumi.ResourceOptions) -> CustomResourceDefinitionPatch:
    name = definition["metadata"]["name"]
    return CustomResourceDefinitionPatch(
        name,
        # The fields belong to Helm as long as it is the only one that wrote them.
        metadata=ObjectMetaPatchArgs(name=name, annotations={"pulumi.com/patchForce": "true"}),
        spec=arguments(CustomResourceDefinitionSpecPatchArgs, definition["spec"], name),
        opts=options,
    )
