"""Upgrades rehearsed with work on every model of GPU, and the downgrade that is refused.

One lab goes through the releases in the order of this file's tests: NVIDIA 25.12.0 to 0.4.1, back (refused), AMD 1.5.0
to 1.5.1. Every test looks at one side of what happened.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from berkelium_lab import fleet, workspace
from berkelium_lab.api import Api, connect
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from berkelium_lab.project_copy import PROJECT, copy_project
from berkelium_lab.wait import until
from berkelium_lab.workspace import DeployResult
from tests.lab import workloads
from tests.lab.labs import LabFactory, fresh_namespace, gpu_nodes, publish_their_devices
from tests.lab.observers import Customers, PluginWatch, SliceWatch

DRIVER_NAMESPACE, OPERATOR_NAMESPACE = "nvidia-dra-driver-gpu", "kube-amd-gpu"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
DOMAINS = "computedomains.resource.nvidia.com"
CLASSES = {"b300": "nvidia-b300", "h200": "nvidia-h200", "h100": "nvidia-h100", "a100": "nvidia-a100"} | {
    "a40": "gpu.nvidia.com",
    "mi100": "gpu.amd.com",
}
PARTITIONED = {"b300": "1g.34gb", "h200": "1g.18gb", "h100": "1g.10gb", "a100-mig": "1g.10gb"}
"""A MIG profile by group of nodes. The last are A100 that booted with MIG mode on: no driver later than 25.12.0
partitions others."""

NVIDIA_NODES = 12
A_FEW = 4
"""The DaemonSet takes 10 % of them at a time, so 2, and a busy controller one or two more; the chart would take all."""
A40_NODES = {"a40-1", "a40-2"}
"""Their plugin is that of another DaemonSet before, so that they do not wait for each other."""


def settings(nvidia: str, amd: str) -> dict[str, Any]:
    return {"charts": {"nvidia": {"version": nvidia}, "amd": {"version": amd}}}


BEFORE, UPGRADED, BOTH = (
    settings("25.12.0", "v1.5.0"),
    settings("0.4.1", "v1.5.0"),
    settings("0.4.1", "v1.5.1"),
)


@dataclass(frozen=True)
class Held:
    """What a running pod has: itself, the claim and what is allocated to it."""

    pod: str
    started: str
    node: str
    claim: str
    allocation: str


def held(api: Api, namespace: str) -> dict[str, Held]:
    """What each pod of the namespace holds, by the pod's name."""
    claims = {
        owner["uid"]: claim
        for claim in api.list("resource.k8s.io/v1", "ResourceClaim", namespace)
        for owner in claim["metadata"].get("ownerReferences") or ()
    }
    found = {}
    for pod in api.list("v1", "Pod", namespace):
        uid, claim = pod["metadata"]["uid"], claims[pod["metadata"]["uid"]]
        (started,) = [str(each["state"]["running"]["startedAt"]) for each in pod["status"]["containerStatuses"]]
        allocation = str(claim["status"]["allocation"]["devices"]["results"])
        node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
        found[name] = Held(uid, started, node, claim["metadata"]["uid"], allocation)
    return found


@dataclass(frozen=True)
class Rehearsal:
    """A lab at the older releases with work on it."""

    lab: Lab
    api: Api
    namespace: str
    crd: dict[str, Any]
    before: dict[str, Held]
    project: Path


@dataclass(frozen=True)
class Passage:
    """One upgrade as seen from outside."""

    result: DeployResult
    customers: Customers
    plugins: PluginWatch
    slices: SliceWatch
    after: dict[str, Held]
    refreshed: DeployResult
    """A preview of the same, with a refresh, right after it."""


@pytest.fixture(scope="module")
def hardware(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Berkelium fleet with one more group of A100 nodes, which booted with MIG mode on."""
    yaml = YAML()
    known = yaml.load(Path(fleet.__file__).with_name("fleet") / "berkelium.yaml")
    (a100,) = [group for group in known["nodeGroups"] if group["name"] == "a100"]
    known["nodeGroups"].append({**a100, "name": "a100-mig", "migMode": True})
    path = tmp_path_factory.mktemp("fleet") / "rehearsal.yaml"
    yaml.dump(known, path)
    return str(path)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, so that nobody's edit during the run counts as a difference."""
    copy = tmp_path_factory.mktemp("project")
    copy_project(PROJECT, copy)
    shutil.copy(PROJECT / "Pulumi.lab.yaml", copy)
    return copy


@pytest.fixture(scope="module")
def rehearsal(labs: LabFactory, hardware: str, project: Path) -> Iterator[Rehearsal]:
    """A lab at the older releases, with a pod on a whole GPU of each model and one on a MIG device of each that has."""
    lab = labs.up("upgrade", hardware)
    workspace.deploy(lab, BEFORE, project=project)
    api = connect(lab.kubeconfig)
    until(lambda: publish_their_devices(api, gpu_nodes(hardware)), "every GPU node publishes its devices", 60)
    with fresh_namespace(api) as namespace:
        for model, device_class in CLASSES.items():
            node = f"{model}-1"
            workloads.create(api, workloads.claiming(namespace, f"whole-{model}", device_class, node=node))
        for group, profile in PARTITIONED.items():
            selector = f'device.attributes["gpu.nvidia.com"].profile == "{profile}"'
            pair = workloads.claiming(namespace, f"part-{group}", "mig.nvidia.com", f"{group}-2", selectors=[selector])
            workloads.create(api, pair)
        for name in (*(f"whole-{model}" for model in CLASSES), *(f"part-{group}" for group in PARTITIONED)):
            workloads.running(api, namespace, name)
        crd = api.get(*CRD, DOMAINS)
        assert crd is not None
        yield Rehearsal(lab, api, namespace, crd, held(api, namespace), project)


def passage(rehearsal: Rehearsal, chosen: dict[str, Any], namespace: str, label: str) -> Passage:
    """Apply the settings while new claims are made and everything is watched."""
    api = rehearsal.api
    with (
        Customers(rehearsal.lab.kubeconfig, rehearsal.namespace, CLASSES) as customers,
        PluginWatch(rehearsal.lab.kubeconfig, namespace, label) as plugins,
        SliceWatch(rehearsal.lab.kubeconfig) as slices,
    ):
        result = workspace.deploy(rehearsal.lab, chosen, project=rehearsal.project)
        customers.serve_once_more()
    after = {name: each for name, each in held(api, rehearsal.namespace).items() if name in rehearsal.before}
    print(
        f"{namespace}: {result.seconds:.1f} s, {len(after)} pods kept, {customers.during} served meanwhile, longest "
        f"{customers.longest:.2f} s, {plugins.at_once()} nodes without plugin at once, without devices {slices.emptied}"
    )
    refreshed = workspace.preview(rehearsal.lab, chosen, refresh=True, project=rehearsal.project)
    return Passage(result, customers, plugins, slices, after, refreshed)


@pytest.fixture(scope="module")
def nvidia(rehearsal: Rehearsal) -> Passage:
    """The passage of the NVIDIA driver from 25.12.0 to 0.4.1."""
    return passage(rehearsal, UPGRADED, DRIVER_NAMESPACE, "nvidia-dra-driver-gpu-component")


@pytest.fixture(scope="module")
def amd(rehearsal: Rehearsal, nvidia: Passage) -> Passage:  # noqa: ARG001
    """The passage of the AMD operator from 1.5.0 to 1.5.1, after that of NVIDIA."""
    return passage(rehearsal, BOTH, OPERATOR_NAMESPACE, "daemonset-name")


def test_running_pods_keep_their_claims_and_devices(rehearsal: Rehearsal, nvidia: Passage) -> None:
    assert len(rehearsal.before) == len(CLASSES) + len(PARTITIONED)
    assert nvidia.after == rehearsal.before


def test_new_claims_of_every_model_are_served_while_the_driver_is_upgraded(nvidia: Passage) -> None:
    customers = nvidia.customers
    assert customers.served.keys() == CLASSES.keys()
    assert customers.longest < 10, f"{customers.longest:.1f} s for {customers.slowest}"
    assert customers.during >= len(CLASSES)


def test_no_node_is_without_its_devices_at_any_moment_of_the_upgrade(nvidia: Passage) -> None:
    assert nvidia.slices.emptied == {}


def test_the_plugins_are_replaced_on_a_few_nodes_at_a_time(rehearsal: Rehearsal, nvidia: Passage) -> None:
    (plugin,) = rehearsal.api.list("apps/v1", "DaemonSet", DRIVER_NAMESPACE)
    assert plugin["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "10%"
    assert nvidia.plugins.at_once(without=A40_NODES) <= A_FEW
    assert nvidia.plugins.replaced_on == nvidia.plugins.nodes
    assert len(nvidia.plugins.nodes) == NVIDIA_NODES


def test_no_node_ever_runs_two_plugins(nvidia: Passage, rehearsal: Rehearsal) -> None:
    assert nvidia.plugins.doubled == set()
    assert "two plugin pods" not in rehearsal.lab.log("hardware").read_text()


def test_one_daemonset_serves_every_nvidia_node_without_the_split(rehearsal: Rehearsal, nvidia: Passage) -> None:
    assert nvidia.result.changes["update"] == 1
    (plugin,) = rehearsal.api.list("apps/v1", "DaemonSet", DRIVER_NAMESPACE)
    assert plugin["metadata"]["name"] == "nvidia-dra-driver-gpu-kubelet-plugin"
    assert plugin["status"]["desiredNumberScheduled"] == plugin["status"]["numberReady"] == NVIDIA_NODES
    (image,) = {each["image"] for each in plugin["spec"]["template"]["spec"]["containers"]}
    assert image == "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"
    pieces = rehearsal.api.list("resource.k8s.io/v1", "ResourceSlice", field_selector="spec.nodeName=a40-1")
    assert sorted(piece["metadata"]["name"][:5] for piece in pieces) == ["00000", "00001", "00002", "00003"]


@pytest.mark.usefixtures("nvidia")
def test_an_a100_is_handed_out_by_the_mode_that_it_booted_with(rehearsal: Rehearsal) -> None:
    def types(node: str) -> set[str]:
        pieces = rehearsal.api.list("resource.k8s.io/v1", "ResourceSlice", field_selector=f"spec.nodeName={node}")
        return {device["attributes"]["type"]["string"] for each in pieces for device in each["spec"].get("devices", ())}

    assert types("a100-1") == {"gpu"}
    assert types("a100-mig-1") == {"mig"}


def test_the_crds_are_brought_up_to_date_in_place(rehearsal: Rehearsal, nvidia: Passage) -> None:
    assert nvidia.result.changes["create"] == 2
    crd = rehearsal.api.get(*CRD, DOMAINS)
    assert crd is not None
    assert crd["metadata"]["uid"] == rehearsal.crd["metadata"]["uid"]
    old, new = (
        each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] for each in (rehearsal.crd, crd)
    )
    assert (sorted(old["required"]), new["required"]) == (["channel", "numNodes"], ["channel"])
    assert new["x-kubernetes-validations"] == old["x-kubernetes-validations"]
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "tried", "namespace": rehearsal.namespace},
        "spec": {"channel": {"resourceClaimTemplate": {"name": "channel"}}},
    }
    assert rehearsal.api.create(domain, dry_run=True)["spec"]["numNodes"] == 0


def test_the_upgrade_is_explained_and_says_that_nothing_leads_back(nvidia: Passage) -> None:
    assert any("25.12.0 to 0.4.1: there is no way back" in warning for warning in nvidia.result.warnings)


@pytest.mark.parametrize("upgrade", ["nvidia", "amd"])
def test_after_it_nothing_is_left_to_do_and_a_refresh_finds_no_difference(
    upgrade: str, request: pytest.FixtureRequest
) -> None:
    passage: Passage = request.getfixturevalue(upgrade)
    assert passage.refreshed.unchanged, passage.refreshed.changes


@pytest.mark.usefixtures("nvidia")
@pytest.mark.parametrize("run", [workspace.preview, workspace.deploy], ids=["preview", "up"])
def test_the_way_back_is_refused_before_anything_is_touched(rehearsal: Rehearsal, run: Any) -> None:
    (before,) = rehearsal.api.list("apps/v1", "DaemonSet", DRIVER_NAMESPACE)
    with pytest.raises(LabError) as refused:
        run(rehearsal.lab, BEFORE, project=rehearsal.project)
    text = str(refused.value)
    assert "charts.nvidia.version: It is 25.12.0, but the cluster runs 0.4.1, and there is no way back" in text
    assert "Write 0.4.1 or a later version." in text
    assert "Traceback" not in text
    assert "terminated" not in text
    (after,) = rehearsal.api.list("apps/v1", "DaemonSet", DRIVER_NAMESPACE)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_an_upgrade_of_the_amd_operator_leaves_running_pods_alone(rehearsal: Rehearsal, amd: Passage) -> None:
    assert amd.result.changes["update"] == 2
    assert amd.after == rehearsal.before
    assert amd.slices.emptied == {}
    assert amd.customers.served.keys() == CLASSES.keys()
    assert amd.plugins.at_once() <= 1
    assert amd.plugins.doubled == set()


@pytest.mark.usefixtures("amd")
def test_the_upgraded_amd_operator_runs_the_newer_driver(rehearsal: Rehearsal) -> None:
    (plugin,) = rehearsal.api.list("apps/v1", "DaemonSet", OPERATOR_NAMESPACE)
    (container,) = plugin["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "docker.io/rocm/k8s-gpu-dra-driver:v1.0.1"
    (piece,) = rehearsal.api.list("resource.k8s.io/v1", "ResourceSlice", field_selector="spec.nodeName=mi100-1")
    assert all("driverVersionFull" in device["attributes"] for device in piece["spec"]["devices"])


@pytest.fixture(scope="module")
def fresh(labs: LabFactory, project: Path) -> Lab:
    """A lab that has 0.4.1 from the start."""
    lab = labs.up("newer")
    workspace.deploy(lab, BOTH, project=project)
    return lab


@pytest.mark.long
def test_a_fresh_cluster_gets_the_newer_driver_and_its_crds_at_once(fresh: Lab) -> None:
    api = connect(fresh.kubeconfig)
    until(lambda: publish_their_devices(api, gpu_nodes("berkelium")), "every GPU node publishes its devices", 60)
    (plugin,) = api.list("apps/v1", "DaemonSet", DRIVER_NAMESPACE)
    assert plugin["metadata"]["labels"]["app.kubernetes.io/version"] == "0.4.1"
    crd = api.get(*CRD, DOMAINS)
    assert crd is not None
    assert "numNodes" not in crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"]


@pytest.mark.long
def test_the_crds_survive_the_stack_and_the_next_one_takes_them_over(fresh: Lab, project: Path) -> None:
    api = connect(fresh.kubeconfig)
    before = api.get(*CRD, DOMAINS)
    assert before is not None
    workspace.destroy(fresh)
    kept = api.get(*CRD, DOMAINS)
    assert kept is not None
    assert kept["metadata"]["uid"] == before["metadata"]["uid"]
    # With the driver gone it can be started over with any release.
    assert workspace.deploy(fresh, BEFORE, project=project).changes["create"] > 0
