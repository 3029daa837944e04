"""The simulator's process: `python -m berkelium_lab.hardware`. SIGTERM or SIGINT ends it and its children."""

import argparse
import logging
import signal
import sys
from pathlib import Path

from berkelium_infra.errors import UserError
from berkelium_lab import fleet as fleets
from berkelium_lab.api import Api, connect
from berkelium_lab.hardware.amd_controller import AmdController
from berkelium_lab.hardware.amd_operator_controller import AmdOperatorController
from berkelium_lab.hardware.cluster import Cluster
from berkelium_lab.hardware.controller import Controller, Loop
from berkelium_lab.hardware.crashes import Crashes
from berkelium_lab.hardware.hooks import HookController
from berkelium_lab.hardware.inventory import inventory
from berkelium_lab.hardware.nfd_controller import NfdController
from berkelium_lab.hardware.nfd_master import NfdMaster
from berkelium_lab.hardware.nvidia_controller import NvidiaController
from berkelium_lab.hardware.publisher import Publisher

log = logging.getLogger("berkelium_lab.hardware")


def main() -> int:
    """Run until a signal comes; the exit status is 1 when the arguments cannot be used."""
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        fleet = fleets.load(arguments.fleet)
    except UserError as error:
        log.error("%s", error)
        return 1
    loop = Loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop())
    _simulate(loop, fleet, arguments)
    return 0


def _simulate(loop: Loop, fleet: fleets.Fleet, arguments: argparse.Namespace) -> None:
    api = connect(arguments.kubeconfig)
    server = _server_version(api)
    hardware = inventory(fleet)
    cluster = Cluster(api, loop.wake)
    publisher = Publisher(api, cluster.slices)
    binary = arguments.tools / "nfd-master"
    master = NfdMaster(api, binary, arguments.kubeconfig, arguments.directory, loop.wake)
    controllers: list[Controller] = [
        HookController(cluster, api, master),
        NvidiaController(cluster, publisher, Crashes(api), hardware, fleet.nvlink_domain_attribute, server),
        AmdController(cluster, publisher, api, hardware),
        AmdOperatorController(cluster, api),
        NfdController(cluster, api, master, hardware),
    ]
    cluster.start()
    log.info("playing the hardware of %d nodes at Kubernetes %d.%d", len(hardware), *server)
    try:
        loop.run(controllers, lambda: cluster.synced)
    finally:
        cluster.stop()
        master.close()
        publisher.close()
        log.info("stopped")


def _server_version(api: Api) -> tuple[int, int]:
    version = api.raw("GET", "/version")
    return int(version["major"]), int(version["minor"].rstrip("+"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m berkelium_lab.hardware", description="Play a lab's hardware.")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="an admin's kubeconfig of the lab")
    parser.add_argument("--fleet", required=True, help="name or path of the fleet")
    parser.add_argument("--tools", type=Path, required=True, help="directory with the program nfd-master")
    parser.add_argument("--directory", type=Path, required=True, help="the lab's directory, for logs and credentials")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
