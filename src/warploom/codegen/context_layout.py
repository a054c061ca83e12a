"""Layout of a warp's context, which keeps its state while others run: its table, products in
flight, then its registers.

A register that several basic blocks share has a place for 32 lanes; and, if it has a shape
somewhere, a place for as many values as the shape has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from warploom.analysis.program import Program
from warploom.analysis.shapes import Shapes
from warploom.codegen.lanes import LANES
from warploom.ptx.ir import Register
from warploom.rules.warp_table import table_words

LINE = 64
"""Contexts, and the places of 32 lanes in them, are aligned to so many bytes."""

RING_AT = 8 * table_words(LANES)
"""Where products in flight stand (`codegen.in_flight`): behind the warp's table."""


@dataclass(frozen=True)
class ContextLayout:
    """The places in a context, in bytes from its begin.

    `apart`: of registers lane by lane, where code for lanes that have parted reads and writes them.
    `shaped`: of those with a shape somewhere, by it. `together`: where all lanes together put
    registers when they wait: by their shapes if they have these everywhere. `size`: the bytes of a
    context.
    """

    apart: Mapping[Register, int]
    shaped: Mapping[Register, int]
    together: Mapping[Register, int]
    size: int


def context_layout(
    program: Program, shapes: Shapes, pieces: Iterable[Register], ring_bytes: int
) -> ContextLayout:
    """Returns the layout for a program, whose parameters of calls are `pieces` (`codegen.pieces`)
    and whose products in flight take `ring_bytes`."""
    shared = sorted(shared_registers(program), key=lambda register: register.name)
    held = [*shared, *pieces]
    sizes = [LINE * -(-LANES * register.type.bits // 8 // LINE) for register in held]
    starts = list(accumulate(sizes, initial=RING_AT + ring_bytes))
    apart = dict(zip(held, starts, strict=False))

    def size(register: Register) -> int:
        return shapes.known[register].width * max(1, register.type.bits // 8)

    having = [register for register in shared if register in shapes.known]
    having.sort(key=size, reverse=True)
    packed = list(accumulate(map(size, having), initial=starts[-1]))
    shaped = dict(zip(having, packed, strict=False))
    lasting = {register: at for register, at in shaped.items() if register in shapes.lasting}
    return ContextLayout(apart, shaped, apart | lasting, LINE * -(-packed[-1] // LINE))


def shared_registers(program: Program) -> frozenset[Register]:
    """Returns the registers that a basic block may read before it writes them."""
    depth = {program.depth} if program.depth is not None else set[Register]()
    return frozenset(depth).union(*program.live_in)
