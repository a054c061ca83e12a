"""Orders the instructions of a basic block as a compiler would schedule them, for the replay of
PTX: those first on which the longest wait depends, as far as registers and memory allow.

A list schedule by critical path. No instruction moves up by more than a window of WINDOW
instructions, which models the registers that early loads occupy (an estimate). Nothing depends on
the device, so that one record serves all schedulers and specifications.

    ld.global.u32 %r1, [%d2];       ld.global.u32 %r1, [%d2];
    st.shared.u32 [%r9], %r1;  ->   ld.global.u32 %r2, [%d2+4];
    ld.global.u32 %r2, [%d2+4];     st.shared.u32 [%r9], %r1;
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import NamedTuple, cast

from warploom.isa.instruction import Instruction, Register, Space
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit
from warploom.program.accesses import accesses
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program
from warploom.program.uses import reads, reads_clock, writes
from warploom.timing.work.classes import is_bulk

WINDOW = 64
_CACHE_KEY = "order of issue"
"""The key of the schedule among what a program caches."""

PURE = (Unit.FLOAT, Unit.INTEGER, Unit.LOGIC, Unit.CONVERT, Unit.MOVE)
DEVICE_MEMORY_LATENCY, SHARED_LATENCY, ARITHMETIC_LATENCY = 400, 25, 4
"""Weights of a wait for device memory, for shared memory and for arithmetic: about their latencies
in cycles."""


def issue_order(program: Program) -> list[list[int]]:
    """Returns, by basic block, the indices of its instructions in the order in which they issue
    (`_list_schedule`); cached by the program."""
    if _CACHE_KEY not in program.cache:
        program.cache[_CACHE_KEY] = [_list_schedule(program, block) for block in program.blocks]
    return cast("list[list[int]]", program.cache[_CACHE_KEY])


def _list_schedule(program: Program, block: ProgramBlock) -> list[int]:
    """Returns the indices of a basic block's instructions in the order in which they issue: each
    time, of those whose predecessors are all scheduled, the one with the longest path of latencies
    after it (`_latency_weight`), the first in the program among equals. Candidates are the first
    WINDOW instructions, and one more for each that is scheduled."""
    code = program.instructions[block.start : block.stop]
    successors = _successors(code)
    weight = [_latency_weight(instruction) for instruction in code]
    path = [0] * len(code)
    open_predecessors = [0] * len(code)
    for index in reversed(range(len(code))):
        path[index] = weight[index] + max(
            (path[successor] for successor in successors[index]), default=0
        )
        for successor in successors[index]:
            open_predecessors[successor] += 1
    # Negative paths: the heap is a minimum heap. Equal ones keep the order of the program.
    ready = [
        (-path[index], index)
        for index in range(min(WINDOW, len(code)))
        if not open_predecessors[index]
    ]
    heapify(ready)
    window_end = WINDOW
    scheduled: list[int] = []
    while ready:
        _, chosen = heappop(ready)
        scheduled.append(block.start + chosen)
        for successor in successors[chosen]:
            open_predecessors[successor] -= 1
            if not open_predecessors[successor] and successor < window_end:
                heappush(ready, (-path[successor], successor))
        if window_end < len(code) and not open_predecessors[window_end]:
            heappush(ready, (-path[window_end], window_end))
        # The window moves by one for each instruction that is scheduled.
        window_end += 1
    return scheduled


def _successors(code: tuple[Instruction, ...]) -> list[set[int]]:
    """Returns, by instruction of a basic block, the indices of later instructions that must stay
    after it. These read or overwrite a register that it writes, or overwrite one that it reads; or
    the memory accesses of both may not be swapped (`_may_swap`); or one of both is a WALL (control
    flow, barrier)."""
    successors: list[set[int]] = [set() for _ in code]
    writer: dict[Register, int] = {}
    readers: dict[Register, list[int]] = defaultdict(list)
    reorderings = [_reordering_of(instruction) for instruction in code]
    pending: dict[_Reordering, list[int]] = defaultdict(list)
    last_wall = -1
    for index, instruction in enumerate(code):
        for register in reads(instruction):
            if register in writer:
                successors[writer[register]].add(index)
            readers[register].append(index)
        for register in writes(instruction):
            for earlier in readers[register]:
                successors[earlier].add(index)
            if register in writer:
                successors[writer[register]].add(index)
            writer[register], readers[register] = index, []
        if last_wall >= 0:
            successors[last_wall].add(index)
        if reorderings[index].kind is _Mobility.WALL:
            for earlier in range(max(last_wall, 0), index):
                successors[earlier].add(index)
            last_wall = index
            pending.clear()
        elif reorderings[index].kind is not _Mobility.PURE:
            for other, others_of_kind in pending.items():
                if not _may_swap(other, reorderings[index]):
                    for earlier in others_of_kind:
                        successors[earlier].add(index)
            pending[reorderings[index]].append(index)
        successors[index].discard(index)
    return successors


class _Mobility(Enum):
    """Classifies how an instruction may move: PURE past all but WALL, which nothing passes; LOAD
    past loads, and past a STORE that cannot change what it reads; ORDERED past pure instructions
    alone."""

    PURE = 0
    LOAD = 1
    STORE = 2
    ORDERED = 3
    WALL = 4


class _Reordering(NamedTuple):
    """Holds the mobility of an instruction, the state spaces that it accesses, and whether what it
    reads is constant."""

    kind: _Mobility
    spaces: frozenset[Space] = frozenset()
    constant: bool = False


def _reordering_of(instruction: Instruction) -> _Reordering:
    """Returns how an instruction may move. Control flow and barriers may not at all (WALL);
    arithmetic and moves may freely (PURE), unless they read the clock. Plain loads and stores may
    by their spaces; texture loads, `ld.nc`, and loads of constants and parameters count as loads of
    constant data. All else stays in order (ORDERED), also accesses that are volatile, relaxed or
    the like."""
    operation = instruction.operation
    if operation.spec.unit in (Unit.CONTROL, Unit.BARRIER):
        return _Reordering(_Mobility.WALL)
    if operation.spec.unit in PURE:
        return _Reordering(_Mobility.ORDERED if reads_clock([instruction]) else _Mobility.PURE)
    spaces = frozenset(space for space, _ in accesses(instruction))
    if operation.kind in (OpKind.TEXTURE_LOAD, OpKind.TEXTURE_GATHER):
        return _Reordering(_Mobility.LOAD, spaces, constant=True)
    plain = operation.kind in (OpKind.LOAD, OpKind.STORE)
    if not plain or not _NOT_PLAIN.isdisjoint(operation.text.split(".")):
        return _Reordering(_Mobility.ORDERED)
    if operation.kind is OpKind.STORE:
        return _Reordering(_Mobility.STORE, spaces)
    constant = "nc" in operation.modifiers or spaces <= {Space.CONST, Space.PARAM}
    return _Reordering(_Mobility.LOAD, spaces, constant)


_NOT_PLAIN = frozenset(("volatile", "acquire", "release", "relaxed", "mmio"))
"""Modifiers of loads and stores that have effects beyond the access: nothing moves past these."""


def _may_swap(first: _Reordering, second: _Reordering) -> bool:
    """Returns whether two instructions, neither PURE nor a WALL, may be swapped: two loads, or a
    load and a store that cannot write what it loads (constant data, or no space in common and no
    generic address)."""
    mobilities = {first.kind, second.kind}
    if mobilities == {_Mobility.LOAD}:
        return True
    if mobilities != {_Mobility.LOAD, _Mobility.STORE}:
        return False
    load, store = (first, second) if first.kind is _Mobility.LOAD else (second, first)
    either = load.spaces | store.spaces
    return load.constant or (Space.GENERIC not in either and not load.spaces & store.spaces)


_WEIGHTED_LOADS = (OpKind.LOAD, OpKind.TEXTURE_LOAD, OpKind.TEXTURE_GATHER)


def _latency_weight(instruction: Instruction) -> int:
    """Returns the weight of the wait for an instruction's result. Of an asynchronous copy, which a
    later instruction awaits though it reads no register of it: DEVICE_MEMORY_LATENCY. Of a load (of
    memory or texture): SHARED_LATENCY if it can only access shared, constant or parameter memory,
    else DEVICE_MEMORY_LATENCY, also for generic addresses. Of all others, atomics included:
    ARITHMETIC_LATENCY."""
    if instruction.operation.kind is OpKind.COPY or is_bulk(instruction.operation):
        return DEVICE_MEMORY_LATENCY
    if instruction.operation.kind not in _WEIGHTED_LOADS:
        return ARITHMETIC_LATENCY
    spaces = {space for space, _ in accesses(instruction)}
    return (
        SHARED_LATENCY
        if spaces <= {Space.SHARED, Space.CONST, Space.PARAM}
        else DEVICE_MEMORY_LATENCY
    )
