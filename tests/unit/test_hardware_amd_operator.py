"""What the emulated AMD GPU operator makes of a DeviceConfig."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from berkelium_lab.api import Api
from berkelium_lab.hardware import amd_operator
from berkelium_lab.hardware.amd_operator_controller import AmdOperatorController
from berkelium_lab.hardware.cluster import Cluster, Node
from berkelium_lab.hardware.pods import Container, Pod, Role

SELECTOR = {"feature.node.kubernetes.io/amd-gpu": "true"}
OPERATOR = Pod(
    Role.AMD_OPERATOR, "manager", "kube-amd-gpu", "operator-1", "control-plane-1", "Running", False, "1", "manager", (),
    (Container("manager", "docker.io/rocm/gpu-operator:v1.5.1", (), (), {}),), (),
)  # fmt: skip


def config(**blocks: Any) -> dict[str, Any]:
    """A DeviceConfig with the DRA driver on and all else off, changed by `blocks`."""
    spec = {
        "selector": SELECTOR,
        "driver": {"enable": False},
        "devicePlugin": {"enableDevicePlugin": False, "enableNodeLabeller": False},
        "draDriver": {"enable": True, "image": "docker.io/rocm/k8s-gpu-dra-driver:v1.0.1"},
        "metricsExporter": {"enable": False},
    }
    return {
        "apiVersion": "amd.com/v1alpha1",
        "kind": "DeviceConfig",
        "metadata": {"name": "berkelium", "namespace": "kube-amd-gpu", "uid": "config-1", "generation": 1},
        "spec": {**spec, **blocks},
    }


def names(made: list[dict[str, Any]]) -> list[str]:
    return [daemon_set["metadata"]["name"] for daemon_set in made]


def test_the_dra_driver_becomes_a_daemon_set_as_the_operator_makes_it() -> None:
    (made,) = amd_operator.daemon_sets(config())
    assert made["metadata"]["name"] == "berkelium-dra-driver"
    assert made["metadata"]["namespace"] == "kube-amd-gpu"
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("DeviceConfig", "config-1", True)
    assert made["spec"]["selector"]["matchLabels"] == {"daemonset-name": "berkelium-dra-driver"}
    pod = made["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "amd-gpu-operator-dra-driver"
    assert pod["priorityClassName"] == "system-node-critical"
    assert pod["nodeSelector"] == SELECTOR
    assert "tolerations" not in pod
    (init,) = pod["initContainers"]
    assert (init["name"], init["image"]) == ("driver-init", "busybox:1.36")
    (plugin,) = pod["containers"]
    assert (plugin["name"], plugin["command"]) == ("plugin", ["gpu-kubeletplugin"])
    assert plugin["image"] == "docker.io/rocm/k8s-gpu-dra-driver:v1.0.1"
    assert "resources" not in plugin
    assert {"name": "CDI_ROOT", "value": "/var/run/cdi"} in plugin["env"]


def test_without_an_image_the_operator_takes_latest() -> None:
    (made,) = amd_operator.daemon_sets(config(draDriver={"enable": True}))
    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "rocm/k8s-gpu-dra-driver:latest"


def test_the_fields_of_the_dra_block_reach_the_daemon_set() -> None:
    toleration = {"key": "amd.com/gpu", "operator": "Exists"}
    block = {
        "enable": True,
        "selector": {"only": "here"},
        "tolerations": [toleration],
        "cmdLineArguments": {"v": "4", "a": "b"},
        "imageRegistrySecret": {"name": "pull"},
        "imagePullPolicy": "IfNotPresent",
        "upgradePolicy": {"upgradeStrategy": "RollingUpdate", "maxUnavailable": 3},
    }
    (made,) = amd_operator.daemon_sets(config(draDriver=block, commonConfig={"initContainerImage": "mirror/busybox:1"}))
    pod = made["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"only": "here"}
    assert pod["tolerations"] == [toleration]
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["containers"][0]["args"] == ["-a=b", "-v=4"]
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert pod["initContainers"][0]["image"] == "mirror/busybox:1"
    assert made["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 3}}


def test_a_driver_installed_by_the_operator_is_waited_for_by_node_label() -> None:
    (made,) = amd_operator.daemon_sets(config(driver={"enable": True}))
    selector = made["spec"]["template"]["spec"]["nodeSelector"]
    assert selector == {**SELECTOR, "kmm.node.kubernetes.io/kube-amd-gpu.berkelium.ready": ""}


def test_labeller_and_exporter_come_when_they_are_enabled() -> None:
    blocks = {
        "devicePlugin": {"enableDevicePlugin": False, "enableNodeLabeller": True},
        "metricsExporter": {"enable": True},
    }
    assert names(amd_operator.daemon_sets(config(**blocks))) == [
        "berkelium-dra-driver", "berkelium-node-labeller", "berkelium-metrics-exporter",
    ]  # fmt: skip


def test_device_plugin_and_dra_driver_exclude_each_other() -> None:
    assert amd_operator.faults(config(devicePlugin={"enableDevicePlugin": True})) == [
        "DRADriver and DevicePlugin cannot be enabled at the same time"
    ]
    assert amd_operator.faults(config()) == []


class Server:
    """Remembers what the operator writes."""

    def __init__(self) -> None:
        self.log: list[tuple[str, Any]] = []

    def apply(self, obj: dict[str, Any], manager: str) -> None:
        assert manager
        self.log.append(("applied", obj["metadata"]["name"]))

    def delete(self, _api_version: str, kind: str, name: str, _namespace: str) -> None:
        assert kind == "DaemonSet"
        self.log.append(("deleted", name))

    def patch(self, *args: Any, subresource: str | None = None) -> None:
        self.log.append((subresource or "patched", args[3]))

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition, as last written."""
        status = [what for did, what in self.log if did == "status"][-1]["status"]
        return {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]}

    def did(self, verb: str) -> list[Any]:
        return [what for did, what in self.log if did == verb]


class Stage:
    """An operator in a cluster of one DeviceConfig."""

    def __init__(self, device_config: dict[str, Any], labels: dict[str, str], operators: list[Pod]) -> None:
        self.server = Server()
        self.config = device_config
        self.labels = labels
        self.operators = operators
        cluster = SimpleNamespace(
            running=lambda role: self.operators if role is Role.AMD_OPERATOR else [],
            device_configs=SimpleNamespace(items=lambda: [self.config]),
            nodes=SimpleNamespace(items=lambda: [Node("mi100-1", "uid", self.labels)]),
        )
        self.operator = AmdOperatorController(cast(Cluster, cluster), cast(Api, self.server))

    def run(self) -> Server:
        self.operator.reconcile()
        return self.server


def test_a_valid_device_config_gets_its_finalizer_its_daemon_set_and_is_ready() -> None:
    server = Stage(config(), SELECTOR, [OPERATOR]).run()
    assert server.did("applied") == ["berkelium-dra-driver"]
    assert server.did("patched") == [{"metadata": {"finalizers": [amd_operator.FINALIZER]}}]
    assert server.conditions() == {"Ready": ("True", "OperatorReady")}


def test_what_is_not_enabled_is_deleted() -> None:
    server = Stage(config(), SELECTOR, [OPERATOR]).run()
    assert server.did("deleted") == ["berkelium-metrics-exporter", "berkelium-node-labeller"]


def test_without_a_running_operator_nothing_happens() -> None:
    stage = Stage(config(), SELECTOR, [])
    assert stage.run().log == []
    stage.operators = [OPERATOR]
    assert stage.run().did("applied") == ["berkelium-dra-driver"]


def test_an_invalid_device_config_deploys_nothing_and_says_why() -> None:
    server = Stage(config(devicePlugin={"enableDevicePlugin": True}), SELECTOR, [OPERATOR]).run()
    assert server.did("applied") == []
    assert server.did("patched") == []
    assert server.conditions() == {"Error": ("True", "ValidationError"), "Ready": ("False", "OperatorReady")}


def test_a_selector_that_matches_no_node_deploys_nothing_until_one_does() -> None:
    stage = Stage(config(), {}, [OPERATOR])
    server = stage.run()
    assert server.did("applied") == []
    assert server.conditions() == {"Error": ("True", "NoMatchingNodes"), "Ready": ("False", "OperatorReady")}
    stage.labels = SELECTOR
    stage.run()
    assert server.did("applied") == ["berkelium-dra-driver"]
    assert server.conditions() == {"Ready": ("True", "OperatorReady")}


def test_the_same_state_is_handled_once_and_a_new_generation_again() -> None:
    stage = Stage(config(), SELECTOR, [OPERATOR])
    stage.run()
    assert stage.run().did("applied") == ["berkelium-dra-driver"]
    stage.config["metadata"]["generation"] = 2
    assert stage.run().did("applied") == ["berkelium-dra-driver"] * 2


def test_a_new_operator_pod_handles_everything_again() -> None:
    stage = Stage(config(), SELECTOR, [OPERATOR])
    stage.run()
    stage.operators = [replace(OPERATOR, uid="operator-2")]
    assert stage.run().did("applied") == ["berkelium-dra-driver"] * 2


def test_a_deleted_device_config_is_finalized_and_others_finalizers_stay() -> None:
    deleted = config()
    deleted["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": [amd_operator.FINALIZER, "foregroundDeletion"],
    }
    server = Stage(deleted, SELECTOR, [OPERATOR]).run()
    assert "berkelium-dra-driver" in server.did("deleted")
    assert server.did("patched") == [{"metadata": {"finalizers": ["foregroundDeletion"]}}]
    assert server.did("applied") == []
