"""Emits loads and stores of consecutive elements by the first 1, 2, 4, 8 or 16 lanes of a warp, at
exactly that width.

A processor forwards a store to a later load of the same width, but does not forward masked stores.
A reduction in shared memory halves its lanes at each step, and each step loads what the one before
has stored:

    mask 0xff:  store <8 x i32>     then   load <8 x i32>    forwarded
    mask 0xff:  masked.store <32>   then   masked.load <32>  waits for the cache

Any other mask leads to the masked form.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.llvm.lanes import I32, LANES, Lanes, Value, vector
from warploom.llvm.masked_memory import masked_load, masked_store

WIDTHS = (16, 8, 4, 2, 1)


class NarrowAccess:
    """Emits accesses to consecutive elements that first switch on the mask, to avoid masked ones.

    If the active lanes are a warp's first 1, 2, 4, 8 or 16, the access has that width, without a
    mask."""

    def __init__(self, lanes: Lanes) -> None:
        """Stores `lanes` and its builder."""
        self.lanes, self.b = lanes, lanes.b

    def load(self, access_type: AccessType, pointer: Value, on: Value) -> Value:
        """Emits a load of consecutive elements from `pointer` (lane 0's) by the lanes `on`: a
        vector load of exactly that width if the mask is the first 1, 2, 4, 8 or 16 lanes, else a
        masked load. Returns them in 32 lanes, zeros in inactive ones. The access type has one
        part."""
        b, blocks, done = self.b, *self._switch_on_mask(on)
        results = list[tuple[Value, ir.Block]]()
        for width, block in blocks.items():
            b.position_at_end(block)
            if width == LANES:
                value = masked_load(self.lanes, pointer, on, access_type.element)
            else:
                value = self._widened(
                    b.load(pointer, typ=_narrow_vector(access_type, width), align=access_type.size)
                )
            results.append((value, b.block))
            b.branch(done)
        b.position_at_end(done)
        result = b.phi(vector(access_type.element))
        for value, block in results:
            result.add_incoming(value, block)
        return result

    def store(self, access_type: AccessType, pointer: Value, value: Value, on: Value) -> None:
        """Emits a store of consecutive elements of the lanes `on` to `pointer` (lane 0's), as a
        vector of exactly that width if the mask is the first 1, 2, 4, 8 or 16 lanes, else under the
        mask. The access type has one part."""
        b, blocks, done = self.b, *self._switch_on_mask(on)
        for width, block in blocks.items():
            b.position_at_end(block)
            if width == LANES:
                masked_store(self.lanes, value, pointer, on)
            else:
                b.store(self._narrowed(value, width), pointer, align=access_type.size)
            b.branch(done)
        b.position_at_end(done)

    def _switch_on_mask(self, on: Value) -> tuple[dict[int, ir.Block], ir.Block]:
        """Emits a switch on the mask. Returns its targets, by the number of lanes of a mask of the
        first 1, 2, 4, 8 or 16 lanes, LANES for any other mask, and the block that follows.
        """
        b = self.b
        blocks = {width: b.append_basic_block(f"first{width}") for width in (*WIDTHS, LANES)}
        switch = b.switch(self.lanes.bits(on), blocks[LANES])
        for width in WIDTHS:
            switch.add_case(I32((1 << width) - 1), blocks[width])
        return blocks, b.append_basic_block("moved")

    def _widened(self, narrow: Value) -> Value:
        """Returns a vector widened to 32 lanes with zeros."""
        count = narrow.type.count
        lanes = [*range(count), *[count] * (LANES - count)]
        zeros = ir.Constant(narrow.type, None)
        return self.b.shuffle_vector(
            narrow, zeros, ir.Constant(vector(I32), [I32(n) for n in lanes])
        )

    def _narrowed(self, value: Value, width: int) -> Value:
        """Returns the first `width` lanes of a vector."""
        lanes = ir.Constant(ir.VectorType(I32, width), [I32(n) for n in range(width)])
        return self.b.shuffle_vector(value, value, lanes)


def _narrow_vector(access_type: AccessType, width: int) -> ir.VectorType:
    """Returns the type of a vector of `width` elements of an access, as integers."""
    return ir.VectorType(access_type.element, width)
