"""Lays out a warp's context: the memory that holds the state of a warp while others run.

A context is the warp's table (its SIMT stack, `simt.warp_table`), the ring of products in flight,
then registers. A register that several basic blocks share has a slot of 32 lanes, and if it is
uniform or affine somewhere, a second slot of one value for each run of lanes. A slot of 32 lanes is
a whole number of cache lines (64 bytes), a predicate's is 4 bytes of bits in one line.

    %f1 .b32 varying, %p1 .pred varying, %r1 .b32 affine<1>
    ->   table | ring | %f1 (128 bytes) | %p1 (64) | %r1 (128) | %r1, first lane (4) | up to a line

Baseline code stores all registers in the context; registers of a single basic block share slots
there, by a linear scan of each block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from warploom.isa.instruction import Register
from warploom.llvm.lanes import LANES
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.shapes.operand_shapes import RegisterShapes
from warploom.simt.warp_table import table_words

LINE = 64
"""The alignment of contexts, and of slots of 32 lanes in them, in bytes."""

RING_AT = 8 * table_words(LANES)
"""The offset of the ring of products in flight (`lower.frame.in_flight`), after the warp's
table."""


@dataclass(frozen=True)
class ContextLayout:
    """Holds the byte offsets of registers in a context. `by_lane`: offsets of slots of 32 lanes,
    which code for diverged lanes reads and writes. `shaped`: offsets of the short slots (one value
    for each run) of registers that are uniform or affine somewhere. `together`: the slots to which
    a convergent warp saves registers when it is suspended: the short one of a register that is
    uniform or affine everywhere, else that of 32 lanes. `size`: the bytes of a context. `lasting`:
    the bytes from its begin that are live across basic blocks."""

    by_lane: Mapping[Register, int]
    shaped: Mapping[Register, int]
    together: Mapping[Register, int]
    size: int
    lasting: int


def context_layout(
    program: Program,
    shapes: RegisterShapes,
    pieces: Iterable[Register],
    ring_bytes: int,
    *,
    baseline: bool = False,
) -> ContextLayout:
    """Returns the layout of a program's contexts. In order, a context has the warp's table; the
    ring of products in flight (`ring_bytes`); slots of 32 lanes for `shared_registers` and `pieces`
    (parameters of calls, `abi.pieces`); and short slots for the shared registers that are uniform
    or affine in some block. Of those that are so in every block, `together` has the short slot
    instead of that of 32 lanes. For `baseline` code there are no short slots: registers of a single
    basic block follow, in slots that blocks share."""
    shared = sorted(shared_registers(program), key=lambda register: register.name)
    held = [*shared, *pieces]
    starts = list(accumulate(map(_slot_bytes, held), initial=RING_AT + ring_bytes))
    by_lane = dict(zip(held, starts, strict=False))
    if baseline:
        local, end = _allocate_local_slots(program, by_lane, starts[-1])
        return ContextLayout(by_lane | local, {}, by_lane, end, starts[-1])

    def bytes_by_shape(register: Register) -> int:
        """Returns the bytes of a register's short slot: the `width` of its shape, times the bytes
        of its type (at least 1)."""
        return shapes.by_register[register].width * max(1, register.type.bits // 8)

    having = [register for register in shared if register in shapes.by_register]
    # Sizes are powers of two: the largest first, so that each slot is aligned to its elements.
    having.sort(key=bytes_by_shape, reverse=True)
    packed = list(accumulate(map(bytes_by_shape, having), initial=starts[-1]))
    shaped = dict(zip(having, packed, strict=False))
    lasting = {register: at for register, at in shaped.items() if register in shapes.lasting}
    size = LINE * -(-packed[-1] // LINE)
    return ContextLayout(by_lane, shaped, by_lane | lasting, size, size)


def _slot_bytes(register: Register) -> int:
    """Returns the bytes of a register's slot of 32 lanes, rounded up to whole lines."""
    return LINE * -(-LANES * register.type.bits // 8 // LINE)


def _allocate_local_slots(
    program: Program, placed: Collection[Register], start: int
) -> tuple[dict[Register, int], int]:
    """Allocates slots from `start` on for the registers that have none: those that no basic block
    reads before it writes them. Returns the offsets of these registers, and the end of all slots.

    A register of one basic block is given a slot by a linear scan of the block: at its first use it
    gets a free slot of its size, which is free again after its last use; each block begins anew. A
    register that several blocks use has a slot of its own.
    """
    names_placed = {register.name for register in placed}
    registers: dict[str, Register] = {}
    used: list[list[str]] = []
    for instruction in program.instructions:
        named = {
            register.name: register for register in (*reads(instruction), *writes(instruction))
        }
        used.append(sorted(named.keys() - names_placed))
        registers |= named
    sizes = {name: _slot_bytes(register) for name, register in registers.items()}
    by_block = [used[block.start : block.stop] for block in program.blocks]
    blocks_of = Counter(name for inside in by_block for name in frozenset[str]().union(*inside))
    shared = sorted(name for name, count in blocks_of.items() if count > 1)
    *starts, start = accumulate((sizes[name] for name in shared), initial=start)
    offsets = dict(zip(shared, starts, strict=True))
    end = start
    for used in by_block:
        free: dict[int, list[int]] = {}
        top = start
        last = {name: at for at, inside in enumerate(used) for name in inside}
        # Registers of several blocks keep their slots: these are never free.
        for name in shared:
            last.pop(name, None)
        for at, names in enumerate(used):
            for name in names:
                if name not in offsets and free.get(sizes[name]):
                    offsets[name] = free[sizes[name]].pop()
                elif name not in offsets:
                    offsets[name], top = top, top + sizes[name]
            # The last uses free slots only now: no result of an instruction is given the slot of
            # one of its operands, which the shared function may still have to read.
            for name in names:
                if last.get(name) == at:
                    free.setdefault(sizes[name], []).append(offsets[name])
        end = max(end, top)
    return {registers[name]: at for name, at in offsets.items()}, end


def shared_registers(program: Program) -> frozenset[Register]:
    """Returns the registers that some basic block may read before it writes them: all live-ins."""
    return frozenset[Register]().union(*program.live_in)
