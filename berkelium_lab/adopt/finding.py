"""Which of the declared objects exist in a cluster, whether they can be taken over, and what that would change."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from pydantic import BaseModel

from berkelium_infra.settings.adoption import Adopt
from berkelium_lab.adopt.changes import Change, of_object, of_values
from berkelium_lab.adopt.declared import Declared
from berkelium_lab.adopt.helm_records import Release, releases
from berkelium_lab.adopt.neighbours import notes
from berkelium_lab.api import UNKNOWN_KIND, Api, ApiError, Object

Status = Literal["adopt", "recorded", "blocked"]

_HELM_NAME, _HELM_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"


class Found(BaseModel):
    """A declared object that exists.

    `status`: it is to be adopted, it is recorded in the stack's state already, or something is in the way (`reason`).
    `preview_fails` says why `pulumi preview` would fail here. `part` and `entry` say where it stands in the section
    `adopt`; `gives` is what a release hands to the stack.
    """

    subject: str
    part: str
    entry: str
    status: Status
    changes: list[Change] = []
    preview_fails: str = ""
    gives: list[str] = []
    reason: str = ""


class Adoption(BaseModel):
    """What was found: declared objects that exist, and notes on others that matter."""

    found: list[Found]
    notes: list[str]

    @property
    def blocked(self) -> list[Found]:
        """What exists and cannot be taken over as it is."""
        return [each for each in self.found if each.status == "blocked"]

    @property
    def section(self) -> dict[str, list[str]]:
        """The section `adopt` of the stack's file: exactly the objects that exist and are not recorded."""
        aliases = {name: str(field.alias) for name, field in Adopt.model_fields.items()}
        wanted = [each for each in self.found if each.status == "adopt"]
        parts = {alias: [each.entry for each in wanted if each.part == name] for name, alias in aliases.items()}
        return {part: entries for part, entries in parts.items() if entries}


def find(api: Api, declared: Sequence[Declared], recorded: Collection[tuple[str, str]] = ()) -> Adoption:
    """Look for the declared objects; only reads and dry runs.

    `recorded` are the `Identity.key`s in the stack's state. Raises `ApiError` when the cluster refuses to be read.
    """
    installed = releases(api)
    ours = {(each.identity.namespace, each.identity.name) for each in declared if each.is_release}
    found: list[Found] = []
    for each in declared:
        one = _release(each, installed, declared) if each.is_release else _object(api, each, ours)
        if one is not None:
            status = "recorded" if each.identity.key in recorded else one.status
            found.append(one.model_copy(update={"status": status}))
    return Adoption(found=found, notes=notes(api, declared, installed))


def _new(declared: Declared, **more: object) -> Found:
    part, entry = declared.identity.part, declared.identity.entry
    return Found.model_validate({"subject": declared.subject, "part": part, "entry": entry, "status": "adopt", **more})


def _object(api: Api, declared: Declared, ours: Collection[tuple[str | None, str]]) -> Found | None:
    live = _live(api, declared)
    if live is None:
        return None
    if reason := _obstacle(live, ours):
        return _new(declared, status="blocked", reason=reason)
    return _new(declared, changes=of_object(api, declared.inputs, live), preview_fails=_preview_fails(declared, live))


def _preview_fails(declared: Declared, live: Object) -> str:
    """Why a preview of the adoption fails though the `up` does not; empty when it does not."""
    if declared.kind != "ValidatingAdmissionPolicyBinding":
        return ""
    # Only the up moves the fields that kubectl wrote; in a preview the two sets of actions are united.
    both = {*live["spec"].get("validationActions", ()), *declared.inputs["spec"]["validationActions"]}
    if not {"Deny", "Warn"} <= both:
        return ""
    return "a preview fails here (must not contain both Deny and Warn), the up does not: give it --skip-preview"


def _live(api: Api, declared: Declared) -> Object | None:
    identity = declared.identity
    try:
        return api.get(declared.api_version, declared.kind, identity.name, identity.namespace)
    except ApiError as error:
        if error.reason == UNKNOWN_KIND:
            return None
        raise


def _obstacle(live: Object, ours: Collection[tuple[str | None, str]]) -> str:
    metadata = live["metadata"]
    if "deletionTimestamp" in metadata:
        return "It is being deleted. Wait until it is gone; it is then created anew."
    annotations = metadata.get("annotations") or {}
    owner = (annotations.get(_HELM_NAMESPACE), annotations.get(_HELM_NAME))
    if annotations.get(_HELM_NAME) and owner not in ours:
        kind, name = live["kind"].lower(), metadata["name"]
        return (
            f"It belongs to the Helm release {owner[0]}/{owner[1]}, which this stack does not take over and whose next "
            f"upgrade would change it back. Let that release keep it (`kubectl annotate {kind} {name} "
            "helm.sh/resource-policy=keep`), take it out of that chart, and remove its annotations meta.helm.sh/*."
        )
    return ""


def _release(
    declared: Declared, installed: dict[tuple[str, str], Release], everything: Iterable[Declared]
) -> Found | None:
    identity = declared.identity
    live = installed.get((str(identity.namespace), identity.name))
    if live is None:
        return None
    if live.status not in ("deployed", "failed"):
        return _new(
            declared,
            status="blocked",
            reason=f"Helm says {live.status}: its revision {live.revision} was never finished, and Helm does not go on "
            f"from there. `helm rollback {live.name} -n {live.namespace}` brings back the one before.",
        )
    return _new(declared, changes=_release_changes(declared, live), gives=_given_up(live, everything))


def _release_changes(declared: Declared, live: Release) -> list[Change]:
    chart = str(declared.inputs["chart"]).rstrip("/").rpartition("/")[2]
    version = str(declared.inputs.get("version") or live.version)
    pairs = (("chart", live.chart, chart), ("version", live.version, version))
    named = [Change(path=path, old=old, new=new) for path, old, new in pairs if old != new]
    return [*named, *of_values(live.values, declared.inputs.get("values") or {})]


def _given_up(live: Release, everything: Iterable[Declared]) -> list[str]:
    """What the release has installed and the stack declares by itself."""
    return [each.subject for each in everything if (each.kind, each.identity.name) in live.objects]
