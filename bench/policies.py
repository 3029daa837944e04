"""What the policies add to the creation of a pod, measured on a lab.

Dry runs over one connection, in rounds with and without the policies, interleaved. What is created in the first
seconds after each change is not counted: the controller manager's type checking would be measured otherwise.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from berkelium_infra.policy_source import compose
from berkelium_lab.api import Api, connect
from berkelium_lab.lab import Lab
from berkelium_lab.policy_trial import ask
from berkelium_lab.wait import until

SETTLE_SECONDS = 5
ROUNDS = 6
REQUESTS = 100
NAMESPACE = "default"

_POLICY_API = "admissionregistration.k8s.io/v1"
_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "bench", "uid": "bench", "controller": True}
_HEAD = """set -euo pipefail
export NCCL_DEBUG=INFO
echo "starting on $(hostname)"
# wait for the data
while [ ! -f /data/ready ]; do
  sleep 5
done
nvidia-smi -L
cp -r /data/in /scratch/in
torchrun --nproc-per-node=8 train.py --data /scratch/in --epochs 10 2>&1 | tee /ckpt/log.txt
python evaluate.py --checkpoint /ckpt/last.pt
echo "done; exiting"
"""
_STEP = 'echo "step {n}"; python step.py --in "/data/{n}" > /tmp/log{n} 2>&1 && cp /tmp/log{n} /ckpt/ || exit 1\n'
_MONITOR = "(while true; do nvidia-smi; sleep 60; done) &\n"


@dataclass(frozen=True)
class Row:
    """Milliseconds of each creation without and with the policies, and what these may add to the median at most."""

    what: str
    without: tuple[float, ...]
    with_policies: tuple[float, ...]
    goal: float | None

    @property
    def added(self) -> float:
        return statistics.median(self.with_policies) - statistics.median(self.without)


def script(size: int, monitor: bool = False) -> str:
    """A working script of about that many bytes; with a monitor the policies must read all of it."""
    text = _MONITOR * monitor + _HEAD
    number = 0
    while len(line := _STEP.format(n=number)) + len(text) <= size:
        text, number = text + line, number + 1
    return text


CASES = (
    ("CPU pod, 2 containers", None, 2, 0.5),
    ("GPU pod, script of 450 B", script(450), 1, 1.0),
    ("GPU pod, script of 4 KB", script(4096), 1, 3.0),
    ("GPU pod, 450 B with an endless monitor", script(450, monitor=True), 1, None),
    ("GPU pod, 4 KB with an endless monitor", script(4096, monitor=True), 1, None),
)


def pod(text: str | None, containers: int) -> dict:
    """A pod of a Job that runs the script and holds a GPU, or CPU work when there is no script."""
    gpu = {"nvidia.com/gpu": "1"} if text else {}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi", **gpu}}
    command = ["bash", "-c", text] if text else ["python", "work.py"]
    made = [{"name": f"c{n}", "image": "app", "command": command, "resources": resources} for n in range(containers)]
    metadata = {"name": "bench", "ownerReferences": [_JOB]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": made}}


def measure(api: Api, rounds: int = ROUNDS, requests: int = REQUESTS) -> list[Row]:
    """All cases; the policies are taken away at the end. Raises `TimeoutError` when they do not come into force."""
    times: dict[tuple[str, bool], list[float]] = {}
    try:
        for number in range(2 * rounds):
            switched_on = number % 2 == 1
            _switch(api, switched_on)
            for what, text, containers, _ in CASES:
                spent = [_milliseconds(api, pod(text, containers)) for _ in range(requests)]
                times.setdefault((what, switched_on), []).extend(spent)
    finally:
        _switch(api, False)
    return [Row(what, tuple(times[what, False]), tuple(times[what, True]), goal) for what, _, _, goal in CASES]


def _milliseconds(api: Api, obj: dict) -> float:
    start = time.perf_counter()
    api.create({**obj, "metadata": {**obj["metadata"], "namespace": NAMESPACE}}, dry_run=True)
    return (time.perf_counter() - start) * 1000


def _switch(api: Api, on: bool) -> None:
    for name in compose.names():
        policy, binding = compose.manifests(name)
        api.apply(policy)
        if on:
            api.apply(binding)
        else:
            api.delete(_POLICY_API, "ValidatingAdmissionPolicyBinding", name)
    for obj in (pod("sleep infinity", 1), {**pod(None, 1), "spec": {"containers": [{"name": "c", "image": "app"}]}}):
        until(partial(_is_denied, api, obj, on), f"the policies are {'on' if on else 'off'}", 30)
    _settle(api)


def _settle(api: Api) -> None:
    """Creations that are not counted, for some seconds."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        _milliseconds(api, pod(None, 1))


def _is_denied(api: Api, obj: dict, wanted: bool) -> bool:
    return (ask(api, obj, NAMESPACE) is not None) == wanted


def table(rows: list[Row]) -> str:
    """The rows as text, in milliseconds."""
    head = ("milliseconds of one creation (dry run)", "without p50/p95", "with p50/p95", "added", "goal")
    lines = [f"{head[0]:40} {head[1]:>16} {head[2]:>16} {head[3]:>7} {head[4]:>6}"]
    for row in rows:
        without, with_policies = (_p50_p95(times) for times in (row.without, row.with_policies))
        goal = "-" if row.goal is None else f"{row.goal:.1f}"
        lines.append(f"{row.what:40} {without:>16} {with_policies:>16} {row.added:7.2f} {goal:>6}")
    return "\n".join(lines)


def _p50_p95(times: tuple[float, ...]) -> str:
    return f"{statistics.median(times):.2f}/{statistics.quantiles(times, n=20)[-1]:.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `python -m bench.policies`: starts a lab, measures, prints the table, takes the lab down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds with and as many without the policies")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="creations of each kind per round")
    chosen = parser.parse_args(arguments)
    lab = Lab("bench-policies")
    try:
        lab.up()
        print(table(measure(connect(lab.kubeconfig), chosen.rounds, chosen.requests)))
    finally:
        lab.down()


if __name__ == "__main__":
    main()
