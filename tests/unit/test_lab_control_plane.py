"""How the programs of a lab are called, and the stages that KWOK plays."""

from pathlib import Path

import pytest
import yaml

from berkelium_lab.control_plane import API_SERVER, CLIENTS, COMPONENTS, ETCD, STAGES, Component, Site
from berkelium_lab.toolchain import TOOLS

PORTS = {listener: 20000 + number for number, listener in enumerate(n for c in COMPONENTS for n in c.listeners)}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A lab's site with a port for every listener."""
    return Site(tmp_path / "lab", tmp_path / "tools", PORTS)


def flags(component: Component, site: Site) -> dict[str, str]:
    """A component's flags by name; of a repeated one the last."""
    parts = (str(part).partition("=") for part in component.command(site)[1:])
    return {name: value for name, _, value in parts}


def test_etcd_starts_first_and_the_api_server_before_its_clients() -> None:
    assert COMPONENTS[:2] == (ETCD, API_SERVER)
    assert COMPONENTS[2:] == CLIENTS


@pytest.mark.parametrize("component", [each for each in COMPONENTS if each.name != "hardware"], ids=lambda c: c.name)
def test_a_component_is_a_program_of_the_toolchain(component: Component, site: Site) -> None:
    program = Path(component.command(site)[0])
    assert program.parent == site.tools
    assert program.name in TOOLS


@pytest.mark.parametrize("name", ["kube-apiserver", "kube-controller-manager", "kube-scheduler"])
def test_kubernetes_listens_on_loopback_with_the_labs_certificate(name: str, site: Site) -> None:
    component = next(each for each in COMPONENTS if each.name == name)
    given = flags(component, site)
    assert given["--bind-address"] == "127.0.0.1"
    assert given["--secure-port"] == str(PORTS[name])
    assert given["--tls-cert-file"] == str(site.credentials.serving_certificate)


def test_etcd_listens_on_loopback_and_asks_every_client_for_a_certificate(site: Site) -> None:
    given = flags(ETCD, site)
    for url in ("--listen-client-urls", "--advertise-client-urls", "--listen-peer-urls"):
        assert given[url].startswith("https://127.0.0.1:")
    assert {"--client-cert-auth", "--peer-client-cert-auth"} <= set(given)


@pytest.mark.parametrize("name", ["kube-controller-manager", "kube-scheduler"])
def test_the_clients_of_the_api_server_may_ask_as_often_as_scheduling_needs(name: str, site: Site) -> None:
    given = flags(next(each for each in CLIENTS if each.name == name), site)
    assert float(given["--kube-api-qps"]) >= 1000
    assert float(given["--kube-api-burst"]) >= float(given["--kube-api-qps"])


def test_no_program_writes_outside_the_labs_directory(site: Site) -> None:
    given = flags(next(each for each in CLIENTS if each.name == "kube-controller-manager"), site)
    assert Path(given["--flex-volume-plugin-dir"]).is_relative_to(site.directory)
    assert Path(flags(ETCD, site)["--data-dir"]).is_relative_to(site.directory)


def test_nothing_judges_simulated_nodes_by_leases_that_they_do_not_have(site: Site) -> None:
    switched = flags(next(each for each in CLIENTS if each.name == "kube-controller-manager"), site)["--controllers"]
    assert {"*", "-node-lifecycle-controller", "-taint-eviction-controller"} == set(switched.split(","))
    assert "TaintNodesByCondition" in flags(API_SERVER, site)["--disable-admission-plugins"]


def test_every_stage_is_a_stage_of_nodes_or_pods_with_a_name_of_its_own() -> None:
    stages = [stage for path in STAGES.glob("*.yaml") for stage in yaml.safe_load_all(path.read_text())]
    assert {(stage["apiVersion"], stage["kind"]) for stage in stages} == {("kwok.x-k8s.io/v1alpha1", "Stage")}
    assert {stage["spec"]["resourceRef"]["kind"] for stage in stages} == {"Node", "Pod"}
    names = [stage["metadata"]["name"] for stage in stages]
    assert len(set(names)) == len(names)


def test_kwok_is_given_every_file_of_stages(site: Site) -> None:
    command = next(each for each in CLIENTS if each.name == "kwok").command(site)
    configs = {str(part).removeprefix("--config=") for part in command if str(part).startswith("--config=")}
    assert configs == {str(path) for path in STAGES.glob("*.yaml")}
