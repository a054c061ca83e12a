"""The order in which a compiler would issue the instructions of a basic block: those first that the
longest wait depends on, as far as registers and memory let them.

A list schedule by longest path. No instruction goes ahead of one that is more than WINDOW before
it, which stands for the registers that early loads take (an estimate). Nothing depends on the
device, so one record serves all schedulers and figures."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import NamedTuple, cast

from warploom.isa.spec import Unit
from warploom.program.accesses import accesses
from warploom.program.program import Program, ProgramBlock
from warploom.program.uses import reads, reads_clock, writes
from warploom.ptx.ir import Instruction, Register, Space

WINDOW = 64
_KEPT = "order of issue"
"""Where a program keeps it."""

PURE = (Unit.FLOAT, Unit.INTEGER, Unit.LOGIC, Unit.CONVERT, Unit.MOVE)
FAR, NEAR, SHORT = 400, 25, 4
"""Weights of a wait for device memory, for shared memory, for arithmetic: about their latencies."""


def issue_order(program: Program) -> list[list[int]]:
    """Return, by basic block, its instructions in the order in which they issue."""
    if _KEPT not in program.cache:
        program.cache[_KEPT] = [_ordered(program, block) for block in program.blocks]
    return cast("list[list[int]]", program.cache[_KEPT])


def _ordered(program: Program, block: ProgramBlock) -> list[int]:
    code = program.instructions[block.start : block.stop]
    after = _successors(code)
    weight = [_wait(made) for made in code]
    path = [0] * len(code)
    needed = [0] * len(code)
    for index in reversed(range(len(code))):
        path[index] = weight[index] + max((path[later] for later in after[index]), default=0)
        for later in after[index]:
            needed[later] += 1
    ready = [(-path[index], index) for index in range(min(WINDOW, len(code))) if not needed[index]]
    heapify(ready)
    seen = WINDOW  # the window ends here: each that issues makes room for one
    found: list[int] = []
    while ready:
        _, best = heappop(ready)
        found.append(block.start + best)
        for later in after[best]:
            needed[later] -= 1
            if not needed[later] and later < seen:
                heappush(ready, (-path[later], later))
        if seen < len(code) and not needed[seen]:
            heappush(ready, (-path[seen], seen))
        seen += 1
    return found


def _successors(code: tuple[Instruction, ...]) -> list[set[int]]:
    """Return, by instruction, those that must come after it: for its registers, or for what it
    does."""
    after: list[set[int]] = [set() for _ in code]
    writer: dict[Register, int] = {}
    readers: dict[Register, list[int]] = defaultdict(list)
    moves = [_move_of(made) for made in code]
    others: dict[_Move, list[int]] = defaultdict(list)
    wall = -1
    for index, made in enumerate(code):
        for register in reads(made):
            if register in writer:
                after[writer[register]].add(index)
            readers[register].append(index)
        for register in writes(made):
            for earlier in readers[register]:
                after[earlier].add(index)
            if register in writer:
                after[writer[register]].add(index)
            writer[register], readers[register] = index, []
        if wall >= 0:
            after[wall].add(index)
        if moves[index].kind is _Kind.WALL:
            for earlier in range(max(wall, 0), index):
                after[earlier].add(index)
            wall = index
            others.clear()
        elif moves[index].kind is not _Kind.PURE:
            for move, alike in others.items():
                if not _may_swap(move, moves[index]):
                    for earlier in alike:
                        after[earlier].add(index)
            others[moves[index]].append(index)
        after[index].discard(index)
    return after


class _Kind(Enum):
    """Names how an instruction moves: PURE past all but WALL, which nothing passes; LOAD past
    loads, and past a STORE that cannot change what it reads; ORDERED past pure ones alone."""

    PURE = 0
    LOAD = 1
    STORE = 2
    ORDERED = 3
    WALL = 4


class _Move(NamedTuple):
    """The kind of an instruction; the spaces that it reaches; whether what it reads is constant."""

    kind: _Kind
    spaces: frozenset[Space] = frozenset()
    constant: bool = False


def _move_of(made: Instruction) -> _Move:
    operation = made.operation
    if operation.spec.unit in (Unit.CONTROL, Unit.BARRIER):
        return _Move(_Kind.WALL)
    if operation.spec.unit in PURE:
        return _Move(_Kind.ORDERED if reads_clock([made]) else _Kind.PURE)
    spaces = frozenset(space for space, _ in accesses(made))
    if operation.name in ("tex", "tld4"):
        return _Move(_Kind.LOAD, spaces, constant=True)
    if operation.name not in ("ld", "ldu", "st") or not _PLAIN.isdisjoint(
        operation.text.split(".")
    ):
        return _Move(_Kind.ORDERED)
    if operation.name == "st":
        return _Move(_Kind.STORE, spaces)
    constant = "nc" in operation.modifiers or spaces <= {Space.CONST, Space.PARAM}
    return _Move(_Kind.LOAD, spaces, constant)


_PLAIN = frozenset(("volatile", "acquire", "release", "relaxed", "mmio", "bulk", "async"))
"""Modifiers of accesses that are more than plain ones."""


def _may_swap(first: _Move, second: _Move) -> bool:
    """Returns whether two instructions that are not pure may change places."""
    kinds = {first.kind, second.kind}
    if kinds == {_Kind.LOAD}:
        return True
    if kinds != {_Kind.LOAD, _Kind.STORE}:
        return False
    load, store = (first, second) if first.kind is _Kind.LOAD else (second, first)
    either = load.spaces | store.spaces
    return load.constant or (Space.GENERIC not in either and not load.spaces & store.spaces)


def _wait(made: Instruction) -> int:
    if made.operation.name not in ("ld", "ldu", "tex", "tld4"):
        return SHORT
    spaces = {space for space, _ in accesses(made)}
    return NEAR if spaces <= {Space.SHARED, Space.CONST, Space.PARAM} else FAR
