"""Shared by all tests."""

import signal

import pytest

# A run in the background of a script ignores SIGINT, and so would the programs whose interruption is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_kubeconfig_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test can reach the cluster of whoever runs the tests."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
