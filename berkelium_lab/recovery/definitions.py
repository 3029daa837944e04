"""CRDs whose establishment was cut off: the API server accepted their names, and died before it served them.

It does not take that up again by itself: it establishes a definition when it sees it change, and after a restart all it
sees is that the definition is there (Kubernetes 1.37, `customresource_handler.go`). Any change of it will do.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from berkelium_lab import wait
from berkelium_lab.api import Api, Object

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_ESTABLISHED = "Established"
_BY_ITSELF_SECONDS = 10
"""How long one that is in the middle of it may need."""
_SECONDS = 60


def unserved(api: Api) -> list[str]:
    """The definitions that were accepted and are not served, after some time in which that may change by itself."""

    def names() -> list[str]:
        return [crd["metadata"]["name"] for crd in api.list(*CRD) if cut_off(crd)]

    return wait.remaining(names, _BY_ITSELF_SECONDS, interval=0.5)


def cut_off(crd: Object) -> bool:
    """Whether its names were accepted and it is not served; so it is for a moment in every definition's life."""
    return _established(crd).get("reason") == "Installing"


def establish(api: Api, names: Iterable[str]) -> None:
    """Have the API server take up these definitions again. Raises `TimeoutError` when one is still not served."""
    for name in names:
        if (crd := api.get(*CRD, name)) is None:
            continue
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        conditions = [
            {**each, "lastTransitionTime": now} if each["type"] == _ESTABLISHED else each
            for each in crd["status"]["conditions"]
        ]
        api.patch(*CRD, name, {"status": {"conditions": conditions}}, subresource="status")
        wait.until(lambda name=name: _is_served(api.get(*CRD, name)), f"{name} is served", _SECONDS)


def _is_served(crd: Object | None) -> bool:
    return crd is None or _established(crd).get("status") == "True"


def _established(crd: Object) -> Object:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == _ESTABLISHED), {})
