"""Instructions that are issued and counted, and change nothing on machines like these.

Memory accesses take effect in program order, so nothing is left for fences and groups of copies to
order; no cache, clock, debugger or other grid listens.
"""

from __future__ import annotations

from warploom.isa.ops.tcgen05 import changes_nothing
from warploom.isa.ops.tensors import is_tensor_prefetch
from warploom.isa.spec import Operation

NAMES = frozenset(
    {"membar", "fence", "nanosleep", "pmevent", "griddepcontrol", "brkpt"}
    | {"prefetch", "prefetchu", "applypriority", "discard"}
)
COPIES = ("commit_group", "wait_group", "wait_all", "L2")
"""What stands in the forms of `cp` that copy nothing."""


def is_effectless(operation: Operation) -> bool:
    """Returns whether an operation changes nothing on these machines."""
    if operation.name == "cp":
        if is_tensor_prefetch(operation):
            return False
        return any(flag in operation.modifiers for flag in COPIES)
    if operation.name == "wgmma":
        return "fence" in operation.modifiers
    if operation.name == "tcgen05":
        return changes_nothing(operation)
    return operation.name in NAMES
