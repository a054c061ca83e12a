"""The transformations that optimised code can do without: each can be switched off by its name in
`WARPLOOM_DISABLE`, and neither results nor counters change."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from enum import StrEnum

from warploom.core.errors import WarploomError

VARIABLE, PRINT_VARIABLE, ALL = "WARPLOOM_DISABLE", "WARPLOOM_PRINT_AFTER", "all"
"""The variables that name passes which are left out, and those whose result is printed
(`codegen.warp_ir_passes`)."""


class Pass(StrEnum):
    """Names the transformations."""

    SHAPES = "shapes"
    LEAVING = "leaving"
    MEMORY = "memory"
    ASIDES = "asides"
    GROUPS = "groups"
    STEPS = "steps"
    VERSIONS = "versions"
    PUT_OFF = "put-off"
    STRIDED_LOOPS = "strided-loops"
    ROUNDS = "rounds"
    SWEEPS = "sweeps"
    COURSES = "courses"
    RELAY = "relay"


DESCRIPTIONS: Mapping[Pass, str] = {
    Pass.SHAPES: "registers of fewer values than lanes, where these are equal or rise by a stride",
    Pass.LEAVING: "lanes that leave a loop, or jump over blocks, while the others go on together",
    Pass.MEMORY: "registers that many blocks share, outside of loops, kept in memory by all code",
    Pass.ASIDES: "short sides of branches under a mask, while the other lanes wait",
    Pass.GROUPS: "one guard for the accesses of a block from one register, and moves by patterns",
    Pass.STEPS: "moves by the step of addresses whose pattern is found at run time",
    Pass.VERSIONS: "a fast version of a block in which all lanes and patterns are as expected",
    Pass.PUT_OFF: "stores of columns kept, then done row by row",
    Pass.STRIDED_LOOPS: "one check and count for a batch of iterations whose addresses advance",
    Pass.ROUNDS: "a copy of blocks between barriers for warps whose lanes are all together",
    Pass.SWEEPS: "code between barriers for all warps of a block, one after the other",
    Pass.COURSES: "all barriers of a block passed in one call, where the size of blocks tells how",
    Pass.RELAY: "a warp that waits hands over to the next without a return to the scheduler",
}
"""What each does."""


def disabled() -> frozenset[Pass]:
    """Return the transformations that the environment switches off. Raises WarploomError for a name
    that is none."""
    return frozenset(map(Pass, named_passes(VARIABLE, [*Pass])))


def named_passes(variable: str, known: Collection[str]) -> frozenset[str]:
    """Returns the passes that a variable of the environment names, with commas between them, or by
    ALL. Raises WarploomError for a name that is none of the known ones."""
    names = [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]
    if ALL in names:
        return frozenset(known)
    for name in names:
        if name not in known:
            raise WarploomError(
                f"{variable}={name}: there is no such pass; there are {', '.join(known)} and {ALL}"
            )
    return frozenset(names)
