"""Free TCP ports on the loopback address."""

import random
import socket
from collections.abc import Collection, Iterable

LOOPBACK = "127.0.0.1"

PORTS = range(20000, 32000)
"""Where ports are taken from: below the ephemeral ranges of Linux (32768) and macOS (49152), so that no outgoing
connection of another program sits on a lab's port when the lab is started again."""


def is_free(port: int) -> bool:
    """Whether nobody listens on `port` of the loopback address.

    Connections that linger after a listener's end do not count: the programs of a lab can bind in spite of them.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def pick(names: Iterable[str], taken: Collection[int] = ()) -> dict[str, int]:
    """A free port for each of `names`, none of them in `taken`; at random, so that two callers rarely meet."""
    chosen: dict[str, int] = {}
    candidates = iter(random.sample(PORTS, len(PORTS)))
    for name in names:
        try:
            chosen[name] = next(port for port in candidates if port not in taken and is_free(port))
        except StopIteration:
            raise OSError(f"no free port between {PORTS.start} and {PORTS.stop - 1} on {LOOPBACK}") from None
    return chosen
