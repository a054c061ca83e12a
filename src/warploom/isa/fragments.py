"""Lays matrices out over the lanes of a warp: which lane and register holds which element.

Stated once, for both machines. Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate
Instructions", the figures of each fragment. They have one pattern: a tile of eight rows goes to the
lanes by fours (row = lane / 4), `run` neighboring columns to each lane; further tiles follow in
the lane's next elements, down first, then to the right.

B is written with its columns as rows: its tile covers eight columns, and elements run along k. The
fragments of `wmma`, which the manual leaves open, follow the same pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warploom.core.lazy import cached_property
from warploom.isa.scales import Scales
from warploom.isa.sparsity import Sparsity

WARP = 32
TILE_ROWS = 8
LANES_PER_ROW = 4

WIDTHS = {
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("e4m3", "e5m2", "s8", "u8", "e3m2", "e2m3", "e2m1 in a byte"), 8),
    **dict.fromkeys(("s4", "u4", "e2m1"), 4),
    **dict.fromkeys(("tf32", "f32", "s32", "b1"), 32),
    "f64": 64,
}
"""Bits of an element with its padding; those of b1 are taken 32 at a time, along k."""

Position = tuple[int, int]
"""Row and column (for B: column and k)."""


@dataclass(frozen=True)
class Fragment:
    """A matrix of `rows` x `columns` elements of `type` in a warp, `count` elements to a lane.

    `position(lane, element)` is where an element of a lane stands in the matrix.
    """

    type: str
    rows: int
    columns: int
    count: int
    position: Callable[[int, int], Position]

    @property
    def bits(self) -> int:
        """Returns the number of bits of an element."""
        return WIDTHS[self.type]

    @property
    def packed(self) -> int:
        """Returns the number of elements in a register."""
        return max(1, 32 // self.bits)

    @property
    def registers(self) -> int:
        """Returns the number of registers of a lane."""
        return self.count // self.packed

    @cached_property
    def holders(self) -> dict[Position, Position]:
        """Returns the (lane, element) that holds each place; of several, the first."""
        found: dict[Position, Position] = {}
        for element in range(self.count):
            for lane in range(WARP):
                found.setdefault(self.position(lane, element), (lane, element))
        return found


def tiled(type: str, rows: int, columns: int, run: int, count: int | None = None) -> Fragment:
    """Returns the common pattern. With a `count` beyond what the matrix needs, it comes more than
    once."""
    tiles_down = rows // TILE_ROWS
    distinct = rows * columns // WARP

    def position(lane: int, element: int) -> Position:
        tile, inside = divmod(element % distinct, run)
        right, down = divmod(tile, tiles_down)
        row = down * TILE_ROWS + lane // LANES_PER_ROW
        return row, (right * LANES_PER_ROW + lane % LANES_PER_ROW) * run + inside

    return Fragment(type, rows, columns, count or distinct, position)


def operand(type: str, rows: int, depth: int, count: int | None = None) -> Fragment:
    """Returns A (rows of m) or B (rows of n), `depth` elements along k; a register holds neighbors
    along k."""
    columns = depth // 32 if type == "b1" else depth
    return tiled(type, rows, columns, max(1, 32 // WIDTHS[type]), count)


def accumulator(type: str, rows: int, columns: int) -> Fragment:
    """Returns C or D: a lane holds pairs of neighbors in a row."""
    return tiled(type, rows, columns, 2)


# ---- m8n8k4 on f16 ------------------------------------------------------------------------------


def _quad(lane: int) -> tuple[int, int]:
    """Returns the number of the product that a lane works for, and whether in its upper half."""
    return lane % 16 // 4, int(lane >= 16)


def quad_operand(along: bool) -> Fragment:
    """Returns A or B of the four 8x8x4 products that `mma.m8n8k4` computes at once, one below the
    other.

    `along` says that a lane holds neighbors along k (A in rows, B in columns).
    """

    def position(lane: int, element: int) -> Position:
        product, upper = _quad(lane)
        row, k = (lane % 4, element) if along else (element, lane % 4)
        return 8 * product + 4 * upper + row, k

    return Fragment("f16", 32, 4, 4, position)


def quad_accumulator(type: str) -> Fragment:
    """Returns C or D of the four products, which stand on the diagonal of one large matrix."""

    def position(lane: int, element: int) -> Position:
        product, upper = _quad(lane)
        row, column = lane % 4, element
        if type == "f32":
            row = (lane & 1) + (element & 2)
            column = (element & 4) + (lane & 2) + (element & 1)
        return 8 * product + 4 * upper + row, 8 * product + column

    return Fragment(type, 32, 32, 8, position)


# ---- shapes -------------------------------------------------------------------------------------


def extents(shape: str) -> tuple[int, int, int]:
    """Returns m, n and k of a shape such as "m16n8k16"."""
    m, n, k = (int(part) for part in re.findall(r"\d+", shape))
    return m, n, k


@dataclass(frozen=True)
class Product:
    """D = A * B + C by its fragments; `logic` ("xor", "and") is how bits of b1 meet.

    With a `sparsity`, the fragment of A is what is stored of it. With `scales`, blocks of A and B
    are multiplied by numbers of their own.
    """

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    saturates: bool = False
    logic: str = ""
    sparsity: Sparsity | None = None
    scales: Scales | None = None

    @property
    def depth(self) -> int:
        """Returns the number of products in the sum of an element of D."""
        return self.a.columns

    @property
    def sources(self) -> int:
        """Returns the number of registers with A, B, C and metadata; those with scales stand behind
        them."""
        metadata = 0 if self.sparsity is None else 1
        return self.a.registers + self.b.registers + self.c.registers + metadata
