"""`python -m tests.soak.kill_matrix`: kill each part of a deployment at random points, recover, compare.

Exit code 0 when every recovery came to the state and the objects of an undisturbed run, 1 otherwise. A failing point
is run again by its seed.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from berkelium_lab import workspace
from berkelium_lab.api import connect
from berkelium_lab.lab import Lab
from berkelium_lab.project_copy import PROJECT
from tests.soak import killing, world

INSTALLATION_LINES, UPGRADE_LINES = 25, 7

OLD: dict[str, object] = {}
NEW: dict[str, object] = {
    "nvidia": {"driverRoot": "/run/nvidia/driver"},
    "amd": {"nodeSelector": {"example.com/pool": "gpus"}},
    "nodeFeatureDiscovery": {"nodeSelector": {"kubernetes.io/os": "linux"}},
    "extraDeviceClasses": [{"name": "extra", "selector": 'device.driver == "gpu.nvidia.com"'}],
}
"""An upgrade that changes every release, and creates (or, on the way back, deletes) an object."""


def main() -> int:
    """Run the matrix; prints a line per point and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=int, default=10, help="points per target and phase")
    parser.add_argument("--target", action="append", choices=killing.TARGETS, help="only these targets")
    parser.add_argument("--phase", choices=("installation", "upgrade"))
    parser.add_argument("--project", type=Path, default=PROJECT)
    chosen = parser.parse_args()
    targets = tuple(chosen.target or killing.TARGETS)
    outcomes: list[killing.Outcome] = []
    started = time.monotonic()
    if chosen.phase != "upgrade":
        outcomes += _shown(installations(chosen.seed, targets, chosen.points, chosen.project))
    if chosen.phase != "installation":
        outcomes += _shown(upgrades(chosen.seed, targets, chosen.points, chosen.project))
    bad = [outcome for outcome in outcomes if outcome.differences]
    struck = sum(outcome.struck for outcome in outcomes)
    print(
        f"{len(outcomes)} deployments struck at ({struck} while they ran), {len(outcomes) - len(bad)} recovered to the "
        f"state of an undisturbed run, {len(bad)} not; {time.monotonic() - started:.0f} s"
    )
    return 1 if bad else 0


def installations(seed: int, targets: tuple[str, ...], count: int, project: Path) -> Iterator[killing.Outcome]:
    """Strike first deployments, each in a new lab."""
    with _lab("undisturbed") as lab:
        workspace.deploy(lab, OLD, project=project)
        expected = {**world.recorded(lab), **world.live(connect(lab.kubeconfig))}
    for target in targets:
        for point in killing.points(seed, target, count, INSTALLATION_LINES):
            with _lab("struck") as lab:
                yield killing.trial(lab, point, OLD, project, expected)


def upgrades(seed: int, targets: tuple[str, ...], count: int, project: Path) -> Iterator[killing.Outcome]:
    """Strike deployments that lead from one configuration to another, to and fro in one lab."""
    with _lab("upgraded") as lab:
        expected = []
        for settings in (OLD, NEW, OLD):
            workspace.deploy(lab, settings, project=project)
            expected.append({**world.recorded(lab), **world.live(connect(lab.kubeconfig))})
        new, old = expected[1:]
        forward = True
        for target in targets:
            for point in killing.points(seed, target, count, UPGRADE_LINES):
                settings, wanted = (NEW, new) if forward else (OLD, old)
                yield killing.trial(lab, point, settings, project, wanted)
                forward = not forward


@contextmanager
def _lab(name: str) -> Iterator[Lab]:
    lab = Lab(f"soak-{os.getpid()}-{name}")
    lab.up()
    try:
        yield lab
    finally:
        lab.down()


def _shown(outcomes: Iterator[killing.Outcome]) -> list[killing.Outcome]:
    seen = []
    for outcome in outcomes:
        seen.append(outcome)
        verdict = "DIFFERS" if outcome.differences else "recovered"
        print(f"{verdict}: {outcome.point}{'' if outcome.struck else ' (too late)'}", flush=True)
        for line in outcome.differences:
            print(f"    {line}", flush=True)
    return seen


if __name__ == "__main__":
    sys.exit(main())
