"""Advice about double precision: on devices with few lanes for it, and on floats."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from warploom.isa.instruction import Space
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.report.advice.case import Advice, Case, costs_of
from warploom.report.advice.latency import latency_saved_by_floats
from warploom.report.advice.origins import enumerated
from warploom.report.source import source_line, split_line
from warploom.report.work import WIDE_CONVERSION
from warploom.timing.work.classes import FREE, class_of
from warploom.timing.work.costs import WorkCosts

SLOW = 8
"""The ratio of single to double throughput from which on, as on consumer devices, all work in
double precision is reported. On other devices, only work on floats is."""

FLOAT_SHARES = {
    "sin": 0.78,
    "cos": 0.82,
    "tan": 0.69,
    "cosh": 0.51,
    "tanh": 0.79,
    "acos": 0.94,
    "atan": 0.61,
    "asinh": 0.92,
    "acosh": 0.47,
    "atanh": 0.49,
    "exp": 0.51,
    "exp2": 0.17,
    "log": 0.59,
    "log2": 0.61,
    "log10": 0.58,
    "pow": 0.58,
    "cbrt": 0.44,
    "erf": 0.28,
    "erfc": 0.53,
    **dict.fromkeys(["sinh", "asin", "sqrt", "rsqrt"], 1.0),
}
"""The instructions of functions on floats as a share of those on doubles, 1 where they are no
fewer: counted in the PTX of NVRTC 13.5 (`tools/float_functions.py`)."""

CALL = re.compile(rf"\b({'|'.join(sorted(FLOAT_SHARES, key=len, reverse=True))})\(")
"""A call of a function that computes in double precision for some types of arguments."""


@dataclass
class _DoubleWork:
    """Counts the warp instructions of a line in double precision, and their issue slots; its
    conversions from float to double and back, and those of all its conversions."""

    executed: int = 0
    slots: int = 0
    widened: int = 0
    narrowed: int = 0
    conversion_slots: int = 0
    instructions: set[int] = field(default_factory=set[int])
    """All of these, by their index in the program."""

    @property
    def converted(self) -> int:
        """Returns the conversions from float to double and back."""
        return self.widened + self.narrowed


def double_precision(case: Case) -> Iterator[Advice]:
    """Yields advice for lines with instructions in double precision: on a device that is slow at
    them, and on others if operands and result are floats."""
    costs = costs_of(case)
    fp64 = costs.timing.lanes_fp64 if costs is not None else 0
    if costs is None or not fp64:
        return
    ratio, lines = costs.timing.lanes_fp32 / fp64, _double_work(case, costs)
    is_in_floats = _has_float_ends(case.program, lines)
    suffix = _suffix(lines)
    for line, work in lines.items():
        is_on_floats = is_in_floats or work.widened > 0 < work.narrowed
        if not work.executed or (ratio < SLOW and not is_on_floats):
            continue
        around = f", with {work.converted:,} conversions from float to double or back"
        yield Advice(
            "double precision",
            line,
            f"{work.executed:,} warp instructions in double precision, at 1/{ratio:.0f} of the "
            f"rate of single precision on {case.spec.title}"
            + around
            * (is_on_floats and work.converted > 0),
            suffix if is_on_floats else _declared_as_double(case) or suffix,
            work.slots,
            saves={
                "issued": work.converted + _fewer(case, line) * is_on_floats,
                "double": work.slots,
                "conversions": work.conversion_slots,
                "latency": latency_saved_by_floats(case, work.instructions),
            },
        )


def _has_float_ends(program: Program, lines: Mapping[str, _DoubleWork]) -> bool:
    """Returns whether all double values are computed from floats, parameters and constants, and
    floats are computed from them: no double is in memory."""
    memory = (
        one
        for one in program.instructions
        if one.operation.modifiers.text("type", "") == "f64"
        and any(space not in (Space.PARAM, Space.CONST) for space, _ in accesses(one))
    )
    works = lines.values()
    has_ends = any(one.widened for one in works) and any(one.narrowed for one in works)
    return has_ends and not any(memory)


def _suffix(lines: Mapping[str, _DoubleWork]) -> str:
    """Returns how to write in single precision what some lines compute."""
    costly = sorted(lines, key=lambda line: -lines[line].slots)
    called = [name for line in costly if lines[line].executed for name in _called(line)]
    return (
        "Use float if single precision is sufficient: write constants with the suffix f (1.5f, "
        f"because 1.5 is a double) and call the float functions ({[*called, 'sqrt'][0]}f). One "
        "operand of type double makes the whole expression double."
    )


def _called(line: str) -> list[str]:
    """Returns the functions of FLOAT_SHARES that a line of source calls."""
    return CALL.findall(source_line(*split_line(line)))


def _fewer(case: Case, line: str) -> int:
    """Returns how many instructions fewer a line executes at most if its functions are those on
    floats."""
    share = max((FLOAT_SHARES[name] for name in _called(line)), default=1.0)
    executed = sum(
        int(count)
        for index, count in enumerate(case.counters.executions)
        if count and case.program.line(index) == line
    )
    return int((1 - share) * executed)


def _double_work(case: Case, costs: WorkCosts) -> dict[str, _DoubleWork]:
    """Returns the work in double precision of each line."""
    lines: defaultdict[str, _DoubleWork] = defaultdict(_DoubleWork)
    for index, count in enumerate(case.counters.executions):
        one = case.program.instructions[index]
        name = class_of(one) if count else FREE
        if name == FREE:
            continue
        work, slots = lines[case.program.line(index)], int(count) * costs.of(name).slots
        if costs.of(name).unit == "fp64":
            work.executed += int(count)
            work.slots += slots
            work.instructions.add(index)
        elif name == WIDE_CONVERSION:
            modifiers = one.operation.modifiers
            types = modifiers.text("dtype", ""), modifiers.text("type", "")
            work.conversion_slots += slots
            work.instructions.add(index)
            work.widened += int(count) * (types == ("f64", "f32"))
            work.narrowed += int(count) * (types == ("f32", "f64"))
    return lines


def _declared_as_double(case: Case) -> str:
    """Returns the remedy for a kernel whose buffers hold doubles; empty if none does."""
    names = [one.name for one in case.pointers if "double" in one.text.split() and one.name]
    if not names:
        return ""
    buffers = enumerated(names)
    return (
        f"Use float throughout if single precision is sufficient: {buffers} "
        f"hold{'s'[: len(names) == 1]} elements of type double, so arithmetic on them uses double "
        "precision. Declare the buffers, the local variables and the constants (1.5f) as float."
    )
