"""All examinations, one after the other."""

import importlib
import pkgutil

import urllib3
from urllib3.exceptions import HTTPError

import berkelium_lab.doctor
from berkelium_infra.errors import UserError
from berkelium_lab.api import Api, ApiError
from berkelium_lab.doctor.cluster import Cluster
from berkelium_lab.doctor.expectation import Expectation
from berkelium_lab.doctor.finding import Diagnosis, Finding, Severity
from berkelium_lab.doctor.registry import EXAMINATIONS, run

CONNECT_SECONDS, READ_SECONDS = 3.0, 4.0
"""Patience with the first answer: with the connection's three attempts, less than 15 seconds in all."""

_ORDER = list(Severity)


class Unreachable(UserError):
    """The cluster does not answer, or not to this identity; nothing could be examined."""


def diagnose(api: Api, expectation: Expectation) -> Diagnosis:
    """Examine the cluster. Raises `Unreachable` when it does not answer, also when it stops to in the middle."""
    try:
        api.request("GET", "/version", timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS))
        findings = examine(Cluster(api), expectation)
    except HTTPError as error:
        raise Unreachable(f"{api.server} does not answer: {_reason(error)}") from None
    except ApiError as error:
        raise Unreachable(f"{api.server} refuses to answer: {error}") from None
    return Diagnosis(server=api.server, compared_with=expectation.origin, findings=tuple(findings))


def examine(cluster: Cluster, expectation: Expectation) -> list[Finding]:
    """The findings of all examinations, errors first."""
    _load()
    findings = [finding for one in EXAMINATIONS for finding in run(one, cluster, expectation)]
    return sorted(findings, key=lambda finding: (_ORDER.index(finding.severity), finding.id, finding.subject))


def _load() -> None:
    """Import every module of the package, by which its examinations become known."""
    for module in pkgutil.iter_modules(berkelium_lab.doctor.__path__):
        importlib.import_module(f"{berkelium_lab.doctor.__name__}.{module.name}")


def _reason(error: HTTPError) -> str:
    cause = getattr(error, "reason", None) or error
    text = str(cause)
    return text.rpartition(">: ")[2] or text
