"""CRDs that were accepted and are not served: told from those in the middle of it, and changed to be taken up again."""

from typing import Any, cast

import pytest

from berkelium_lab.api import Api
from berkelium_lab.recovery import definitions

ACCEPTED = {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"}


class Server:
    """An API server with one definition, which it establishes when it sees it change, or `by_itself`."""

    def __init__(self, by_itself: bool) -> None:
        self.by_itself = by_itself
        self.asked = 0
        self.patches: list[Any] = []
        self.established = False

    def _definition(self) -> dict[str, Any]:
        reason = "InitialNamesAccepted" if self.established else "Installing"
        condition = {"type": "Established", "status": str(self.established), "reason": reason}
        return {"metadata": {"name": "things"}, "status": {"conditions": [ACCEPTED, condition]}}

    def list(self, *_: str) -> list[dict[str, Any]]:
        self.asked += 1
        self.established |= self.by_itself and self.asked > 1
        return [self._definition()]

    def get(self, *_: str) -> dict[str, Any]:
        return self._definition()

    def patch(self, *_: str, **__: str) -> None:
        self.patches.append(_[3])
        self.established = True


@pytest.fixture(autouse=True)
def _no_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "_BY_ITSELF_SECONDS", 1)


def test_one_that_is_just_being_established_is_left_alone() -> None:
    assert definitions.unserved(cast(Api, Server(by_itself=True))) == []


def test_one_that_stays_as_it_is_gets_a_new_time_in_its_condition_and_nothing_else() -> None:
    server = Server(by_itself=False)
    assert definitions.unserved(cast(Api, server)) == ["things"]
    definitions.establish(cast(Api, server), ["things"])
    (patch,) = server.patches
    accepted, established = patch["status"]["conditions"]
    assert accepted == ACCEPTED
    assert established.pop("lastTransitionTime").endswith("Z")
    assert established == {"type": "Established", "status": "False", "reason": "Installing"}
