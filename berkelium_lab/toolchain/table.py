"""The programs that the lab runs: one entry each, and the place to add another.

A tool's version is the version of its Go module in `tools/<directory>/go.mod`; nothing here repeats it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class GeneratedFile:
    """A JSON file that a main package embeds and that the build makes, minified, from a file of the tool's module.

    `name` is relative to the main package, `source` to the module's root. With `versioned`, the document's top-level
    `version` becomes the tool's version.
    """

    name: str
    source: str
    versioned: bool = False


@dataclass(frozen=True)
class Tool:
    """A program and how it is built.

    `directory` is the Go module below `tools/`, `package` the main package to build in it, `module` the module of
    `go.mod` whose version is the tool's. `variables` are set by the linker (`-X`): full name of a string variable and
    its value, in which `{version}` (without a leading `v`), `{major}` and `{minor}` are filled in.
    `memory_mib` is the measured peak of a build, most of it the linker's. `version_arguments` make the program print
    its version, which a build checks; empty for a program that has no such option.
    """

    name: str
    directory: str
    package: str
    module: str
    memory_mib: int
    variables: tuple[tuple[str, str], ...] = ()
    generated: tuple[GeneratedFile, ...] = ()
    version_arguments: tuple[str, ...] = ("--version",)


def _kubernetes(name: str, memory_mib: int) -> Tool:
    """A control plane program. Helm compares a chart's `kubeVersion` with the version that the API server reports."""
    package = "k8s.io/component-base/version"
    return Tool(
        name,
        directory="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        module="k8s.io/kubernetes",
        memory_mib=memory_mib,
        variables=(
            (f"{package}.gitVersion", "v{version}"),
            (f"{package}.gitMajor", "{major}"),
            (f"{package}.gitMinor", "{minor}"),
        ),
    )


ALL = (
    Tool(
        "etcd",
        directory="etcd",
        package="go.etcd.io/etcd/server/v3",
        module="go.etcd.io/etcd/server/v3",
        memory_mib=1024,
    ),
    _kubernetes("kube-apiserver", memory_mib=2816),
    _kubernetes("kube-controller-manager", memory_mib=2816),
    _kubernetes("kube-scheduler", memory_mib=2048),
    Tool(
        "kwok",
        directory="kwok",
        package="sigs.k8s.io/kwok/cmd/kwok",
        module="sigs.k8s.io/kwok",
        memory_mib=1536,
    ),
    Tool(
        "nfd-master",
        directory="nfd-master",
        package="sigs.k8s.io/node-feature-discovery/cmd/nfd-master",
        module="sigs.k8s.io/node-feature-discovery",
        memory_mib=1536,
        variables=(("sigs.k8s.io/node-feature-discovery/pkg/version.version", "v{version}"),),
        version_arguments=("-version",),
    ),
    Tool(
        "device-selectors",
        directory="device-selectors",
        package=".",
        module="k8s.io/dynamic-resource-allocation",
        memory_mib=1024,
        version_arguments=(),
    ),
    Tool(
        "actionlint",
        directory="actionlint",
        package="github.com/rhysd/actionlint/cmd/actionlint",
        module="github.com/rhysd/actionlint",
        memory_mib=512,
        variables=(("github.com/rhysd/actionlint.version", "{version}"),),
        version_arguments=("-version",),
    ),
    Tool(
        "pulumi",
        directory="pulumi",
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        module="github.com/pulumi/pulumi/pkg/v3",
        memory_mib=2560,
        # The Automation API parses the version, and its default is not one.
        variables=(("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", "v{version}"),),
        version_arguments=("version",),
    ),
    Tool(
        "pulumi-resource-kubernetes",
        directory="pulumi-resource-kubernetes",
        package=".",
        module="github.com/pulumi/pulumi-kubernetes/provider/v4",
        memory_mib=4096,
        variables=(("github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version", "{version}"),),
        generated=(
            GeneratedFile("schema.json", "cmd/pulumi-resource-kubernetes/schema.json", versioned=True),
            GeneratedFile("terraform-mapping.json", "cmd/pulumi-resource-kubernetes/terraform-mapping.json"),
        ),
        version_arguments=(),
    ),
)
