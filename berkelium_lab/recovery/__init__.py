"""After an interruption: bring a stack's state and its cluster together again.

`reconcile` works on any stack of the Automation API, a lab's or the user's own. It runs in the engine's process, so
this package imports nothing of the program.
"""

from berkelium_lab.recovery.errors import NotRecoverable
from berkelium_lab.recovery.steps import ACCEPT, reconcile

__all__ = ["ACCEPT", "NotRecoverable", "reconcile"]
