"""Claims whose devices pods hold at this moment."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berkelium_infra.live import Live

OVERRIDE = "BERKELIUM_DESTROY_HELD_CLAIMS"
"""Environment variable by which a deletion goes on although pods hold devices."""

_SHOWN = 10

_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


@dataclass(frozen=True)
class HeldClaim:
    """A claim with the pods that reserve it and the devices that it was given, as `driver/pool/device`."""

    namespace: str
    name: str
    pods: tuple[str, ...]
    devices: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} (pod {', '.join(self.pods)}; {', '.join(self.devices)})"


def held_claims(live: Live, drivers: Collection[str]) -> list[HeldClaim]:
    """The claims with devices of these drivers that are reserved for a pod, by namespace and name."""
    held = [held for claim in live.items(_CLAIMS) if (held := _held(claim, drivers))]
    return sorted(held, key=lambda claim: (claim.namespace, claim.name))


def _held(claim: Mapping[str, Any], drivers: Collection[str]) -> HeldClaim | None:
    status = claim.get("status") or {}
    pods = tuple(user["name"] for user in status.get("reservedFor") or () if user.get("resource") == "pods")
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    devices = tuple(f"{given['driver']}/{given['pool']}/{given['device']}" for given in results)
    if not pods or not any(given["driver"] in drivers for given in results):
        return None
    return HeldClaim(claim["metadata"]["namespace"], claim["metadata"]["name"], pods, devices)


def refusal(held: Sequence[HeldClaim]) -> str:
    """Why nothing was deleted, and what to do."""
    return (
        f"{listed(held)}; nothing was deleted. Let the pods end or delete them, or set {OVERRIDE}=1 to go on without "
        "regard to them."
    )


def listed(held: Sequence[HeldClaim]) -> str:
    """The claims in one phrase, each with its pods and devices."""
    shown = [str(claim) for claim in held[:_SHOWN]]
    if len(held) > _SHOWN:
        shown.append(f"and {len(held) - _SHOWN} more")
    return f"{'1 claim is' if len(held) == 1 else f'{len(held)} claims are'} still held: {'; '.join(shown)}"
