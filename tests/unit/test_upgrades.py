"""A changed chart version against the one that runs: refused, explained, or nothing to say."""

from collections.abc import Callable
from typing import Any, cast

import pulumi
import pytest

from berkelium_infra.live import Live, Refused
from berkelium_infra.settings import Settings, parse
from berkelium_infra.upgrades import UnsupportedDowngrade, Upgrades
from tests.unit import program
from tests.unit.program import RELEASE

NVIDIA = (RELEASE, "nvidia-dra-driver-gpu")
PATCH = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinitionPatch"
SPLIT = "berkelium.io/postrender-split-by"
DAEMON_SET = "daemonsets/nvidia-dra-driver-gpu-kubelet-plugin"
MANAGER = "deployments/amd-gpu-operator-gpu-operator-charts-controller-manager"
UPGRADED = {"charts": {"nvidia": {"version": "0.4.1"}}}


class Cluster:
    """A cluster that runs these releases: Helm's records by release, and what workloads are labelled with by path."""

    def __init__(self, records: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> None:
        self.records = records or {}
        self.labels = labels or {}

    def helm_release(self, namespace: str, name: str) -> dict[str, Any] | None:  # noqa: ARG002
        version = self.records.get(name)
        return {"chart": {"metadata": {"name": name, "version": version}}} if version else None

    def get(self, path: str) -> dict[str, Any] | None:
        version = next((version for end, version in self.labels.items() if path.endswith(f"/{end}")), None)
        return {"metadata": {"labels": {"app.kubernetes.io/version": version}}} if version else None


class Closed(Cluster):
    """A cluster whose Secrets this identity may not read."""

    def helm_release(self, namespace: str, name: str) -> dict[str, Any] | None:
        raise Refused(403, f"secrets of {namespace} are forbidden ({name})")


def settings(nvidia: str = "25.12.0", amd: str = "v1.5.1") -> Settings:
    charts = {
        part: {"version": version, "allowUnknownVersion": True} for part, version in (("nvidia", nvidia), ("amd", amd))
    }
    return parse({"context": "c", "clusterIdentifier": "c", "charts": charts}, "prod")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything that is logged."""
    texts: list[str] = []
    record: Callable[..., None] = lambda text, *_, **__: texts.append(text)  # noqa: E731
    for level in ("info", "warn"):
        monkeypatch.setattr(pulumi.log, level, record)
    return texts


def judged(chosen: Settings, cluster: Cluster | None) -> Upgrades:
    return Upgrades(chosen, cast("Live | None", cluster))


def refusal(chosen: Settings, cluster: Cluster) -> str:
    """What the one refusal says."""
    found = judged(chosen, cluster).refusals
    assert len(found) == 1
    return str(found[0])


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster({"nvidia-dra-driver-gpu": "0.4.1"}),
        Cluster(labels={DAEMON_SET: "0.4.1"}),
        Closed(labels={DAEMON_SET: "0.4.1"}),
        Cluster({"nvidia-dra-driver-gpu": "25.12.0"}, {DAEMON_SET: "0.4.1"}),
    ],
    ids=["by Helm's record", "by the workload", "without rights on Secrets", "after an upgrade that did not finish"],
)
def test_a_downgrade_that_upstream_does_not_support_is_refused(cluster: Cluster) -> None:
    text = refusal(settings("25.12.0"), cluster)
    assert text.startswith("charts.nvidia.version: It is 25.12.0, but the cluster runs 0.4.1, and there is no way back")
    assert "checkpoints on the nodes" in text
    assert "Write 0.4.1 or a later version." in text
    assert "nvidia.enabled: false" in text


def test_a_newer_driver_that_is_not_listed_leads_back_no_more_than_a_listed_one() -> None:
    assert "the cluster runs 0.5.0" in refusal(settings("25.12.0"), Cluster({"nvidia-dra-driver-gpu": "0.5.0"}))


def test_what_is_refused_is_said_at_once_and_hangs_on_what_would_be_changed(said: list[str]) -> None:
    refused = judged(settings("25.12.0"), Cluster({"nvidia-dra-driver-gpu": "0.4.1"}))
    assert said == ["charts.nvidia.version: It is 25.12.0, but the cluster runs 0.4.1, and there is no way back."]
    assert judged(settings("0.4.1"), Cluster({"nvidia-dra-driver-gpu": "0.4.1"})).hooks is None
    with pytest.raises(UnsupportedDowngrade, match=r"Write 0\.4\.1 or a later version\."):
        refused._refuse(cast("pulumi.ResourceHookArgs", None))


def test_a_downgrade_that_crosses_no_barrier_is_said_and_done(said: list[str]) -> None:
    judged(settings("0.4.1", "v1.5.0"), Cluster({"nvidia-dra-driver-gpu": "0.5.0", "amd-gpu-operator": "v1.5.1"}))
    assert said == [
        "NVIDIA driver: 0.5.0 runs and goes back to 0.4.1.",
        "AMD operator: v1.5.1 runs and goes back to v1.5.0.",
    ]


def test_an_upgrade_says_what_changes_and_that_nothing_leads_back(said: list[str]) -> None:
    judged(settings("0.4.1"), Cluster({"nvidia-dra-driver-gpu": "25.12.0"}))
    changes, barrier = said
    assert changes.startswith("NVIDIA driver 25.12.0 to 0.4.1: the chart is called dra-driver-nvidia-gpu")
    assert "an A100 keeps the MIG mode that it booted with" in changes
    assert barrier.startswith("NVIDIA driver 25.12.0 to 0.4.1: there is no way back.")


def test_an_upgrade_of_the_amd_operator_says_which_driver_it_brings(said: list[str]) -> None:
    judged(settings(), Cluster(labels={MANAGER: "v1.5.0"}))
    assert said == [
        "AMD operator v1.5.0 to v1.5.1: the DRA driver becomes v1.0.1, which also publishes GPUs of amdgpu 6.19.14 and "
        "later."
    ]


@pytest.mark.parametrize(
    "cluster",
    [None, Cluster(), Closed(), Cluster({"nvidia-dra-driver-gpu": "25.12.0", "amd-gpu-operator": "v1.5.1"})],
    ids=["no cluster", "an empty cluster", "nothing may be read", "the same versions"],
)
def test_there_is_nothing_to_say_of(said: list[str], cluster: Cluster | None) -> None:
    judged(settings(), cluster)
    assert said == []


def test_a_part_that_is_switched_off_may_be_started_over_with_an_older_release() -> None:
    off = parse({"context": "c", "clusterIdentifier": "c", "nvidia": {"enabled": False}}, "prod")
    assert judged(off, Cluster({"nvidia-dra-driver-gpu": "0.4.1"})).refusals == ()


def test_the_version_is_all_that_an_upgrade_of_the_driver_takes() -> None:
    before, after = program.run("prod"), program.run("prod", UPGRADED)
    assert after.resources.keys() - before.resources.keys() == {
        (PATCH, "computedomaincliques.resource.nvidia.com"),
        (PATCH, "computedomains.resource.nvidia.com"),
    }
    assert before.resources.keys() <= after.resources.keys()
    old, new = before[NVIDIA].inputs, after[NVIDIA].inputs
    assert (old["name"], old["namespace"]) == (new["name"], new["namespace"])
    assert (new["chart"], new["version"]) == ("dra-driver-nvidia-gpu", "0.4.1")
    assert new["values"].pop("nameOverride") == "nvidia-dra-driver-gpu"
    assert old["values"]["kubeletPlugin"]["podAnnotations"].pop(SPLIT) == "berkelium.io/dynamic-mig"
    assert old["values"] == new["values"]


def test_the_release_waits_for_its_crds_which_stay_when_the_stack_goes() -> None:
    registered = program.run("prod", UPGRADED)
    patches = registered.of(PATCH)
    for name, patch in patches.items():
        assert registered.waits(NVIDIA, (PATCH, name))
        assert patch.request.retainOnDelete
        assert patch.inputs["metadata"]["annotations"]["pulumi.com/patchForce"] == "true"


def test_the_split_comes_back_for_a_model_that_can_be_partitioned_and_is_not_to_be() -> None:
    chosen = {**UPGRADED, "nvidia": {"dynamicMigModels": ["b300", "h200", "h100"]}}
    annotations = program.run("prod", chosen)[NVIDIA].inputs["values"]["kubeletPlugin"]["podAnnotations"]
    assert annotations[SPLIT] == "berkelium.io/dynamic-mig"


@pytest.mark.parametrize(("written", "sent"), [("10%", "10%"), (1, 1), ("2", 2), ("100%", "100%")])
def test_an_upgrade_takes_as_many_nodes_at_once_as_the_configuration_says(written: object, sent: object) -> None:
    inputs = program.run("prod", {"nvidia": {"maxUnavailable": written}})[NVIDIA].inputs
    strategy = inputs["values"]["kubeletPlugin"]["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": sent}}


def test_no_plugin_starts_on_a_node_where_another_one_has_not_ended() -> None:
    affinity = program.run("prod")[NVIDIA].inputs["values"]["kubeletPlugin"]["affinity"]
    (term,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = term["labelSelector"]["matchExpressions"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert expression == {
        "key": "nvidia-dra-driver-gpu-component",
        "operator": "In",
        "values": ["kubelet-plugin", "kubelet-plugin-whole-gpu"],
    }


def test_the_images_of_the_amd_operator_follow_its_version() -> None:
    (config,) = program.run("prod", {"charts": {"amd": {"version": "v1.5.0"}}}).of(program.DEVICE_CONFIG).values()
    assert config.inputs["spec"]["draDriver"]["image"] == "docker.io/rocm/k8s-gpu-dra-driver:v1.0.0"
    assert (
        config.inputs["spec"]["commonConfig"]["utilsContainer"]["image"] == "docker.io/rocm/gpu-operator-utils:v1.5.0"
    )
