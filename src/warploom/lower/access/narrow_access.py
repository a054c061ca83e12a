"""Loads and stores of the first lanes of a warp at consecutive places.

Where these are 1, 2, 4, 8 or 16, the access is as wide as they are: a processor hands on what it
has stored to the next load, and does not where a mask said which lanes store. A reduction in shared
memory halves its lanes from step to step, and each step loads what the one before has stored.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.llvm.lanes import I32, LANES, Lanes, Value, vector
from warploom.llvm.masked_memory import masked_load, masked_store

WIDTHS = (16, 8, 4, 2, 1)


class NarrowAccess:
    """Emits such accesses; where other lanes are on, they go under the mask."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.b = lanes, lanes.b

    def load(self, access_type: AccessType, pointer: Value, on: Value) -> Value:
        """Returns what the lanes load, in 32 lanes: zeros in the others, that nothing is left
        open."""
        b, ways, done = self.b, *self._ways(on)
        found = list[tuple[Value, ir.Block]]()
        for width, way in ways.items():
            b.position_at_end(way)
            if width == LANES:
                value = masked_load(self.lanes, pointer, on, access_type.element)
            else:
                value = self._widened(
                    b.load(pointer, typ=_row(access_type, width), align=access_type.size)
                )
            found.append((value, b.block))
            b.branch(done)
        b.position_at_end(done)
        result = b.phi(vector(access_type.element))
        for value, block in found:
            result.add_incoming(value, block)
        return result

    def store(self, access_type: AccessType, pointer: Value, value: Value, on: Value) -> None:
        """Store each lane's elements of a value."""
        b, ways, done = self.b, *self._ways(on)
        for width, way in ways.items():
            b.position_at_end(way)
            if width == LANES:
                masked_store(self.lanes, value, pointer, on)
            else:
                b.store(self._narrowed(value, width), pointer, align=access_type.size)
            b.branch(done)
        b.position_at_end(done)

    def _ways(self, on: Value) -> tuple[dict[int, ir.Block], ir.Block]:
        """Blocks by how many lanes come there, LANES for any others; and one for behind them."""
        b = self.b
        ways = {width: b.append_basic_block(f"first{width}") for width in (*WIDTHS, LANES)}
        chosen = b.switch(self.lanes.bits(on), ways[LANES])
        for width in WIDTHS:
            chosen.add_case(I32((1 << width) - 1), ways[width])
        return ways, b.append_basic_block("behind")

    def _widened(self, row: Value) -> Value:
        count = row.type.count
        lanes = [*range(count), *[count] * (LANES - count)]
        zeros = ir.Constant(row.type, None)
        return self.b.shuffle_vector(row, zeros, ir.Constant(vector(I32), [I32(n) for n in lanes]))

    def _narrowed(self, value: Value, width: int) -> Value:
        lanes = ir.Constant(ir.VectorType(I32, width), [I32(n) for n in range(width)])
        return self.b.shuffle_vector(value, value, lanes)


def _row(access_type: AccessType, width: int) -> ir.VectorType:
    return ir.VectorType(access_type.element, width)
