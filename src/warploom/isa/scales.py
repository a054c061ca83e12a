"""Scales of blocks in `mma`: which lane holds, in which byte, the scale of a block of A or B.

Each row of A, and each column of B, is cut along k into `count` blocks; a block is multiplied by a
scale of eight bits. One lane holds the scales of a row in neighboring bytes of a register; the
tuples {byte-id, thread-id} say in which bytes, and in which of the lanes that could.

Source: PTX ISA, "Block Scaling for mma.sync" (sizes, types and selectors); NVIDIA's CUTLASS for
the lanes (`SFALayout` and `SFBLayout` in include/cute/atom/mma_traits_sm120.hpp, for the thread 0);
ptxas for the numbers that selectors can be.
"""

from __future__ import annotations

from dataclasses import dataclass

GROUP = 4
"""Neighboring lanes that hold the rows r and r + 8 of A, or one column of B, between them."""

GROUPS = 8
BYTE_BITS = 8
BYTES = 4
"""Bytes of the register with the scales."""

BLOCKS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
DEFAULT_BLOCKS = {"kind::mxf8f6f4": 1, "kind::mxf4": 2}
"""Blocks along k where `.scale_vec` is left out."""


@dataclass(frozen=True)
class ScaleSide:
    """The scales of A or B: `lanes` neighboring lanes hold them for a group of rows, one each."""

    lanes: int

    @property
    def threads(self) -> int:
        """Returns how many values the thread selector has."""
        return GROUP // self.lanes

    def holder(self, row: int) -> int:
        """Returns the lane that holds the scales of a row of A (column of B) with thread 0."""
        upper, group = divmod(row, GROUPS)
        return GROUP * group + upper

    def contributor(self, lane: int, thread: int) -> int:
        """Returns the lane whose scales stand where those of `lane` would with thread 0."""
        group_start = lane - lane % GROUP
        return group_start + (lane % GROUP + thread * self.lanes) % GROUP


A_SCALES, B_SCALES = ScaleSide(lanes=2), ScaleSide(lanes=1)


@dataclass(frozen=True)
class Scales:
    """The scales of a product: `count` blocks along k, of numbers of type `type`."""

    type: str
    count: int

    @property
    def bytes(self) -> tuple[int, ...]:
        """Returns what the byte selector can be."""
        return tuple(range(0, BYTES, self.count))

    def block(self, k: int, depth: int) -> int:
        """Returns the block of the k-th of `depth` elements; of a sparse row, of those stored."""
        return k * self.count // depth
