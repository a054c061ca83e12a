"""Holds what is true of the code that is being emitted, which emitters read: vector shapes, whether
all lanes are together, predication, spilled registers, thread layout, and the instructions left in
the basic block.

with frame.at_block(5, convergent=True):          code of block 5, for lanes that are together
    with frame.at(replace(frame.position, spilled={})):    no write is also stored
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from warploom.core.types import ScalarType
from warploom.isa.instruction import Register
from warploom.llvm.lanes import Value
from warploom.shapes.operand_shapes import BlockShapes, OperandShapes
from warploom.shapes.vector_shape import VectorShape


class ThreadLayout(Protocol):
    """Types the layout of threads in a thread block (`lower.frame.block_layout`), by which code for
    all warps computes what differs between them."""

    def thread_index(self, dimension: int, width: int) -> Value:
        """Returns `%tid.x`, `.y` or `.z` (0, 1, 2) of the running warp, in `width` lanes."""
        ...

    def overflows(self, value: Value, shape: VectorShape, type: ScalarType) -> Value:
        """Returns true (an i1) if an affine value, given for the first warp, leaves the range of
        `type` in some thread of the block; always for 64-bit types."""
        ...


@dataclass(frozen=True, slots=True)
class Position:
    """Holds what is true of the code that is being emitted.

    `operand_shapes`: the vector shapes of registers and operands in the basic block. `convergent`:
    all lanes of the warp are together; else they have diverged, and registers have 32 lanes.
    `masked`: a predicated block, in which inactive lanes retain their values. `spilled`: the
    registers that convergent code also stores to the context at each write, with their byte offsets
    there. `thread_layout`: that of the thread block, in code for all its warps; None in code for
    one warp. `remaining`: the number of instructions from the one being emitted, included, to the
    end of its basic block.
    """

    operand_shapes: OperandShapes
    convergent: bool = False
    masked: bool = False
    spilled: Mapping[Register, int] = field(default_factory=dict[Register, int])
    thread_layout: ThreadLayout | None = None
    remaining: int = 0

    @property
    def shapes(self) -> BlockShapes:
        """Returns the vector shapes of registers in the basic block."""
        return self.operand_shapes.shapes

    @property
    def is_diverged(self) -> bool:
        """Returns whether some living lanes of the warp may not execute the code."""
        return self.masked or not self.convergent
