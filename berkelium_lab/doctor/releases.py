"""Examinations of the Helm releases: there, of the right version, finished, without known faults."""

from collections.abc import Iterator

from berkelium_infra import versions
from berkelium_infra.node_labels import DYNAMIC_MIG_LABEL, MODEL_LABEL
from berkelium_lab.doctor.cluster import CannotLook, Cluster
from berkelium_lab.doctor.expectation import Expectation, ExpectedRelease
from berkelium_lab.doctor.finding import Finding, error, info, warning
from berkelium_lab.doctor.helm import LABELS, HelmRelease, UnreadableRelease, decode, latest
from berkelium_lab.doctor.registry import examination

KNOWN_CHARTS = (*versions.NVIDIA_DRIVERS, *versions.AMD_OPERATORS, *versions.NODE_FEATURE_DISCOVERIES)


def found(cluster: Cluster, expectation: Expectation) -> tuple[list[HelmRelease], list[Finding]]:
    """The newest revisions of all releases that may be seen, and a finding for each record that cannot be read."""
    releases: list[HelmRelease] = []
    unreadable: list[Finding] = []
    for secret in _secrets(cluster, expectation):
        try:
            releases.append(decode(secret))
        except UnreadableRelease as problem:
            name, namespace = secret["metadata"]["name"], secret["metadata"]["namespace"]
            unreadable.append(
                warning(
                    "release-unreadable",
                    f"secret/{namespace}/{name}",
                    "Helm's record of a release cannot be read.",
                    f"See `helm history -n {namespace} NAME`; delete the Secret when Helm cannot read it either.",
                    str(problem),
                )
            )
    return latest(releases), unreadable


def _secrets(cluster: Cluster, expectation: Expectation) -> list[dict]:
    try:
        return cluster.list("v1", "Secret", labels=LABELS)
    except CannotLook:
        # Secrets are often readable in some namespaces only.
        own = sorted({release.chart.namespace for release in expectation.releases})
        return [secret for namespace in own for secret in cluster.list("v1", "Secret", namespace, LABELS)]


@examination
def helm_releases(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """The Helm releases of the stack: chart, version and status."""
    releases, unreadable = found(cluster, expectation)
    yield from unreadable
    for wanted in expectation.releases:
        chart = wanted.chart
        here = [r for r in releases if (r.namespace, r.name) == (chart.namespace, chart.release)]
        if not here:
            yield error(
                "release-missing",
                f"release/{chart.namespace}/{chart.release}",
                f"There is no Helm release {chart.release} in namespace {chart.namespace}.",
                "Apply the stack: `pulumi up --refresh`.",
                *(
                    f"{r.chart} {r.chart_version} is release {r.name} in namespace {r.namespace}"
                    for r in releases
                    if r.chart == chart.name
                ),
            )
            continue
        yield from _status(here[0])
        yield from _version(here[0], wanted)
        others = [r for r in releases if r.chart == chart.name and r is not here[0]]
        if others:
            yield error(
                "release-duplicate",
                here[0].subject,
                f"The chart {chart.name} is installed more than once; its cluster-wide objects have one owner only.",
                "Uninstall the release that is not the stack's: `helm uninstall -n NAMESPACE NAME`.",
                *(f"release {r.name} in namespace {r.namespace}" for r in others),
            )


def _status(release: HelmRelease) -> Iterator[Finding]:
    status, name, namespace = release.status, release.name, release.namespace
    seen = f"revision {release.revision}, status {status} since {release.since or 'unknown'}: {release.description}"
    if status.startswith("pending-"):
        yield error(
            "release-pending",
            release.subject,
            f"Release {name} is {status}: unless Helm is at work right now, every further operation on it is refused.",
            f"When nothing works on it: `pulumi cancel --yes`, `kubectl -n {namespace} delete secret -l "
            f"'owner=helm,name={name},status in (pending-install,pending-upgrade,pending-rollback)'`, then "
            "`pulumi up --refresh --yes`.",
            seen,
        )
    elif status == "failed":
        yield error(
            "release-failed",
            release.subject,
            f"The last operation on release {name} failed.",
            "Mend what the description says and apply the stack again: `pulumi up --refresh`.",
            seen,
        )
    elif status != "deployed":
        yield error(
            "release-not-deployed",
            release.subject,
            f"Release {name} is {status}.",
            f"An uninstall that hangs waits for a hook: look at the Jobs in namespace {namespace}, then repeat it.",
            seen,
        )


def _version(release: HelmRelease, wanted: ExpectedRelease) -> Iterator[Finding]:
    if release.chart != wanted.chart.name or release.chart_version != wanted.version:
        yield error(
            "release-version",
            release.subject,
            f"Release {release.name} is {release.chart} {release.chart_version}; the configuration says "
            f"{wanted.chart.name} {wanted.version}.",
            "Apply the stack (`pulumi up --refresh`), or mend the version in the stack file.",
        )
    known = [entry.chart.version for entry in KNOWN_CHARTS if entry.chart.name == release.chart]
    if release.chart_version not in known:
        yield warning(
            "release-version-unknown",
            release.subject,
            f"berkelium_infra/versions.py does not know {release.chart} {release.chart_version}.",
            "Add the release to versions.py with its feature gates and faults.",
            f"known: {', '.join(known) or 'none'}",
        )
    else:
        yield info("release", release.subject, f"{release.chart} {release.chart_version}, {release.status}.")


@examination
def driver_faults(cluster: Cluster, expectation: Expectation) -> Iterator[Finding]:
    """Known faults of the installed driver that the hardware of this cluster meets."""
    releases, _ = found(cluster, expectation)
    entries = {(entry.chart.name, entry.chart.version): entry for entry in versions.NVIDIA_DRIVERS}
    for release in releases:
        driver = entries.get((release.chart, release.chart_version))
        if driver is None:
            continue
        for fault in driver.dynamic_mig_faults:
            nodes = _dynamic_mig_nodes(cluster, fault.models)
            if nodes:
                yield info(
                    "driver-fault",
                    release.subject,
                    f"NVIDIA driver {release.chart_version}: {fault.summary}.",
                    fault.remedy,
                    f"nodes: {', '.join(nodes)}",
                )


def _dynamic_mig_nodes(cluster: Cluster, models: tuple[str, ...]) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in cluster.nodes
        if (labels := node["metadata"].get("labels") or {}).get(MODEL_LABEL) in models
        and labels.get(DYNAMIC_MIG_LABEL) == "true"
    ]
