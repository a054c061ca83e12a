"""`cp.async`: bytes from global to shared memory, complete as soon as they are asked for.

Lanes that copy a part only take it byte by byte, so that nothing beyond it is reached.
"""

from __future__ import annotations

import numpy as np

from warploom.core.types import PRED, U32
from warploom.machine.launch import WARP_SIZE
from warploom.machine.reference.access import Request, gather, scatter
from warploom.machine.reference.lanes import Values, splat, to_mask
from warploom.machine.reference.operands import addresses, read
from warploom.machine.reference.state import Warp
from warploom.ptx.ir import Address, Immediate, Instruction, Register, Space


def copy(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`[d] = [a]`, `size` bytes a lane, of which some come as zeros (PTX ISA, cp.async)."""
    to, source, size = instruction.operands[:3]
    assert isinstance(to, Address)
    assert isinstance(source, Address)
    assert isinstance(size, Immediate)
    where = addresses(warp, source)
    wanted = _counts(warp, instruction, size.value)
    whole = mask & to_mask(wanted == size.value)
    data = gather(warp, Request(index, Space.GLOBAL, "load", size.value), where, whole)
    for place in range(size.value):
        some = mask & ~whole & to_mask(wanted > place)
        single = Request(index, Space.GLOBAL, "load", 1)
        if some:
            found = gather(warp, single, [start + place for start in where], some)
            data[:, place] |= found[:, 0]
    to_shared = Request(index, Space.SHARED, "store", size.value)
    scatter(warp, to_shared, addresses(warp, to), data, mask)


def _counts(warp: Warp, instruction: Instruction, size: int) -> Values:
    """How many bytes each lane takes from global memory."""
    given = instruction.operands[3:]
    if "L2::cache_hint" in instruction.operation.modifiers:
        given = given[:-1]
    if not given:
        return splat(size, U32, WARP_SIZE)
    if isinstance(given[0], Register) and given[0].type == PRED:
        return np.where(read(warp, given[0], PRED), 0, size).astype(np.uint32)
    return np.minimum(read(warp, given[0], U32), size).astype(np.uint32)
