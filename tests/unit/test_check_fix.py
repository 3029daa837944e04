"""`berkelium check --fix`: what is mended, and that nothing else is touched."""

import json

from berkelium_lab.check.fix import MARK, mend


def test_requests_are_taken_from_limits_in_a_template() -> None:
    text = """\
# the web server
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}   # kept
spec:
  template:
    spec:
      containers:
      - name: main
        image: 'quoted'
        resources:
          limits:
            cpu: "2"
            memory: 1Gi   # enough
            nvidia.com/gpu: 1
"""
    mended = mend(text, "f")
    added = '          requests:\n            cpu: "2"\n            memory: 1Gi\n'
    assert mended.text == text.replace("          limits:\n", added + "          limits:\n")
    assert mended.changes == ["f:1: Deployment web: container main requests the cpu and memory of its limits"]
    assert mended.left == []


def test_a_bare_pod_is_left_alone_since_the_server_fills_in_its_requests() -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: main, image: x, resources: {limits: {cpu: 1, memory: 1Gi}}}
"""
    assert mend(text, "f").text == text


def test_amounts_are_never_invented_but_marked_once() -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata:
    name:   odd
spec:
    containers:
      -   name: main
          resources: {limits: {cpu: 1}}
"""
    mended = mend(text, "f")
    assert mended.text == text.replace("name: main\n", f"name: main # {MARK} requests.memory, limits.memory\n")
    assert mended.changes == []
    assert mended.left == ["f:1: Pod odd: container main lacks requests.memory, limits.memory: yours to state"]
    assert mend(mended.text, "f").text == mended.text


def test_fields_beside_a_request_go_under_exactly_with_their_comments() -> None:
    text = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata:
  name: t
spec:
  spec:
    devices:
      requests:
        - name: gpu
          deviceClassName: nvidia-h100 # fast
          count: 2
"""
    assert (
        mend(text, "f").text
        == """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: t
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly:
            deviceClassName: nvidia-h100 # fast
            count: 2
"""
    )


def test_the_source_of_a_claim_is_flattened() -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims:
  - name: gpu
    source:
      resourceClaimTemplateName: t
  containers:
  - {name: main, resources: {limits: {cpu: 1, memory: 1Gi}, claims: [{name: gpu}]}}
"""
    old = "    source:\n      resourceClaimTemplateName: t\n"
    assert mend(text, "f").text == text.replace(old, "    resourceClaimTemplateName: t\n")


def test_a_resource_class_name_becomes_a_request() -> None:
    text = """\
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata:
  name: c
spec:
  resourceClassName: gpu.nvidia.com
  allocationMode: WaitForFirstConsumer
"""
    assert (
        mend(text, "f").text
        == """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: c
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
"""
    )


def test_documents_without_a_fault_stay_byte_for_byte() -> None:
    odd = "# first\napiVersion:   v1\nkind: ConfigMap   # odd\nmetadata:\n      name: 'x'\n"
    old = "\napiVersion: resource.k8s.io/v1beta2\nkind: ResourceClaim\nmetadata: {name: c}\n"
    mended = mend(f"{odd}---{old}---\nnot: [yaml\n", "f")
    assert mended.text == f"{odd}---{old.replace('v1beta2', 'v1')}---\nnot: [yaml\n"
    assert len(mended.left) == 1


def test_the_objects_of_a_list_are_mended() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: resource.k8s.io/v1beta2\n  kind: ResourceClaim\n"
    assert "resource.k8s.io/v1\n" in mend(text, "f").text


def test_json_stays_json() -> None:
    claim = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    assert json.loads(mend(json.dumps(claim), "f").text) == {**claim, "apiVersion": "resource.k8s.io/v1"}
