"""What is wrong with a cluster: a read-only examination against what the stack declares.

Each examination is one function in one of the modules here; `registry` says how a function becomes one.
"""

from berkelium_lab.doctor.diagnosing import Unreachable, diagnose
from berkelium_lab.doctor.expectation import Expectation, ExpectationError, from_defaults, from_stack
from berkelium_lab.doctor.finding import COULD_NOT_LOOK, Diagnosis, Finding, Severity

__all__ = [
    "COULD_NOT_LOOK",
    "Diagnosis",
    "Expectation",
    "ExpectationError",
    "Finding",
    "Severity",
    "Unreachable",
    "diagnose",
    "from_defaults",
    "from_stack",
]
