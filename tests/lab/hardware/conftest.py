"""A lab of its own for the simulated hardware, to which no program is applied."""

from collections.abc import Iterator

import pytest

from berkelium_lab.api import Api, connect
from berkelium_lab.wait import until
from tests.lab.hardware.hand_made import HARDWARE, SECONDS, choose
from tests.lab.labs import LabFactory, fresh_namespace


@pytest.fixture(scope="session")
def api(labs: LabFactory) -> Api:
    """A lab of its own, to which no program is applied."""
    return connect(labs.up("hardware").kubeconfig)


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    with fresh_namespace(api) as name:
        yield name
        for node in HARDWARE:
            choose(api, node, None)
        until(lambda: not api.list("resource.k8s.io/v1", "ResourceSlice"), "no slices any more", SECONDS)
