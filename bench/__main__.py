"""`make bench`: how long the laboratory and the program take on this machine, and what they use.

Timings belong here and never into a test's assertion. Every figure is the median of the rounds, with the extremes.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from bench import commands, policies
from berkelium_lab import examples, workspace
from berkelium_lab.api import connect
from berkelium_lab.lab import Lab

NAME = "bench"


def rounds(count: int) -> Iterator[dict[str, float]]:
    """One set of measurements per round: seconds, and MiB where the key says so."""
    for number in range(1, count + 1):
        print(f"round {number} of {count}", file=sys.stderr)
        lab = Lab(NAME)
        try:
            yield _round(lab)
        finally:
            lab.down()


def _round(lab: Lab) -> dict[str, float]:
    found: dict[str, float] = {}
    found["lab up"] = _seconds(lambda: lab.up())
    found["first deployment"] = _seconds(lambda: workspace.deploy(lab))
    api = connect(lab.kubeconfig)
    documented = examples.load().documented
    found["documented pods, applied until all run"] = _seconds(
        lambda: examples.run(api, documented, seconds=120, report=lambda _: None)
    )
    found["make up, without building (sum of the above)"] = sum(found.values())
    found["memory of the control plane, MiB"] = sum(
        component.memory_mib or 0 for component in lab.status().components if component.name != "hardware"
    )
    examples.delete(api, documented)
    for what, action in commands.waits(lab):
        found[what] = _seconds(action)
    found["second deployment, nothing to do"] = _seconds(lambda: workspace.deploy(lab))
    found["destroy"] = _seconds(lambda: workspace.destroy(lab))
    return found


def _seconds(action: Callable[[], object]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started


def main() -> None:
    """Entry point of `python -m bench`."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--skip-policies", action="store_true", help="leave out the cost of the policies")
    options = parser.parse_args()
    measured = list(rounds(options.rounds))
    figures = {
        key: {"median": statistics.median(values), "least": min(values), "most": max(values)}
        for key in measured[0]
        for values in [[each[key] for each in measured]]
    }
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        print(f"{'':48} {'median':>8} {'least':>8} {'most':>8}")
        for key, figure in figures.items():
            print(f"{key:48} {figure['median']:8.1f} {figure['least']:8.1f} {figure['most']:8.1f}")
    if not options.skip_policies:
        policies.main([])


if __name__ == "__main__":
    main()
