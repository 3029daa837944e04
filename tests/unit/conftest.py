"""What the whole program registers, run once for all tests that only look at it."""

import pytest

from tests.unit import program
from tests.unit.program import STACKS, Registered


@pytest.fixture(scope="session", params=STACKS)
def stack(request: pytest.FixtureRequest) -> Registered:
    """Everything that one stack registers, as its files say."""
    return program.run(request.param)


@pytest.fixture(scope="session")
def prod() -> Registered:
    """Everything that the stack prod registers."""
    return program.run("prod")
