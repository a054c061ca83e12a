"""Advice about integer division."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from warploom.isa.instruction import Immediate, Instruction, Register, Special
from warploom.program.program import Program
from warploom.program.uses import reads
from warploom.report.advice.case import Advice, Case, costs_of
from warploom.report.advice.loops import loop_around
from warploom.report.advice.origins import origins
from warploom.report.source import source_line, split_line
from warploom.timing.work.classes import class_of

DIVISIONS = ("div.s32", "div.s64")


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
