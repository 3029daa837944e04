"""What the admission policies say of an object, asked by dry run."""

import re
from dataclasses import dataclass

from berkelium_lab.api import ApiError, Object
from berkelium_lab.doctor.cluster import Cluster

# Kubernetes' own wording (staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go).
_DENIED = re.compile(
    r"ValidatingAdmissionPolicy '(?P<policy>[^']+)' with binding '[^']+' denied request: (?P<text>.*)", re.S
)
_WARNED = re.compile(r"Validation failed for ValidatingAdmissionPolicy '(?P<policy>[^']+)' with binding '[^']+': ")


@dataclass(frozen=True)
class Verdict:
    """The answer to one object.

    `denied_by` is the policy that refused it (only the first one is told), `warned_by` those that warned. `refusal` is
    the text of a refusal, by a policy or by anything else.
    """

    denied_by: str | None = None
    warned_by: frozenset[str] = frozenset()
    refusal: str = ""

    @property
    def judged(self) -> bool:
        """Whether the policies were asked at all: an object that is refused before never reaches them."""
        return self.denied_by is not None or not self.refusal or "exceeded quota" in self.refusal


def ask(cluster: Cluster, obj: Object) -> Verdict:
    """The verdict on an object that would be created. Raises `CannotLook` when that is not allowed."""
    warnings: list[str] = []
    try:
        cluster.probe(obj, warnings, strict=False)
    except ApiError as error:
        denied = _DENIED.search(error.message)
        if denied:
            return Verdict(denied["policy"], refusal=denied["text"])
        return Verdict(refusal=error.message)
    return Verdict(warned_by=frozenset(found["policy"] for text in warnings if (found := _WARNED.match(text))))
