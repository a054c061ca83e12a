"""Advice about the units that compute: double precision on devices with few lanes for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from warploom.devices.timing import find_timing
from warploom.report.advice.case import Advice, Case
from warploom.timing.work.classes import FREE, class_of
from warploom.timing.work.costs import WorkCosts

SLOW = 8
"""From this ratio of single to double throughput on, as on consumer devices, it is advised."""


def double_precision(case: Case) -> Iterator[Advice]:
    """Yields advice for instructions in double precision on a device that is slow at them."""
    try:
        costs = WorkCosts(case.spec, find_timing(case.spec))
    except KeyError:
        return
    fp64 = costs.timing.lanes_fp64
    if not fp64 or costs.timing.lanes_fp32 < SLOW * fp64:
        return
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for instruction, count in enumerate(case.counters.executions):
        name = class_of(case.program.instructions[instruction]) if count else FREE
        if name != FREE and costs.of(name).unit == "fp64":
            of_line = counts[case.program.line(instruction)]
            of_line[0] += int(count)
            of_line[1] += int(count) * costs.of(name).slots
    for line, (executed, slots) in counts.items():
        yield Advice(
            "double precision",
            line,
            f"{executed:,} warp instructions in double precision, at "
            f"1/{costs.timing.lanes_fp32 / fp64:.0f} of the rate of single precision on "
            f"{case.spec.title}",
            "Use float if its precision is enough: write constants with f (1.5f, because 1.5 is a "
            "double) and call the functions for float (sqrtf). One double operand makes the whole "
            "expression double.",
            slots,
        )
