"""The programs of a lab: how each is called, what it needs first, and how one sees that it serves.

Flags are those of Kubernetes 1.37, etcd 3.7 and KWOK 0.8. Every listener is on the loopback address.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import berkelium_lab
from berkelium_lab.credentials import SERVICE_CIDR, Credentials
from berkelium_lab.ports import LOOPBACK

STAGES = Path(berkelium_lab.__file__).parent / "stages"

POD_CIDR = "10.128.0.0/16"
"""Pods' simulated addresses; nothing listens there."""

ETCD_MEMBER = "lab"

CLIENT_RATE = ("--kube-api-qps=1000", "--kube-api-burst=2000")
"""The default rates (50 requests a second for the scheduler, 20 for the controller manager) halve the rate at which
pods with claims are scheduled on one machine."""


@dataclass(frozen=True)
class Site:
    """What a lab's programs are given: its directory, the directory of the tools, and the ports by name of listener."""

    directory: Path
    tools: Path
    ports: dict[str, int]

    @property
    def fleet(self) -> Path:
        """The lab's own copy of its fleet file."""
        return self.directory / "fleet.yaml"

    @property
    def credentials(self) -> Credentials:
        return Credentials(self.directory)

    def log(self, component: str) -> Path:
        """The log of a component, which lasts over its restarts."""
        return self.directory / "logs" / f"{component}.log"

    def url(self, listener: str) -> str:
        return f"https://{LOOPBACK}:{self.ports[listener]}"


@dataclass(frozen=True)
class Component:
    """One program of a lab.

    `listeners` are the names of the ports that it takes; `health` is the path, on the first of them, that answers 200
    once it serves (None: it is healthy while it runs). `stop_seconds` is how long it may take to end by itself.
    """

    name: str
    command: Callable[[Site], list[str | Path]]
    listeners: tuple[str, ...] = ()
    health: str | None = None
    stop_seconds: float = 5


def _etcd(site: Site) -> list[str | Path]:
    files = site.credentials
    client, peer = site.url("etcd"), site.url("etcd-peer")
    flags = [
        f"--name={ETCD_MEMBER}",
        f"--data-dir={site.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={ETCD_MEMBER}={peer}",
        "--log-level=warn",
        # A lab's data may be lost with the machine; waiting for the disk would slow down every write.
        "--unsafe-no-fsync",
    ]
    for side in ("", "peer-"):
        flags += [
            f"--{side}cert-file={files.etcd_certificate}",
            f"--{side}key-file={files.etcd_key}",
            f"--{side}trusted-ca-file={files.authority}",
            f"--{side}client-cert-auth",
        ]
    return [site.tools / "etcd", *flags]


def _serving(site: Site, component: str) -> list[str]:
    return [
        f"--bind-address={LOOPBACK}",
        f"--secure-port={site.ports[component]}",
        f"--tls-cert-file={site.credentials.serving_certificate}",
        f"--tls-private-key-file={site.credentials.serving_key}",
        "--profiling=false",
    ]


def _kube_apiserver(site: Site) -> list[str | Path]:
    files = site.credentials
    return [
        site.tools / "kube-apiserver",
        *_serving(site, "kube-apiserver"),
        f"--etcd-servers={site.url('etcd')}",
        f"--etcd-cafile={files.authority}",
        f"--etcd-certfile={files.etcd_certificate}",
        f"--etcd-keyfile={files.etcd_key}",
        # Not the address: tokens stay good when the lab comes up again on another port.
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={files.service_account_key}",
        f"--service-account-key-file={files.service_account_key}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=RBAC",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--allow-privileged=true",
        # ServiceAccount would refuse the pods of a namespace until a controller has made its default account.
        # TaintNodesByCondition would taint every new node, and only the node lifecycle controller takes that off.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    ]


def _kube_controller_manager(site: Site) -> list[str | Path]:
    files = site.credentials
    return [
        site.tools / "kube-controller-manager",
        *_serving(site, "kube-controller-manager"),
        f"--kubeconfig={files.kubeconfig('kube-controller-manager')}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.authority}",
        # Otherwise it makes a directory for volume plugins in the system's own.
        f"--flex-volume-plugin-dir={site.directory / 'volume-plugins'}",
        # Both judge nodes by the leases of their kubelets, which simulated nodes do not have.
        "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
        *CLIENT_RATE,
    ]


def _kube_scheduler(site: Site) -> list[str | Path]:
    return [
        site.tools / "kube-scheduler",
        *_serving(site, "kube-scheduler"),
        f"--kubeconfig={site.credentials.kubeconfig('kube-scheduler')}",
        "--leader-elect=false",
        *CLIENT_RATE,
    ]


def _kwok(site: Site) -> list[str | Path]:
    return [
        site.tools / "kwok",
        f"--kubeconfig={site.credentials.kubeconfig('kwok')}",
        "--manage-all-nodes=true",
        # No leases: one KWOK manages all nodes, and nothing judges nodes by them.
        "--node-lease-duration-seconds=0",
        f"--cidr={POD_CIDR}",
        *(f"--config={stages}" for stages in sorted(STAGES.glob("*.yaml"))),
    ]


def _hardware(site: Site) -> list[str | Path]:
    return [
        sys.executable,
        "-m",
        "berkelium_lab.hardware",
        f"--kubeconfig={site.credentials.kubeconfig('hardware')}",
        f"--fleet={site.fleet}",
        f"--tools={site.tools}",
        f"--directory={site.directory}",
    ]


ETCD = Component("etcd", _etcd, listeners=("etcd", "etcd-peer"), health="/readyz")
# It waits for the end of its clients' watches when it stops, which other programs may keep open.
API_SERVER = Component("kube-apiserver", _kube_apiserver, ("kube-apiserver",), health="/readyz", stop_seconds=3)

CLIENTS = (
    Component("kube-controller-manager", _kube_controller_manager, ("kube-controller-manager",), health="/healthz"),
    Component("kube-scheduler", _kube_scheduler, ("kube-scheduler",), health="/readyz"),
    Component("kwok", _kwok),
    Component("hardware", _hardware),
)
"""The clients of the API server; they start side by side and stop before it."""

COMPONENTS = (ETCD, API_SERVER, *CLIENTS)
"""All components in the order in which they start."""
