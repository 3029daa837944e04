"""Feature gates and versions of the NVIDIA driver: what it accepts, and with what it ends at start."""

import pytest

from berkelium_lab.hardware.nvidia_dialects import GateError, dialect, feature_gates


@pytest.mark.parametrize("other", ["MPSSupport", "PassthroughSupport", "NVMLDeviceHealthCheck"])
def test_dynamic_mig_excludes_other_gates(other: str) -> None:
    with pytest.raises(GateError, match=f"DynamicMIG is currently mutually exclusive with {other}"):
        feature_gates(f"DynamicMIG=true,{other}=true,", dialect("v25.12.0"))


@pytest.mark.parametrize(
    ("text", "tag", "message"),
    [
        ("Nonsense=true", "v25.12.0", "unrecognized feature gate: Nonsense"),
        ("DynamicMIG", "v25.12.0", "missing bool value for DynamicMIG"),
        ("DynamicMIG=yes", "v25.12.0", "invalid value of DynamicMIG=yes"),
        ("IMEXDaemonsWithDNSNames=false", "v25.12.0", "ComputeDomainCliques requires IMEXDaemonsWithDNSNames"),
        ("DeviceMetadata=true,PassthroughSupport=true", "v25.12.0", "unrecognized feature gate: DeviceMetadata"),
        ("DeviceMetadata=true", "v0.4.1", "DeviceMetadata requires PassthroughSupport"),
        ("PassthroughSupport=true,NVMLDeviceHealthCheck=true", "v0.4.1", "PassthroughSupport is currently mutually"),
    ],
)
def test_gates_with_which_the_driver_ends_at_start(text: str, tag: str, message: str) -> None:
    with pytest.raises(GateError, match=message):
        feature_gates(text, dialect(tag))


def test_gates_as_the_chart_writes_them_are_read() -> None:
    gates = feature_gates("DynamicMIG=true,TimeSlicingSettings=false,", dialect("v25.12.0"))
    assert gates["DynamicMIG"]
    assert not gates["TimeSlicingSettings"]
    assert gates["ComputeDomainCliques"]


def test_an_unknown_version_speaks_like_the_nearest_known_one() -> None:
    assert dialect("v25.8.1").version == "25.12.0"
    assert dialect("v0.9.0").version == "0.4.1"
    assert dialect("v0.4.0@sha256:0123").version == "0.4.0"
