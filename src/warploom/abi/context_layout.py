"""Layout of a warp's context, which keeps its state while others run: its table, products in
flight, then its registers.

A register that several basic blocks share has a place for 32 lanes; and, if it has a shape
somewhere, a place for as many values as the shape has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from warploom.analysis.cycles import registers_outside_cycles
from warploom.analysis.shape_transfer import RegisterShapes
from warploom.core.types import PRED
from warploom.llvm.lanes import LANES
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.ptx.ir import Register
from warploom.simt.warp_table import table_words

MANY_BLOCKS = 12
"""A register that is live where so many blocks begin, and that no cycle uses, is kept in memory.
As values of LLVM such registers are phi nodes, which it copies from one place of the stack to
another where blocks meet. A radix sort of 82 blocks took 1.8 times as long with them."""

LINE = 64
"""Contexts, and the places of 32 lanes in them, are aligned to so many bytes."""

RING_AT = 8 * table_words(LANES)
"""Where products in flight stand (`lower.frame.in_flight`): behind the warp's table."""


@dataclass(frozen=True)
class ContextLayout:
    """The places in a context, in bytes from its begin.

    `by_lane`: of registers lane by lane, where code for lanes that have parted reads and writes
    them. `memory`: those of them that all code keeps there.
    `shaped`: of those with a shape somewhere, by it. `together`: where all lanes together put
    registers when they wait: by their shapes if they have these everywhere. `size`: the bytes of a
    context. `lasting`: those up to the end of what it holds from one basic block to another.
    """

    by_lane: Mapping[Register, int]
    shaped: Mapping[Register, int]
    together: Mapping[Register, int]
    size: int
    lasting: int
    memory: frozenset[Register] = frozenset()


def context_layout(
    program: Program,
    shapes: RegisterShapes,
    pieces: Iterable[Register],
    ring_bytes: int,
    *,
    baseline: bool = False,
    memory: frozenset[Register] = frozenset(),
) -> ContextLayout:
    """Returns the layout for a program, whose parameters of calls are `pieces` (`abi.pieces`)
    and whose products in flight take `ring_bytes`. Baseline code keeps all registers in the
    context: those of a single basic block behind the others, where blocks share their places.
    `memory`: the registers that all code keeps there."""
    shared = sorted(shared_registers(program), key=lambda register: register.name)
    held = [*shared, *pieces]
    starts = list(accumulate(map(_bytes, held), initial=RING_AT + ring_bytes))
    by_lane = dict(zip(held, starts, strict=False))
    if baseline:
        local, end = _local_places(program, by_lane, starts[-1])
        return ContextLayout(by_lane | local, {}, by_lane, end, starts[-1])

    def bytes_by_shape(register: Register) -> int:
        return shapes.by_register[register].width * max(1, register.type.bits // 8)

    having = [register for register in shared if register in shapes.by_register]
    having.sort(key=bytes_by_shape, reverse=True)
    packed = list(accumulate(map(bytes_by_shape, having), initial=starts[-1]))
    shaped = dict(zip(having, packed, strict=False))
    lasting = {register: at for register, at in shaped.items() if register in shapes.lasting}
    size = LINE * -(-packed[-1] // LINE)
    return ContextLayout(by_lane, shaped, by_lane | lasting, size, size, memory)


def long_lived_registers(program: Program) -> frozenset[Register]:
    """Returns the registers that many blocks share, and a warp reads and writes a few times only:
    outside of all cycles. A predicate is no such register: as a value it is a mask of 32 bits,
    while each of its lanes is a byte in memory."""
    if program.depth is not None:  # calls come again
        return frozenset()
    blocks = Counter(register for live in program.live_in for register in live)
    shared = {r for r, count in blocks.items() if count >= MANY_BLOCKS and r.type != PRED}
    return registers_outside_cycles(program) & shared


def _bytes(register: Register) -> int:
    """Returns the bytes of a register's place, in whole lines."""
    return LINE * -(-LANES * register.type.bits // 8 // LINE)


def _local_places(
    program: Program, placed: Collection[Register], start: int
) -> tuple[dict[Register, int], int]:
    """Returns places from `start` on of the registers that are used in one basic block only, and
    the end of all. A place is used again once its register has been read for the last time."""
    known = {register.name for register in placed}
    registers: dict[str, Register] = {}
    used: list[list[str]] = []
    for made in program.instructions:
        named = {register.name: register for register in (*reads(made), *writes(made))}
        used.append(sorted(named.keys() - known))
        registers |= named
    sizes = {name: _bytes(register) for name, register in registers.items()}
    by_block = [used[block.start : block.stop] for block in program.blocks]
    blocks_of = Counter(name for inside in by_block for name in frozenset[str]().union(*inside))
    shared = sorted(name for name, count in blocks_of.items() if count > 1)
    *starts, start = accumulate((sizes[name] for name in shared), initial=start)
    places = dict(zip(shared, starts, strict=True))
    end = start
    for used in by_block:
        free: dict[int, list[int]] = {}
        top = start
        last = {name: at for at, inside in enumerate(used) for name in inside}
        for name in shared:
            last.pop(name, None)
        for at, names in enumerate(used):
            for name in names:
                if name not in places and free.get(sizes[name]):
                    places[name] = free[sizes[name]].pop()
                elif name not in places:
                    places[name], top = top, top + sizes[name]
            for name in names:
                if last.get(name) == at:
                    free.setdefault(sizes[name], []).append(places[name])
        end = max(end, top)
    return {registers[name]: at for name, at in places.items()}, end


def shared_registers(program: Program) -> frozenset[Register]:
    """Returns the registers that a basic block may read before it writes them."""
    depth = {program.depth} if program.depth is not None else set[Register]()
    return frozenset(depth).union(*program.live_in)
