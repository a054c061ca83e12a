"""Advice about low occupancy, where it costs time, and about what takes a thread's registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from warploom.devices.gains import Gain, gains
from warploom.isa.instruction import Instruction
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.latency import latency_gain, latency_saved
from warploom.report.advice.launch import LOW_OCCUPANCY
from warploom.report.advice.origins import register_writers, thread_array
from warploom.report.source import split_line

LEAST_GAIN = 0.05
"""The share of the modelled time that more warps must save for low occupancy to be reported."""

LARGE_GROUP = 16
"""Live registers that one source line defined, from which on the line is named."""

SCRATCH = 8
"""Registers that a thread needs beside its live values, for addresses and results in between."""

_UNITS = {"shared_bytes": "bytes of shared memory per block", "threads": "threads per block"}


@dataclass(frozen=True, slots=True)
class LiveValues:
    """The point of a kernel at which most registers of 32 bits are live: how many, at which
    instruction, and how many of them the line defined that defined most."""

    registers: int
    instruction: int
    line: str
    of_line: int

    @property
    def described(self) -> str:
        """Returns the values of the line as a text: the array that holds them, if it is known."""
        name, number = thread_array(self.line), split_line(self.line)[1]
        return f"{self.of_line} of them for {name or 'values'} (line {number})"


def low_occupancy(case: Case) -> Iterator[Advice]:
    """Yields advice for a kernel of which an SM holds less than half of the warps that it could, if
    the grid has a block for each SM, and if more warps would save time (`latency_gain`)."""
    occupancy = case.occupancy
    if occupancy.fraction >= LOW_OCCUPANCY or case.blocks < case.spec.sms:
        return
    steps = [
        (gain, gained)
        for gain in gains(case.spec, occupancy.demand)
        if (gained := latency_gain(case, gain.occupancy.active_warps)) is None
        or gained >= LEAST_GAIN
    ]
    if not steps:
        return
    live = None
    if "registers" in occupancy.limiters:
        live = most_live(case)
    cause = (
        f": at line {split_line(case.program.line(live.instruction))[1]}, {live.registers} are live"
        + (f", {live.described}" if live.of_line >= LARGE_GROUP else "")
        if live is not None
        else ""
    )
    limiters = " and ".join(_limiter(case, name) for name in occupancy.limiters)
    yield Advice(
        "low occupancy",
        None,
        f"{occupancy.active_warps} of {occupancy.max_warps} warps fit on an SM"
        f" ({100 * occupancy.fraction:.0f} %), limited by {limiters}{cause}",
        f"{'; or '.join(_step(case, *step, live) for step in steps)}.",
        saves=latency_saved(case, max(gain.occupancy.active_warps for gain, _ in steps)),
        code=live.line if live is not None and live.of_line >= LARGE_GROUP else "",
    )


def _limiter(case: Case, name: str) -> str:
    """Returns a resource with the amount that a block or a thread takes of it."""
    demand = case.occupancy.demand
    return {
        "registers": f"{demand.registers} registers per thread",
        "shared": f"{demand.shared_bytes:,} bytes of shared memory per block",
        "blocks": f"the number of blocks ({case.spec.max_blocks_per_sm} per SM)",
    }.get(name, name)


def _step(case: Case, gain: Gain, gained: float | None, live: LiveValues | None) -> str:
    """Returns a change of a resource, and what it gains."""
    brings = f"{100 * gain.occupancy.fraction:.0f} %" + (
        "" if gained is None else f", and saves up to {100 * gained:.0f} % of the time"
    )
    if gain.resource != "registers":
        return f"{gain.after:,} instead of {gain.before:,} {_UNITS[gain.resource]} gives {brings}"
    needed = 0 if live is None else live.registers + SCRATCH
    if live is None or gain.after >= needed:
        return (
            f"{gain.after} instead of {gain.before} registers per thread (-maxrregcount, "
            f"__launch_bounds__) gives {brings}"
        )
    return (
        "keep fewer values live: use each value soon after it is computed or loaded, or give "
        f"each thread fewer values. {gain.after} registers per thread would give {brings}, but a "
        f"limit (-maxrregcount, __launch_bounds__) below {needed} only causes spills"
    )


def most_live(case: Case) -> LiveValues | None:
    """Returns where most registers are live in the code that was executed; None in a kernel that
    has none."""
    return _most(_live_sets(case, case.program.blocks), case)


def live_at(case: Case, indices: Sequence[int]) -> LiveValues | None:
    """Returns the values that are live after some instructions: where most are."""
    blocks = [
        block
        for block in case.program.blocks
        if any(block.start <= index < block.stop for index in indices)
    ]
    return _most(((at, live) for at, live in _live_sets(case, blocks) if at in indices), case)


def _most(live_sets: Iterator[tuple[int, frozenset[str]]], case: Case) -> LiveValues | None:
    """Returns the largest of some sets of live registers, and which line defined most of it."""
    program, words = case.program, _words(case.program)
    found = max(live_sets, key=lambda pair: sum(words[name] for name in pair[1]), default=None)
    size = 0 if found is None else sum(words[name] for name in found[1])
    if found is None or not size:
        return None
    index, names = found
    lines, writers = Counter[str](), register_writers(program)
    for name in names if size >= LARGE_GROUP else ():
        if name in writers:
            lines[program.line(writers[name][0])] += words[name]
    line, of_line = lines.most_common(1)[0] if lines else (program.line(index), 0)
    return LiveValues(size, index, line, of_line)


def _live_sets(case: Case, blocks: Sequence[ProgramBlock]) -> Iterator[tuple[int, frozenset[str]]]:
    """Yields each instruction of some blocks that was executed, with the registers that are live
    after it."""
    program, counted = case.program, case.counters.executions
    for block in blocks:
        if block.start == block.stop or not counted[block.start]:
            continue
        live = {
            register.name
            for successor in block.successors
            if successor < len(program.blocks)
            for register in program.live_in[successor]
        }
        for index in range(block.stop - 1, block.start - 1, -1):
            yield index, frozenset(live)
            live = _before(program.instructions[index], live)


def _before(one: Instruction, live: set[str]) -> set[str]:
    """Returns the registers that are live before an instruction, by those live after it."""
    written = {register.name for register in writes(one)} if one.guard is None else set[str]()
    return (live - written) | {register.name for register in reads(one)}


def _words(program: Program) -> dict[str, int]:
    """Returns the registers of 32 bits that each register of PTX takes; none for a predicate."""
    if _words not in program.cache:
        program.cache[_words] = {
            one.name: 0 if one.type.name == "pred" else -(-one.type.bits // 32)
            for one in program.registers
        }
    return cast("dict[str, int]", program.cache[_words])
