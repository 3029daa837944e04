"""The post-renderer of NVIDIA's chart, on manifests in the styles that charts render: what it changes and refuses."""

import ast
import copy
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from berkelium_infra.postrender.nvidia_dra_driver import Unexpected, post_render
from tests.unit.postrender_manifests import (
    ACCOUNT,
    AMOUNTS,
    CLASSES,
    DAEMON_SET,
    DROP,
    INIT,
    LABEL,
    MANIFEST,
    SPLIT,
    indented,
)

SCRIPT = Path(__file__).resolve().parents[2] / "berkelium_infra" / "postrender" / "nvidia_dra_driver.py"


def run(manifest: bytes) -> subprocess.CompletedProcess[bytes]:
    """Runs the script without site-packages, since it may use the standard library only."""
    return subprocess.run([sys.executable, "-I", "-S", SCRIPT], input=manifest, capture_output=True, check=False)


def daemon_sets(manifest: str) -> list[dict[str, Any]]:
    return [doc for doc in yaml.safe_load_all(manifest) if doc and doc["kind"] == "DaemonSet"]


def pod(daemon_set: dict[str, Any]) -> dict[str, Any]:
    return daemon_set["spec"]["template"]["spec"]


def expected() -> list[dict[str, Any]]:
    """Both DaemonSets as the contract of the annotations has them, made from the input by PyYAML."""
    first = copy.deepcopy(daemon_sets(MANIFEST)[0])
    pod(first)["initContainers"][0]["resources"] = AMOUNTS
    second = copy.deepcopy(first)
    pod(first)["nodeSelector"] = {LABEL: "true"}
    pod(second)["nodeSelector"] = {LABEL: "false"}
    second["metadata"]["name"] += "-whole-gpu"
    component = {"nvidia-dra-driver-gpu-component": "kubelet-plugin-whole-gpu"}
    second["spec"]["selector"]["matchLabels"] = component
    second["spec"]["template"]["metadata"]["labels"] |= component
    for container in pod(second)["containers"]:
        container["env"][-1]["value"] = "DynamicMIG=false,TimeSlicingSettings=true,"
    return [first, second]


STYLES = pytest.mark.parametrize("manifest", [MANIFEST, indented(MANIFEST)], ids=["flush lists", "indented lists"])


def test_both_styles_of_the_input_mean_the_same_but_are_written_differently() -> None:
    assert list(yaml.safe_load_all(MANIFEST)) == list(yaml.safe_load_all(indented(MANIFEST)))
    assert indented(MANIFEST) != MANIFEST


@STYLES
def test_the_plugin_is_split_in_two_and_its_init_container_gets_resources(manifest: str) -> None:
    assert daemon_sets(post_render(manifest)) == expected()


def parts(manifest: str) -> list[str]:
    """The text of each document, with the separator before it."""
    return re.split(r"(?m)^(?=---$)", manifest)[1:]


@STYLES
def test_the_owned_classes_are_dropped_and_every_other_document_stays_byte_by_byte(manifest: str) -> None:
    account, _, _, vfio, _ = parts(manifest)
    assert parts(post_render(manifest))[:-2] == [account, vfio]


def test_the_selectors_of_both_daemonsets_do_not_overlap() -> None:
    first, second = daemon_sets(post_render(MANIFEST))
    for one, other in ((first, second), (second, first)):
        selector = one["spec"]["selector"]["matchLabels"].items()
        assert selector <= one["spec"]["template"]["metadata"]["labels"].items()
        assert not selector <= other["spec"]["template"]["metadata"]["labels"].items()


def test_without_split_one_daemonset_stays_as_it_is() -> None:
    manifest = MANIFEST.replace(f"{SPLIT}: {LABEL}", f'{SPLIT}: ""')
    (plugin,) = daemon_sets(post_render(manifest))
    assert "nodeSelector" not in pod(plugin)
    assert plugin["metadata"]["name"] == "nvidia-dra-driver-gpu-kubelet-plugin"


def test_with_empty_orders_the_manifest_passes_byte_by_byte() -> None:
    lines = [line for line in MANIFEST.splitlines(keepends=True) if SPLIT not in line and INIT not in line]
    manifest = "".join(lines).replace("gpu.nvidia.com,mig.nvidia.com", '""')
    assert post_render(manifest) == manifest


def test_a_node_selector_of_the_values_is_kept_in_both() -> None:
    manifest = MANIFEST + "      nodeSelector:\n        example.com/pool: gpu\n"
    assert [pod(plugin)["nodeSelector"] for plugin in daemon_sets(post_render(manifest))] == [
        {"example.com/pool": "gpu", LABEL: "true"},
        {"example.com/pool": "gpu", LABEL: "false"},
    ]


@pytest.mark.parametrize("last", ["      nodeSelector: {}\n", "      hostNetwork: false"])
def test_it_adds_a_node_selector_to_whatever_ends_the_pod(last: str) -> None:
    selectors = [pod(plugin)["nodeSelector"] for plugin in daemon_sets(post_render(MANIFEST + last))]
    assert selectors == [{LABEL: "true"}, {LABEL: "false"}]


def test_comments_and_empty_documents_between_the_others_are_passed_on() -> None:
    manifest = f"# Rendered by Helm\n---\n# Source: a/templates/empty.yaml\n\n{MANIFEST}"
    assert post_render(manifest).startswith("# Rendered by Helm\n---\n# Source: a/templates/empty.yaml\n\n---\n")


def without(text: str) -> str:
    assert text in MANIFEST
    return MANIFEST.replace(text, "")


FAILURES = {
    "no DaemonSet": ("".join((ACCOUNT, *CLASSES)), "expected one DaemonSet, named *-kubelet-plugin, found none"),
    "two DaemonSets": (MANIFEST + DAEMON_SET, "expected one DaemonSet"),
    "another DaemonSet": (
        MANIFEST.replace("name: nvidia-dra-driver-gpu-kubelet-plugin", "name: exporter"),
        "found DaemonSet exporter",
    ),
    "nothing": ("", "expected one DaemonSet"),
    "a class is missing": (
        without(CLASSES[1]),
        "DeviceClasses gpu.nvidia.com, mig.nvidia.com once, to drop it, found DeviceClass gpu.nvidia.com, "
        "DeviceClass vfio.gpu.nvidia.com",
    ),
    "a class is there twice": (CLASSES[0] + MANIFEST, "DeviceClasses gpu.nvidia.com, mig.nvidia.com once"),
    "no order to drop": (
        without(f"        {DROP}: gpu.nvidia.com,mig.nvidia.com\n"),
        f"expected the pod annotation {DROP}",
    ),
    "an unknown order": (
        MANIFEST.replace("postrender-split-by", "postrender-split"),
        "found berkelium.io/postrender-split",
    ),
    "no gates": (
        MANIFEST.replace("name: FEATURE_GATES", "name: GATES"),
        "expected a container gpus with FEATURE_GATES in DaemonSet nvidia-dra-driver-gpu-kubelet-plugin, found none",
    ),
    "gate off already": (
        MANIFEST.replace("DynamicMIG=true,", "DynamicMIG=false,"),
        "expected DynamicMIG=true once in FEATURE_GATES of container compute-domains, "
        "found 'DynamicMIG=false,TimeSlicingSettings=true,'",
    ),
    "gates twice": (
        MANIFEST.replace("- name: LOG_VERBOSITY", "- name: FEATURE_GATES"),
        "expected one item at spec.template.spec.containers.[name=gpus].env.[name=FEATURE_GATES], found 2",
    ),
    "no container gpus": (MANIFEST.replace("- name: gpus", "- name: gpu"), "found ['compute-domains', 'gpu']"),
    "two labels in the selector": (
        MANIFEST.replace(
            "      nvidia-dra-driver-gpu-component: kubelet-plugin\n  template", "      a: b\n      c: d\n  template"
        ),
        "expected one label in the selector",
    ),
    "pod label differs": (
        MANIFEST.replace(
            "        nvidia-dra-driver-gpu-component: kubelet-plugin", "        nvidia-dra-driver-gpu-component: p"
        ),
        "expected the pod label nvidia-dra-driver-gpu-component=kubelet-plugin",
    ),
    "label is in the node selector": (
        MANIFEST + f'      nodeSelector:\n        {LABEL}: "true"\n',
        f"expected {SPLIT} to name a label that no node selector of the values has, found '{LABEL}'",
    ),
    "no label to split by": (MANIFEST.replace(f"by: {LABEL}", "by: a b"), "found 'a b'"),
    "a NetworkPolicy": (
        MANIFEST + "---\nkind: NetworkPolicy\nmetadata:\n  name: nvidia-dra-driver-gpu-kubelet-plugin\n",
        "expected no NetworkPolicy nvidia-dra-driver-gpu-kubelet-plugin beside a split",
    ),
    "amounts are no JSON": (
        MANIFEST.replace('{"requests":{', "{requests:{"),
        f"expected {INIT} to state cpu and memory",
    ),
    "an amount is missing": (MANIFEST.replace('"cpu":"10m",', ""), f"expected {INIT} to state cpu and memory"),
    "an amount is no quantity": (MANIFEST.replace('"10m"', '"lots"'), f"expected {INIT} to state cpu and memory"),
    "an amount is a number": (MANIFEST.replace('"10m"', "1"), f"expected {INIT} to state cpu and memory"),
    "the init container states resources": (
        MANIFEST.replace("      - name: init-container\n", "      - name: init-container\n        resources: {}\n"),
        "expected one init container without resources",
    ),
    "two init containers": (
        MANIFEST.replace("      initContainers:\n", "      initContainers:\n      - name: first\n"),
        "expected one init container without resources",
    ),
    "flow style": (MANIFEST.replace("      affinity:\n", "      {affinity: {}}\n"), "found '{affinity: {}}'"),
    "a document in JSON": ('{"kind": "DeviceClass"}\n' + MANIFEST, """found '{"kind": "DeviceClass"}'"""),
    "a key is there twice": (CLASSES[2] + "kind: List\n" + MANIFEST, "found 'kind: List'"),
    "a document without kind": (
        "---\nmetadata:\n  name: x\n" + MANIFEST,
        "expected a string on one line at kind, found none",
    ),
    "a name on two lines": (
        MANIFEST.replace("name: gpu.nvidia.com\n", "name: >-\n    gpu.nvidia.com\n"),
        "expected a string on one line at metadata.name",
    ),
    "text behind a separator": ("--- {kind: List}\n" + MANIFEST, "expected nothing behind the separator of documents"),
}


@pytest.mark.parametrize(("manifest", "message"), FAILURES.values(), ids=FAILURES.keys())
def test_it_refuses_what_it_does_not_expect(manifest: str, message: str) -> None:
    with pytest.raises(Unexpected, match=re.escape(message)):
        post_render(manifest)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (ACCOUNT.encode(), "expected one DaemonSet, named *-kubelet-plugin, found none"),
        (MANIFEST.replace("kind: DaemonSet", "kind: |\n  DaemonSet").encode(), "expected a string on one line at kind"),
        (b"\xff" + MANIFEST.encode(), "can't decode byte 0xff"),
    ],
)
def test_a_refusal_is_one_line_and_no_manifest(manifest: bytes, message: str) -> None:
    done = run(manifest)
    assert (done.returncode, done.stdout) == (1, b"")
    assert message in done.stderr.decode()
    assert done.stderr.decode().count("\n") == 1


def test_the_script_needs_the_standard_library_only() -> None:
    done = run(MANIFEST.encode())
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, post_render(MANIFEST), b"")


def test_helm_can_execute_it_by_its_path() -> None:
    path = {"PATH": os.environ["PATH"]}
    done = subprocess.run([SCRIPT], input=MANIFEST.encode(), capture_output=True, check=False, env=path)
    assert (done.returncode, done.stdout.decode()) == (0, post_render(MANIFEST))


def test_its_grammar_is_that_of_python_3_9() -> None:
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 9))
