"""Adoption of a cluster that was built by hand and is in use: nothing is deleted, recreated or missing for a moment."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from berkelium_cli.main import cli
from berkelium_lab import workspace
from berkelium_lab.adopt import Adoption, declared, find, read_adopt, recorded_in_lab, write_adopt
from berkelium_lab.adopt.changes import of_object
from berkelium_lab.adopt.helm_records import Release, releases
from berkelium_lab.api import Api, connect
from berkelium_lab.errors import LabError
from berkelium_lab.lab import Lab
from berkelium_lab.project_copy import PROJECT
from berkelium_lab.workspace import DeployResult
from tests.lab import hand_made_cluster
from tests.lab.guides import berkelium, commands
from tests.lab.hand_made_cluster import AMD, NVIDIA, TENANT, Running, held, identities, start_work
from tests.lab.labs import LabFactory
from tests.lab.test_deploy import copied
from tests.lab.witnesses import Classes, Demand, steady_demand, watched_classes

PREFIX = "berkelium-infra"
RELEASES = {(NVIDIA, NVIDIA), ("kube-amd-gpu", AMD)}

EXISTING = {
    "namespaces": {"kube-amd-gpu", "my-project", NVIDIA},
    "deviceClasses": {"gpu.amd.com", "gpu.nvidia.com", "mig.nvidia.com", "nvidia-h100", "nvidia-h200"},
    "policies": {"require-resources"},
    "policyBindings": {"require-resources"},
    "releases": {AMD, NVIDIA},
}
"""What `hand_made_cluster` builds of what the stack declares."""


@dataclass
class Run:
    """The adoption, and what was seen before, during and after it."""

    lab: Lab
    api: Api
    project: Path
    command: Result
    found: Adoption
    file_before: bytes
    file_written: str
    kept: dict[tuple[str, str, str], str]
    running: dict[str, Running]
    releases: dict[tuple[str, str], Release]
    classes: Classes
    demand: Demand
    result: DeployResult

    @property
    def file(self) -> Path:
        """The stack's file."""
        return self.project / "Pulumi.lab.yaml"

    def look_again(self) -> Adoption:
        """What `berkelium adopt` finds now."""
        return look(self.lab, self.project)


@pytest.fixture(scope="module")
def run(labs: LabFactory, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A hand-made cluster with running pods, adopted while pods keep being created."""
    lab = labs.up("adopt")
    api = connect(lab.kubeconfig)
    hand_made_cluster.build(lab, api, tmp_path_factory.mktemp("by-hand"))
    project = copied(PROJECT, tmp_path_factory.mktemp("project"))
    running = start_work(api)
    file = project / "Pulumi.lab.yaml"
    before = file.read_bytes()
    command = adopt("--name", lab.name, "--config-file", str(file), "--write")
    found = look(lab, project)
    with watched_classes(api) as classes, steady_demand(api, TENANT) as demand:
        kept, installed, written = identities(api), releases(api), file.read_text()
        result = workspace.deploy(lab, project=project)
    # Without the switch again, as `adopt --done` leaves the file.
    write_adopt(file, PREFIX, {})
    return Run(lab, api, project, command, found, before, written, kept, running, installed, classes, demand, result)


def adopt(*arguments: str) -> Result:
    """Run `berkelium adopt`."""
    return CliRunner().invoke(cli, ["adopt", *arguments])


def look(lab: Lab, project: Path) -> Adoption:
    """What exists of the stack in the lab."""
    return find(connect(lab.kubeconfig), declared(project, "lab"), recorded_in_lab(lab, "lab", PREFIX))


def test_exactly_what_exists_of_the_stack_is_found_and_written(run: Run) -> None:
    assert run.command.exit_code == 0, run.command.output
    assert {part: set(entries) for part, entries in run.found.section.items()} == EXISTING
    assert run.found.notes == []
    added = run.file_written.removeprefix(run.file_before.decode())
    assert added.startswith("  berkelium-infra:adopt:\n")
    for part, entries in EXISTING.items():
        assert all(entry in added.partition(f"    {part}: ")[2].splitlines()[0] for entry in entries)


def test_the_command_says_what_would_change_in_each(run: Run) -> None:
    text = run.command.output
    for line in (
        "take over  DeviceClass nvidia-h200",
        "spec.extendedResourceName: example.com/h200 -> nvidia.com/h200",
        'metadata.labels["app.kubernetes.io/managed-by"]: Helm -> pulumi',
        "metadata.labels.team: vision -> (none)",
        "spec.validationActions[]: Warn -> Deny",
        "values.draDriver: (none) -> {'deviceClass': {'create': False}}",
        "gives DeviceClass gpu.nvidia.com to the stack",
        "gives DeviceClass gpu.amd.com to the stack",
    ):
        assert line in text


def test_the_up_imports_what_was_there_and_creates_only_what_was_not(run: Run) -> None:
    assert run.result.changes["import"] == sum(len(entries) for entries in EXISTING.values())
    assert set(run.result.changes) == {"import", "update", "create"}


def test_no_device_class_is_missing_at_any_moment(run: Run) -> None:
    assert set(run.classes.before) == EXISTING["deviceClasses"] | {"vfio.gpu.nvidia.com"}
    assert run.classes.missing() == {}
    changed = {name for kind, name, _ in run.classes.events if kind == "MODIFIED"}
    assert changed >= EXISTING["deviceClasses"]


def test_nothing_that_existed_is_deleted_or_recreated(run: Run) -> None:
    now = identities(run.api)
    lost = {key: now.get(key) for key, uid in run.kept.items() if now.get(key) != uid}
    assert lost == {}
    assert ("DaemonSet", NVIDIA, "nvidia-dra-driver-gpu-kubelet-plugin") in run.kept


def test_running_pods_keep_their_devices(run: Run) -> None:
    assert sorted(run.running) == ["by-claim", "by-resource"]
    assert [len(pod.devices) for pod in run.running.values()] == [2, 1]
    assert held(run.api) == run.running


def test_pods_that_are_created_meanwhile_are_all_served(run: Run) -> None:
    assert run.demand.failures == []
    assert len(run.demand.seconds) >= 4
    assert max(run.demand.seconds) < 30


def test_the_releases_go_on_with_their_next_revision_and_without_the_classes(run: Run) -> None:
    assert set(run.releases) == RELEASES
    for key in RELEASES:
        before, now = run.releases[key], releases(run.api)[key]
        assert (now.status, now.revision) == ("deployed", before.revision + 1)
        ours = {("DeviceClass", name) for name in EXISTING["deviceClasses"]}
        assert before.objects & ours
        assert not now.objects & ours


def test_every_object_is_then_as_declared_so_that_what_was_announced_is_what_happened(run: Run) -> None:
    left = {}
    for each in declared(run.project, "lab"):
        if not each.is_release:
            where = each.identity
            live = run.api.get(each.api_version, each.kind, where.name, where.namespace)
            assert live is not None, each.subject
            left |= {each.subject: [str(change) for change in of_object(run.api, each.inputs, live)]}
    assert {subject: changes for subject, changes in left.items() if changes} == {}


def test_the_file_is_afterwards_byte_for_byte_what_it_was(run: Run) -> None:
    assert run.file.read_bytes() == run.file_before


def test_without_the_switch_the_next_up_changes_nothing(run: Run) -> None:
    assert workspace.preview(run.lab, project=run.project).unchanged
    assert workspace.preview(run.lab, project=run.project, refresh=True).unchanged
    assert workspace.deploy(run.lab, project=run.project).unchanged


def test_with_the_switch_left_on_the_next_up_changes_nothing_either(run: Run) -> None:
    assert workspace.deploy(run.lab, {"adopt": run.found.section}, project=run.project).unchanged


def test_the_command_then_finds_everything_in_the_state_and_takes_the_switch_out_again(
    run: Run, tmp_path: Path
) -> None:
    again = run.look_again()
    assert {each.status for each in again.found} == {"recorded"}
    assert again.section == {}
    file = tmp_path / "Pulumi.lab.yaml"
    file.write_text(run.file_written)
    assert adopt("--name", run.lab.name, "--config-file", str(file), "--write").exit_code == 0
    assert file.read_bytes() == run.file_before
    file.write_text(run.file_written)
    assert adopt("--config-file", str(file), "--done").exit_code == 0
    assert file.read_bytes() == run.file_before


def test_a_context_of_a_kubeconfig_is_asked_as_a_lab_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(run.lab.kubeconfig))
    monkeypatch.setenv("PATH", os.devnull)
    context = run.lab.kubeconfig.read_text().partition("current-context: ")[2].split()[0]
    asked = adopt("--context", context, "--stack", "lab", "--config-file", str(run.file))
    assert asked.exit_code == 0, asked.output
    assert "The stack's state could not be read" in asked.output
    assert "take over  DeviceClass gpu.nvidia.com" in asked.output


def test_the_commands_of_the_guide_do_what_it_says(run: Run) -> None:
    file = run.project / "Pulumi.prod.yaml"
    text = (PROJECT / "Pulumi.prod.yaml").read_text() + "  berkelium-infra:charts: {source: berkelium_lab/charts}\n"
    file.write_text(text)
    kubeconfig = run.project / "kubeconfig"
    config = yaml.safe_load(run.lab.kubeconfig.read_text())
    config["contexts"][0]["name"] = config["current-context"] = "berkelium-prod"
    kubeconfig.write_text(yaml.safe_dump(config))

    def up() -> None:
        section = read_adopt(file, PREFIX)
        assert all(set(section[part]) >= entries for part, entries in EXISTING.items())
        assert workspace.deploy(run.lab, {"adopt": section}, project=run.project).unchanged

    def preview() -> None:
        assert read_adopt(file, PREFIX) == {}
        assert workspace.preview(run.lab, project=run.project).unchanged

    # The ordinary CLI needs a language host, which the lab does without: its engine does the same.
    by_engine = {
        "pulumi up --stack prod --skip-preview": up,
        "pulumi preview --stack prod --expect-no-changes": preview,
    }
    done = []
    for line in commands(PROJECT / "docs" / "adoption.md"):
        if line in by_engine:
            by_engine[line]()
        else:
            berkelium(run.project, kubeconfig, line)
        done.append(line.split()[0])
    assert done == ["berkelium", "berkelium", "pulumi", "berkelium", "pulumi"]
    assert file.read_text() == text


def test_an_entry_whose_object_is_missing_stops_the_up_and_names_it(run: Run) -> None:
    missing = {"projects": {"nowhere": {}}, "adopt": {"namespaces": ["nowhere"]}}
    with pytest.raises(LabError) as caught:
        workspace.deploy(run.lab, missing, project=run.project)
    assert "nowhere" in str(caught.value)
    assert run.api.get("v1", "Namespace", "nowhere") is None
    assert workspace.preview(run.lab, project=run.project).unchanged


def test_an_object_that_the_engine_made_and_did_not_record_is_found(run: Run) -> None:
    recorded = recorded_in_lab(run.lab, "lab", PREFIX) - {("device_classes", "nvidia-a100")}
    found = find(run.api, declared(run.project, "lab"), recorded)
    assert found.section == {"deviceClasses": ["nvidia-a100"]}
