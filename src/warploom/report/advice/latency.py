"""Estimates how long one warp takes if nothing but its own dependences delays it, and from that
whether more resident warps would make a launch faster."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from warploom.devices.timing import TimingSpec, find_timing
from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit
from warploom.program.accesses import accesses
from warploom.program.uses import reads, writes
from warploom.report.advice.case import Case, costs_of
from warploom.report.peaks import ceilings_of, gain_of
from warploom.report.work import WIDE_CONVERSION
from warploom.timing.work.classes import FREE, class_of
from warploom.timing.work.costs import WorkCosts


def warp_cycles(case: Case, as_floats: Container[int] = ()) -> float | None:
    """Returns the cycles that a warp takes on average if it never waits for another one: of each
    execution of a basic block its longest chain of dependent instructions, or one cycle for each
    instruction if that is more (compilers order independent ones freely within a block). The
    instructions with the indices `as_floats` count as if they computed with floats: conversions to
    double and back take no time. None for a device whose latencies are not known."""
    costs = costs_of(case)
    if costs is None:
        return None
    cycles, warps = 0.0, max(1, case.warps)
    for block in case.program.blocks:
        executed = int(case.counters.executions[block.start]) if block.start < block.stop else 0
        if executed:
            body = case.program.instructions[block.start : block.stop]
            latencies = [
                _latency_with_floats(one, costs) if index in as_floats else _latency(one, costs)
                for index, one in enumerate(body, block.start)
            ]
            cycles += executed / warps * max(len(body), _longest_chain(body, latencies))
    return cycles


def _longest_chain(body: tuple[Instruction, ...], latencies: Sequence[int]) -> int:
    """Returns the cycles of the longest chain of instructions that need each other's results."""
    ready: dict[str, int] = {}
    longest = 0
    for one, latency in zip(body, latencies, strict=True):
        begin = max((ready.get(register.name, 0) for register in reads(one)), default=0)
        end = begin + latency
        for register in writes(one):
            ready[register.name] = end
        longest = max(longest, end)
    return longest


def _latency(one: Instruction, costs: WorkCosts) -> int:
    """Returns the cycles from the issue of an instruction to that of one that needs it."""
    timing, found = costs.timing, list(accesses(one))
    if one.operation.spec.unit is Unit.BARRIER:
        return timing.latency_barrier
    if one.operation.kind is OpKind.BRANCH:
        return timing.latency_branch
    if not found:
        name = class_of(one)
        return 0 if name == FREE else costs.of(name).latency
    return max(_of_access(space, op, timing) for space, op in found)


def _latency_with_floats(one: Instruction, costs: WorkCosts) -> int:
    """Returns the same of an instruction if doubles were floats."""
    name = class_of(one)
    if name == WIDE_CONVERSION:
        return 0
    is_double = name != FREE and costs.of(name).unit == "fp64"
    return costs.timing.latency_fp32 if is_double else _latency(one, costs)


def _of_access(space: Space, op: str, timing: TimingSpec) -> int:
    """Returns the latency of an access; nothing waits for a store."""
    if op == "store":
        return 1
    if space is Space.SHARED:
        return timing.latency_shared_atomic if op == "atomic" else timing.latency_shared
    if op == "atomic":
        return timing.latency_atomic
    if space is Space.CONST:
        return timing.latency_constant
    if space is Space.LOCAL:
        return timing.latency_l1 or timing.latency_dram
    return timing.latency_dram


def busy_cycles(case: Case) -> float | None:
    """Returns the cycles for which an SM with its even share of the warps is busy at least; None
    for a device whose peaks are not known."""
    if case.work is None:
        return None
    timing, found = (
        find_timing(case.spec),
        ceilings_of(replace(case.work, idle_sms=0, latency=0), case.spec),
    )
    return found[0].seconds * timing.clock_mhz * 1e6 if found else None


def latency_cycles(case: Case, held: int) -> float:
    """Returns the cycles that an SM needs for its warps, of which it holds `held` at once, if each
    waits for its own results alone; 0 if it holds all of them at once, since then their number
    limits nothing, and for a device that is not modelled."""
    alone, warps = warp_cycles(case), case.warps / case.spec.sms
    return 0.0 if alone is None or not held or warps <= held else alone * warps / held


def latency_saved(case: Case, held: int) -> dict[str, float]:
    """Returns the work that is saved if an SM holds so many warps at once."""
    if case.work is None:
        return {}
    return {"latency": max(0.0, case.work.latency - latency_cycles(case, held))}


def latency_saved_by_floats(case: Case, instructions: Container[int]) -> float:
    """Returns the cycles of `work.latency` that are saved if instructions, by index, compute with
    floats instead of doubles."""
    alone, singly = warp_cycles(case), warp_cycles(case, instructions)
    if case.work is None or not alone or singly is None:
        return 0.0
    return case.work.latency * (1 - singly / alone)


def latency_gain(case: Case, held: int) -> float | None:
    """Returns the share of the modelled time that is saved if an SM holds so many warps at once.
    None for a device that is not modelled."""
    if case.work is None:
        return None
    found = gain_of(case.work, case.spec, latency_saved(case, held))
    return None if found is None else found.share
