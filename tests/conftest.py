"""Shared by all tests."""

import signal

import pytest

# A run in the background of a script ignores SIGINT, one under nohup SIGHUP, and so would the programs whose
# interruption is tested.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture(autouse=True)
def _no_kubeconfig_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test can reach the cluster of whoever runs the tests."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
