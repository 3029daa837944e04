"""Helm's records of revisions: Secrets of a release's namespace, one per revision, with its status as a label."""

from collections.abc import Iterable

from berkelium_lab.api import Api, Object

_PENDING = "owner=helm,status in (pending-install,pending-upgrade,pending-rollback)"


def pending(api: Api, releases: Iterable[tuple[str, str]]) -> list[Object]:
    """The records of revisions of these releases (namespace, name) that were begun and never finished.

    Helm refuses every further operation on a release while there is one.
    """
    return [
        record
        for namespace, name in sorted(releases)
        for record in api.list("v1", "Secret", namespace, label_selector=f"{_PENDING},name={name}")
    ]


def forget(api: Api, record: Object) -> None:
    """Delete the record. The objects of the revision stay; the next installation or upgrade takes them over."""
    api.delete("v1", "Secret", record["metadata"]["name"], record["metadata"]["namespace"])


def has_revisions(api: Api, namespace: str, name: str) -> bool:
    """Whether Helm knows the release."""
    return bool(api.list("v1", "Secret", namespace, label_selector=f"owner=helm,name={name}"))


def described(record: Object) -> str:
    """The record for a person: release, revision and status."""
    labels = record["metadata"]["labels"]
    return f"{record['metadata']['namespace']}/{labels['name']} revision {labels['version']} ({labels['status']})"
