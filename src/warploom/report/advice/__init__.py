"""Rules that turn what was counted into advice, each with its evidence.

In: a `Case`: counters, program, launch and device. Out: pieces of advice, each with numbers and
source lines. How they are shown is left to `report`.
"""

from __future__ import annotations

from warploom.report.advice.case import Advice, Case
from warploom.report.advice.control import divergence, exited_members, missing_guard
from warploom.report.advice.launch import low_occupancy, partial_warps, small_blocks, small_grid
from warploom.report.advice.memory import bank_conflicts, scattered_constants, strided_access

__all__ = ["Advice", "Case", "advise"]

RULES = (
    *(partial_warps, small_blocks, small_grid, low_occupancy),
    *(divergence, exited_members, missing_guard),
    *(strided_access, bank_conflicts, scattered_constants),
)


def advise(case: Case) -> tuple[Advice, ...]:
    """Returns the advice of the rules on a launch; each rule once a line."""
    found: dict[tuple[str, str | None], Advice] = {}
    for rule in RULES:
        for advice in rule(case):
            found.setdefault((advice.rule, advice.line), advice)
    return tuple(found.values())
