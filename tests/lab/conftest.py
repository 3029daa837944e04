"""Labs for the tests: started when a test first asks, taken down at the end whatever happens.

The built programs come from the user's cache (or `$BERKELIUM_TOOLS`); the labs have names of their own there.
"""

from collections.abc import Iterator

import psutil
import pytest

from berkelium_lab.api import Api, connect
from berkelium_lab.lab import Lab
from berkelium_lab.lab import labs as all_labs
from tests.lab.labs import PREFIX, LabFactory, fresh_namespace

SHARED = ("main", "policies", "hardware")
"""Labs that several modules use."""

_LONGEST_FIRST = (
    "test_upgrades",
    "test_review",
    "test_recovery",
    "test_adopt",
    "test_operations_guide",
    "test_teardown",
    "test_deploy",
    "test_drift",
    "test_policies_samples",
    "test_policies_mutants",
    "test_check_places",
    "test_projects",
)
"""Modules that take minutes; begun last, each would be waited for alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the modules that take longest, since workers are given whole modules."""
    items.sort(key=lambda item: _LONGEST_FIRST.index(item.path.stem) if item.path.stem in _LONGEST_FIRST else 99)


@pytest.fixture(scope="session")
def labs() -> Iterator[LabFactory]:
    """Labs by name, taken down at the end of the run."""
    _remove_labs_of_killed_runs()
    factory = LabFactory()
    try:
        yield factory
    finally:
        factory.close()


@pytest.fixture(scope="module", autouse=True)
def _labs_of_a_module_end_with_it(labs: LabFactory) -> Iterator[None]:
    """Only what several modules use goes on running; a dozen idle control planes would slow down the rest."""
    yield
    labs.close(keep=SHARED)


@pytest.fixture(scope="session")
def lab(labs: LabFactory) -> Lab:
    """The run's main lab, with the Berkelium fleet; nothing may break it."""
    return labs.up("main")


@pytest.fixture(scope="session")
def api(lab: Lab) -> Api:
    """The API of the main lab, whether or not the program has been applied to it."""
    return connect(lab.kubeconfig)


@pytest.fixture(scope="session")
def deployed(labs: LabFactory) -> Api:
    """The API of the main lab with the program applied."""
    return labs.deployed("main")


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """A namespace of the main lab for one test."""
    with fresh_namespace(api) as name:
        yield name


def _remove_labs_of_killed_runs() -> None:
    for name in all_labs():
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and owner.isdigit() and not psutil.pid_exists(int(owner)):
            Lab(name).down()
