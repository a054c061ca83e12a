"""Emits packed copies of the registers that interleaved batches (`lower.loops.interleaved_batches`)
use. Contexts of warps are kilobytes long, each on a page of the host of its own; packed, the
registers of 256 warps are a few kilobytes.

    loop over i, 1 value in an i32; pointers a, c, 1 value each; step, uniform:
    record of a warp:  a (8 bytes) | c (8) | i (4) | step (4)
    warps of a team:   record 0 | record 1 | ..."""

from __future__ import annotations

from collections.abc import Callable, Collection

from llvmlite import ir

from warploom.isa.instruction import Register
from warploom.llvm.lanes import I8, I64, LANES, PTR, Value
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.register_memory import RegisterMemory, stored_size
from warploom.shapes.operand_shapes import BlockShapes
from warploom.simt.teams import TEAM_WARPS

ALIGNMENT = 64
"""The alignment of records of at least that size, in bytes: a line of the host's caches."""

MOST_BYTES = 1 << 18
"""The most bytes of a team's records. With larger ones, which a loop with more than eight sums of
32 lanes has, blocks run such a loop one by one: stacks of threads are small on some systems."""

MOST_WARPS = 32
"""The most warps of a thread block, on any device."""


class InterleavedRegisters(RegisterMemory):
    """Saves and restores `registers` of the warps of a team, or of one block (`forms_team`), in the
    forms that a loop's batch assumes (`shapes`)."""

    def __init__(
        self,
        frame: Frame,
        registers: Collection[Register],
        shapes: BlockShapes,
        *,
        allows_team: bool,
    ) -> None:
        """Allocates a record for each warp, in the frame of the call. `allows_team`: blocks can run
        the loop as a team, if its records are not too large."""
        widths = {r: shapes[r].width if r in shapes else LANES for r in registers}
        sizes = {r: stored_size(r, width) for r, width in widths.items()}
        self._offsets: dict[Register, int] = {}
        end = 0
        # The largest ones first, so that each is aligned to its size.
        for register in sorted(registers, key=lambda r: (-sizes[r], r.name)):
            self._offsets[register] = end
            end += sizes[register]
        largest = max(sizes.values(), default=1)
        alignment = min(ALIGNMENT, largest)
        super().__init__(frame.lanes, alignment)
        self._frame = frame
        self._size = -(-end // alignment) * alignment
        self.forms_team = allows_team and TEAM_WARPS * self._size <= MOST_BYTES
        warps = TEAM_WARPS if self.forms_team else MOST_WARPS
        records = ir.ArrayType(I8, warps * self._size)
        self._records = frame.prologue.alloca(records, align=ALIGNMENT)
        self._current = frame.variable(PTR)

    def base(self) -> Value:
        """Returns the address of the current warp's record."""
        return self.lanes.b.load(self._current, typ=PTR)

    def each(self, body: Callable[[], None], loop: Callable[[Callable[[], None]], None]) -> None:
        """Emits `body` for each warp of a team, in the order of `loop`, with the warp's record as
        the current one."""
        b = self.lanes.b
        b.store(self._records, self._current)

        def advance() -> None:
            """Emits the body, and makes the next record the current one."""
            body()
            next_record = b.gep(self.base(), [I64(self._size)], source_etype=I8)
            b.store(next_record, self._current)

        loop(advance)

    def save(self, registers: Collection[Register]) -> None:
        """Stores these registers in the current record. The position has the shapes of the batch,
        as in `restore`."""
        for register in sorted(registers, key=lambda r: r.name):
            value = self._frame.registers.load(register, self._frame.registers.width(register))
            self.set(register, value, self._offsets[register])

    def restore(self) -> None:
        """Loads all registers of the current record."""
        values = self._frame.registers
        for register, offset in self._offsets.items():
            values.store(register, self.get(register, offset, values.width(register)))
