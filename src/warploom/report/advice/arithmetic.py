"""Advice about the units that compute: double precision on devices with few lanes for it, and
integer division."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from warploom.isa.instruction import Immediate, Instruction, Register, Special
from warploom.program.program import Program
from warploom.program.uses import reads
from warploom.report.advice.case import Advice, Case, costs_of
from warploom.report.advice.latency import latency_saved_by_floats
from warploom.report.advice.loops import loop_around
from warploom.report.advice.origins import enumerated, origins
from warploom.report.source import source_line, split_line
from warploom.report.work import WIDE_CONVERSION
from warploom.timing.work.classes import FREE, class_of
from warploom.timing.work.costs import WorkCosts

SLOW = 8
"""The ratio of single to double throughput from which on, as on consumer devices, all work in
double precision is reported. On other devices, only work on floats is."""

DIVISIONS = ("div.s32", "div.s64")


SUFFIX = (
    "Use float if single precision is sufficient: write constants with the suffix f (1.5f, because "
    "1.5 is a double) and call the float functions (sqrtf). One operand of type double makes the "
    "whole expression double."
)


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
    def is_on_floats(self) -> bool:
        """Returns whether floats are converted to double and a result is converted back."""
        return self.widened > 0 < self.narrowed


def double_precision(case: Case) -> Iterator[Advice]:
    """Yields advice for lines with instructions in double precision: on a device that is slow at
    them, and on others if operands and result are floats."""
    costs = costs_of(case)
    fp64 = costs.timing.lanes_fp64 if costs is not None else 0
    if costs is None or not fp64:
        return
    ratio = costs.timing.lanes_fp32 / fp64
    for line, work in _double_work(case, costs).items():
        if not work.executed or (ratio < SLOW and not work.is_on_floats):
            continue
        converted = work.widened + work.narrowed
        around = f", with {converted:,} conversions from float to double or back"
        yield Advice(
            "double precision",
            line,
            f"{work.executed:,} warp instructions in double precision, at 1/{ratio:.0f} of the "
            f"rate of single precision on {case.spec.title}" + around * work.is_on_floats,
            SUFFIX if work.is_on_floats else _declared_as_double(case) or SUFFIX,
            work.slots,
            saves={
                "issued": work.widened + work.narrowed,
                "double": work.slots,
                "conversions": work.conversion_slots,
                "latency": latency_saved_by_floats(case, work.instructions),
            },
        )


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


def integer_divisions(case: Case) -> Iterator[Advice]:
    """Yields advice for integer divisions and remainders by a value that is not a constant, each of
    which becomes many instructions."""
    costs = costs_of(case)
    if costs is None:
        return
    lines: defaultdict[str, list[int]] = defaultdict(list)
    for index, one in enumerate(case.program.instructions):
        if case.counters.executions[index] and class_of(one) in DIVISIONS and _by_register(one):
            lines[case.program.line(index)].append(index)
    for line, indices in lines.items():
        if not _is_written(line):
            continue
        counts = [int(case.counters.executions[index]) for index in indices]
        slots = sum(
            count * costs.of(class_of(case.program.instructions[index])).slots
            for index, count in zip(indices, counts, strict=True)
        )
        first = case.program.instructions[indices[0]]
        what = "remainders (%)" if first.operation.name == "rem" else "divisions (/)"
        yield Advice(
            "integer division",
            line,
            f"warps executed {sum(counts):,} integer {what} with a divisor that is known only at "
            f"run time; each becomes about {slots // max(1, sum(counts))} instructions",
            _division_remedy(case, indices),
            slots,
            saves={"issued": slots},
        )


def _is_written(line: str) -> bool:
    """Returns whether the source at a line has a division, or is not known: compilers also divide
    to count the iterations of a loop, for which no source is to blame."""
    text = source_line(*split_line(line)).partition("//")[0]
    return not text or "/" in text or "%" in text


def _by_register(one: Instruction) -> bool:
    """Returns whether the divisor, the last operand, is no constant."""
    return not isinstance(one.operands[-1], Immediate)


def _division_remedy(case: Case, indices: Sequence[int]) -> str:
    """Returns the remedy for the divisions of a line: how else to compute them."""
    one = case.program.instructions[indices[0]]
    divisor = one.operands[-1]
    registers = [divisor] if isinstance(divisor, Register) else list(reads(one))
    specials = origins(case.program, registers).specials
    is_size = isinstance(divisor, Special) or any(name.startswith("%ntid") for name in specials)
    constant = (
        "Make the block size a constant (constexpr or a template parameter; % by a power of 2 then "
        "becomes a single &)"
        if is_size
        else "Make the divisor a constant (constexpr or a template parameter)"
    )
    if not _is_updated(case.program, indices):
        return f"{constant}."
    text = source_line(*split_line(case.program.line(indices[0])))
    name = found[1] if (found := re.search(r"%\s*([A-Za-z_][\w.]*)", text)) else "w"
    return (
        f"{constant}, or compute the remainder only once, before the loop (j = ... % {name} for "
        "the first iteration). In the loop, add the index step to the remainder: j += step; while "
        f"(j >= {name}) j -= {name};"
    )


def _is_updated(program: Program, indices: Sequence[int]) -> bool:
    """Returns whether the remainders of a line are of an index that a loop, perhaps unrolled,
    computes from no data: each then follows from the one before."""
    ones = [program.instructions[index] for index in indices]
    if any(one.operation.name != "rem" for one in ones):
        return False
    if any(origins(program, list(reads(one))).loads for one in ones):
        return False
    is_unrolled = len(ones) > 1 and len({one.location for one in ones}) == 1
    return is_unrolled or all(
        loop_around(program, block.index)
        for block in program.blocks
        if any(block.start <= index < block.stop for index in indices)
    )
