"""However large or odd an object is, the policies decide and never fail to evaluate."""

import pytest

from tests.lab.policies.conftest import Judge
from tests.lab.policies.world import container, job, pod_spec, workload

LINE = 'echo "a; b" && python x.py --a "$(date)" | tee log\n'
ODD_COMMANDS = {
    "700 KB": LINE * 14_000,
    "nothing but quotes": "'" * 8_000 + " sleep 99999",
    "many quoted strings": '"a;b" ' * 1_400 + " sleep 99999",
    "nothing but brackets": "(" * 8_000 + "sleep 99999",
    "background": "sleep 1& " * 900 + "sleep 99999",
    "separators": ";" * 8_000 + "sleep 99999",
    "loops without end": "while true; do " * 500 + "sleep 99999",
    "open here-documents": "cat <<EOF\nx\n" * 600 + "sleep 99999",
    "lines": "echo\n" * 1_600 + "sleep 99999",
    "operands": "sleep " + "1 " * 4_000,
    "operands that overflow": "sleep 1e99 1e99 " + "9" * 400,
    "odd operands": "sleep 1.2.3 . 1. .1 1e 1ee1 0x10 -5 ${X:-} ${X1:-1h} ${:-1}",
    "assignments": "A=b " * 2_000 + "sleep 99999",
    "wrappers": "exec " * 1_600 + "sleep 99999",
    "functions": "f() { x; }\n" * 700 + "sleep 99999 &",
    "scripts in scripts": 'bash -c "x; y"\n' * 570 + "sleep 99999 &",
    "groups in the background": "(e; while true; do :; done)&\n" * 270 + "x",
    "other alphabets": 'echo "é😀"; ' * 700 + "sleep infinity",
    "an empty script": "",
    "line breaks": "\n\n\n",
    "a lone redirection": "<<EOF",
    "a here-document without a body": "cat <<EOF\nEOF\nsleep 9999 &",
    "a here-document of one line": "python - <<EOF\nEOF",
}
ODD_ARGUMENTS = {
    "5,000": ["python", "x.py", *["--a", "sleep 3600; x"] * 2_500],
    "options that want a script": ["bash", *["-c"] * 5_000],
    "an empty word": [""],
    "a missing script": ["bash", "-c"],
    "dashes": ["--", "--", "-c", "--"],
    "its own arguments": ["sh", "-c", 'exec "$0" "$@"'],
}


@pytest.mark.parametrize("script", ODD_COMMANDS.values(), ids=ODD_COMMANDS)
def test_no_script_is_too_odd_to_evaluate(judge: Judge, script: str) -> None:
    assert judge.policy(job(script)) in (None, "no-idle-gpu")


@pytest.mark.parametrize("command", ODD_ARGUMENTS.values(), ids=ODD_ARGUMENTS)
def test_no_arguments_are_too_odd_to_evaluate(judge: Judge, command: list[str]) -> None:
    assert judge.policy(job(command)) in (None, "no-idle-gpu")


@pytest.mark.parametrize("count", [64, 100, 1_000])
def test_no_pod_has_too_many_holders_to_evaluate(judge: Judge, count: int) -> None:
    holders = [container(f"c{n}", gpu=True, command=["sleep", "infinity"]) for n in range(count)]
    assert judge.policy(workload("Job", pod_spec(*holders))) == "no-idle-gpu"


def test_no_pod_has_too_many_containers_and_claims_to_evaluate(judge: Judge) -> None:
    claims = [{"name": f"claim-{n}", "resourceClaimTemplateName": "gpu"} for n in range(500)]
    many = [container(f"c{n}", command=["sleep", "infinity"]) for n in range(200)]
    inits = [container(f"i{n}", gpu=True, command=["nvidia-smi"]) for n in range(200)]
    spec = pod_spec(*many, initContainers=inits, resourceClaims=claims)
    assert judge.policy(workload("Job", spec)) == "no-idle-gpu"


def test_what_idles_at_the_end_of_a_long_script_is_seen(judge: Judge) -> None:
    assert judge.policy(job(LINE * 14_000 + "sleep infinity")) == "no-idle-gpu"


@pytest.mark.parametrize(
    "resources",
    [
        None,
        {},
        {"limits": {}},
        {"requests": {}},
        {"limits": {"cpu": "1"}, "requests": {}},
        {"requests": {"cpu": "100m"}},
        {"limits": {"nvidia.com/gpu": "1"}},
        {"limits": {"cpu": 1, "memory": 1000}},
        {"limits": {"ephemeral-storage": "1Gi"}},
        {"claims": [{"name": "gpu"}]},
    ],
    ids=repr,
)
def test_half_filled_and_absent_maps_are_a_refusal_with_a_message(judge: Judge, resources: dict | None) -> None:
    incomplete = container(resources=resources or {})
    if resources is None:
        del incomplete["resources"]
    spec = pod_spec(incomplete, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])
    text = judge.text(workload("Deployment", spec))
    assert "container main lacks" in text
