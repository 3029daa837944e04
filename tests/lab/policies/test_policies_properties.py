"""Random pods against a plain statement of the rule, and random scripts made of parts whose verdict is known.

`BERKELIUM_EXAMPLES` says how many examples are tried (`make soak` tries 10,000); 150 are tried otherwise.
"""

import os
import time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.policies.conftest import TENANT, Judge
from tests.lab.policies.world import COMPLETE, TEMPLATE_KINDS, Object, job, pod_spec, workload

EXAMPLES = int(os.environ.get("BERKELIUM_EXAMPLES", "150"))
ADDED_SECONDS = 0.1
"""What the policies may add to the creation of any pod."""

# Requests are never above these limits, so that the API server itself has nothing to say.
REQUESTS = {"cpu": ["0", "0m", "1m", "0.5", "1"], "memory": ["0", "0Gi", "1Mi", "1e6", "1Gi"]}
LIMITS = {"cpu": ["1", "1500m", "2k"], "memory": ["1Gi", "2Gi", "1T"]}
QUIET = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def values(of: dict[str, list[str]]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(choices) for name, choices in of.items()})


resources = st.one_of(
    st.just(COMPLETE),
    st.fixed_dictionaries({}, optional={"requests": values(REQUESTS), "limits": values(LIMITS)}),
)
kinds = st.sampled_from(("Pod", *TEMPLATE_KINDS))


@st.composite
def specs(draw: st.DrawFn) -> Object:
    """A pod spec of some containers and init containers, sidecars among them, with any part of their resources."""

    def made(name: str, sidecar: bool) -> Object:
        found: Object = {"name": name, "image": "registry.example/app:1"}
        if draw(st.booleans()):
            found["resources"] = draw(resources)
        return {**found, "restartPolicy": "Always"} if sidecar else found

    containers = [made(f"c{n}", False) for n in range(draw(st.integers(1, 4)))]
    inits = [made(f"i{n}", draw(st.booleans())) for n in range(draw(st.integers(0, 3)))]
    spec = pod_spec(*containers)
    return {**spec, "initContainers": inits} if inits else spec


def complete(spec: Object, kind: str) -> bool:
    """The rule of require-resources in plain words; a Pod's requests are copied from its limits before it is asked."""
    return all(
        all(_positive(_stated(container, field, name, kind == "Pod")) for name in ("cpu", "memory"))
        for container in (*spec["containers"], *spec.get("initContainers", []))
        for field in ("requests", "limits")
    )


def _stated(container: Object, field: str, name: str, copied: bool) -> str | None:
    resources = container.get("resources", {})
    own = resources.get(field, {}).get(name)
    return resources.get("limits", {}).get(name) if own is None and copied and field == "requests" else own


def _positive(quantity: str | None) -> bool:
    return quantity is not None and any(digit in "123456789" for digit in quantity.split("e")[0])


@QUIET
@given(spec=specs(), kind=kinds)
def test_a_random_pod_is_refused_exactly_when_a_value_is_missing_or_zero(judge: Judge, spec: Object, kind: str) -> None:
    assert judge.policy(workload(kind, spec)) == (None if complete(spec, kind) else "require-resources")


WORK = (
    "python train.py",
    "torchrun --nproc-per-node=8 train.py | tee log",
    "cp -r /data /scratch && ls /scratch",
    "sleep 30",
    "until nc -z db 5432; do sleep 2; done",
    "while true; do curl -sf http://queue/ready && break; sleep 5; done",
    "(while true; do nvidia-smi; sleep 60; done) & python train.py",
    "echo 'sleep infinity; exit'",
    "# sleep infinity",
    "cat > hold.sh <<EOF\nsleep infinity\nEOF",
    'python train.py --note "tail -f /dev/null; x"  # or: sleep infinity',
    "for seed in 1 2 3; do python train.py --seed $seed; sleep 10; done",
    "if [ -f checkpoint ]; then python resume.py; else python train.py; fi",
    "python a.py & python b.py & wait",
    "sleep 7200",
)
ENDLESS = (
    "sleep infinity",
    "exec tail -n 0 -f /dev/null",
    "while true; do sleep 60; done",
    "{ echo holding; sleep inf; }",
    "sleep infinity & wait $!",
    "nice nohup sleep 1d infinity",
    "if true; then sleep infinity; fi",
    "while :\ndo\n  nvidia-smi\n  sleep 5\ndone",
    "bash -c 'echo x; sleep infinity'",
    "python3 -c 'import signal; signal.pause()'",
)
LONG = ("sleep 3600", "sleep 30m 45m", "sleep 1d && exit", "sleep 9999 & wait", "sleep ${HOLD:-86400}; echo done")


def wrapped(script: str, how: int) -> Object:
    return (
        {"command": ["bash", "-c", script]},
        {"command": ["/bin/sh", "-ec"], "args": [script + "\n"]},
        {"command": ["tini", "--", "bash", "-lc", "--", script]},
        {"command": ["/entrypoint.sh"], "args": ["bash", "-c", script.replace("\n", "\r\n")]},
    )[how]


@st.composite
def scripts(draw: st.DrawFn) -> tuple[str, bool]:
    """A script of working parts, perhaps with an idle one in it, and whether it is idle."""
    lines = draw(st.lists(st.sampled_from(WORK), min_size=1, max_size=8))
    # The last working part must not be a long sleep, nor leave a monitor that a later `wait` would wait for.
    lines = [*lines, "python evaluate.py"]
    kind = draw(st.sampled_from(("working", "endless", "long at the end", "long before work")))
    if kind == "working":
        return "\n".join(lines), False
    if kind == "endless":
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(ENDLESS)))
        return "\n".join(lines), True
    part = draw(st.sampled_from(LONG))
    return "\n".join([*lines, part] if kind == "long at the end" else [part, *lines]), kind == "long at the end"


@QUIET
@given(script=scripts(), how=st.integers(0, 3))
def test_a_random_script_is_refused_exactly_when_a_part_of_it_is_idle(
    judge: Judge, script: tuple[str, bool], how: int
) -> None:
    text, idle = script
    assert judge.policy(job(wrapped(text, how))) == ("no-idle-gpu" if idle else None)


SIGNS = (*"\n;&|(){}<>'\"#\\$`!*?~ \t\r", "&&", "||", "<<EOF", "EOF", "$(", "${X:-", "((", "))", "é", "")
WORDS = (  # noqa: SIM905
    "sleep infinity inf 1h 3600 while true do done until false for in if then else fi case esac wait read exec "
    "bash -c sh python python3 perl -e node import time time.sleep( while True: tail -f /dev/null nvidia-smi"
).split()
words = st.sampled_from((*SIGNS, *WORDS))


@QUIET
@given(script=st.lists(words, max_size=80).map(" ".join), tty=st.booleans())
def test_no_random_text_fails_to_evaluate_or_takes_long(judge: Judge, script: str, tty: bool) -> None:
    obj: Any = job({"command": ["bash", "-c", script], "tty": tty})
    assert judge.policy(obj) in (None, "no-idle-gpu")
    assert _seconds(judge, obj, None) < ADDED_SECONDS or added_seconds(judge, obj) < ADDED_SECONDS


def added_seconds(judge: Judge, obj: Object) -> float:
    """What the policies add to a creation; the least of a few tries, since the machine has other things to do."""
    return min(_seconds(judge, obj, None) - _seconds(judge, obj, "kube-system") for _ in range(4))


def _seconds(judge: Judge, obj: Object, exempt: str | None) -> float:
    start = time.perf_counter()
    judge.refusal(obj, exempt or TENANT)
    return time.perf_counter() - start
