"""Shared by all tests."""

import pytest


@pytest.fixture(autouse=True)
def _no_kubeconfig_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test can reach the cluster of whoever runs the tests."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
