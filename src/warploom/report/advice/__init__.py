"""Applies fixed rules to the counters of a launch to derive advice. Each piece of advice states its
evidence and the expected gain.

In: a `Case`: counters, program, launch and device. Out: pieces of advice, each with numbers and
source lines, those that gain most first. How they are shown is left to `report`.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.report.advice.barriers import idle_barriers
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.coalescing import uncoalesced_access
from warploom.report.advice.control import divergence, exited_members
from warploom.report.advice.divisions import integer_divisions
from warploom.report.advice.doubles import double_precision
from warploom.report.advice.iterated import iterated_reductions
from warploom.report.advice.launch import partial_warps, small_blocks, small_grid
from warploom.report.advice.memory import (
    contended_atomics,
    local_arrays,
    scattered_constants,
)
from warploom.report.advice.narrow import narrow_accesses
from warploom.report.advice.occupancy import low_occupancy
from warploom.report.advice.redundant import repeated_loads, repeated_stores
from warploom.report.advice.resources import register_spills, unused_shared_memory
from warploom.report.advice.reuse import rereads
from warploom.report.advice.shared import bank_conflicts
from warploom.report.advice.tail import tail_effect

__all__ = ["Advice", "Case", "advise"]

RULES = (
    *(exited_members, uncoalesced_access, bank_conflicts, scattered_constants),
    *(
        contended_atomics,
        local_arrays,
        narrow_accesses,
        divergence,
        iterated_reductions,
        repeated_stores,
        repeated_loads,
        rereads,
    ),
    *(double_precision, integer_divisions, idle_barriers),
    *(partial_warps, register_spills, unused_shared_memory),
    *(small_blocks, small_grid, tail_effect, low_occupancy),
)

EXCLUDED_BY = {
    "low occupancy": frozenset({"unused shared memory", "register spills", "small blocks"}),
    "small grid": frozenset({"tail effect"}),
    "tail effect": frozenset({"small blocks", "partial warps"}),
}
"""Rules whose advice is not given beside that of others, which it would contradict."""


def advise(case: Case) -> tuple[Advice, ...]:
    """Returns the advice of the rules on a launch, each rule once a line: first what makes results
    wrong, then what costs most, then what leaves parts of the GPU without work."""
    found: dict[tuple[str, str | None], list[Advice]] = {}
    for rule in RULES:
        for advice in rule(case):
            found.setdefault((advice.rule, advice.line), []).append(advice)
    together = (_of_line(each, case.total_cost) for each in found.values())
    given = [one for one in together if _is_given(one)]
    rules = {one.rule for one in given}
    fitting = (one for one in given if not rules & EXCLUDED_BY.get(one.rule, frozenset()))
    return tuple(sorted(fitting, key=_order))


def _of_line(found: list[Advice], total: int) -> Advice:
    """Returns the advice that costs most, with the cost and the share of all."""
    most = max(found, key=lambda advice: advice.cost or 0)
    if most.cost is None:
        return most
    cost = sum(advice.cost or 0 for advice in found)
    saves = {
        name: sum(advice.saves.get(name, 0.0) for advice in found)
        for name in {name for advice in found for name in advice.saves}
    }
    return replace(most, cost=cost, share=min(1.0, cost / max(1, total)), saves=saves)


def _is_given(advice: Advice) -> bool:
    return advice.cost is None or advice.share >= advice.least


def _order(advice: Advice) -> tuple[bool, float]:
    """Returns the key by which advice is sorted."""
    is_of_launch = advice.line is None and advice.cost is None
    return is_of_launch, -1.0 if advice.cost is None else -advice.share
