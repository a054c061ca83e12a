"""`wmma.load` and `wmma.store` as plain accesses: which bytes each lane moves to which register.

Neighbors that share a register move together where memory has them side by side. Source: PTX ISA,
"Matrix Storage"; strides are in elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.core.types import ScalarType, unsigned
from warploom.isa.fragments import Fragment
from warploom.isa.ops.matrix import fragment_of, whole
from warploom.isa.spec import Operation


@dataclass(frozen=True)
class MatrixMove:
    """A load or a store of a fragment. `by_rows` says that the columns of the fragment are side by
    side in memory (for B, whose columns are its rows: along k)."""

    fragment: Fragment
    op: str
    by_rows: bool

    @property
    def stores(self) -> bool:
        """Returns whether the fragment is stored."""
        return self.op == "store"

    @property
    def unit(self) -> int:
        """Returns the number of elements of memory in one element of the fragment: bits come by
        words."""
        return 32 if self.fragment.type == "b1" else 1

    @property
    def leading(self) -> int:
        """Returns the stride where none is written: the matrix has no gaps."""
        f = self.fragment
        return (f.columns if self.by_rows else f.rows) * self.unit


@dataclass(frozen=True)
class Piece:
    """The part that one access moves in each lane: `type` at `shift` bits in a register."""

    move: MatrixMove
    element: int
    type: ScalarType
    register: int
    shift: int

    def steps(self, lane: int) -> tuple[int, int]:
        """Returns how many strides and how many elements the piece is behind the start of the
        matrix."""
        row, column = self.move.fragment.position(lane, self.element)
        far, near = (row, column) if self.move.by_rows else (column, row)
        return far, near * self.move.unit

    @property
    def element_bits(self) -> int:
        """Returns the number of bits of one element in memory."""
        return self.move.fragment.bits // self.move.unit

    def offset(self, lane: int, stride: int) -> int:
        """Returns the number of bytes from the start of the matrix."""
        far, near = self.steps(lane)
        return (far * stride + near) * self.element_bits // 8


def matrix_move(operation: Operation) -> MatrixMove:
    """Returns what a `wmma.load` or `wmma.store` moves."""
    m = operation.modifiers
    role = m.text("role", "")
    fragment = fragment_of(whole(operation.name, m), role, m.text("type", ""))
    by_rows = (m["layout"] == "row") != (role == "b")
    return MatrixMove(fragment, m.text("access", ""), by_rows)


def pieces(move: MatrixMove) -> Iterator[Piece]:
    """Yields the accesses that move a fragment, in the order in which they are made."""
    fragment = move.fragment
    together = fragment.packed if move.by_rows else 1
    for element in range(0, fragment.count, together):
        register, inside = divmod(element, fragment.packed)
        type = unsigned(together * fragment.bits)
        yield Piece(move, element, type, register, inside * fragment.bits)
