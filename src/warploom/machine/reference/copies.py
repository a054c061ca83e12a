"""`cp.async`: bytes between global and shared memory; stores, those of many zeros included; and
atomics with what they tell mbarriers. Where they complete late, what was there is put back
(`asynchronous.late_copies`).

Lanes that copy a part only take it byte by byte, so that nothing beyond it is reached.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.tensors.requests import (
    BARRIER_ROW,
    GLOBAL_ROW,
    SHARED_ROW,
    SIZE_ROW,
    VALUE_ROW,
)
from warploom.core.types import PRED, U32, U64
from warploom.isa.ops.mbarrier import COMPLETE_TX
from warploom.machine.reference import access
from warploom.machine.reference.access import AccessRequest, gather, lane_accesses, scatter
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import Values, collect, resized, splat, to_mask
from warploom.machine.reference.operands import addresses, read
from warploom.machine.reference.preconditions import check_word
from warploom.machine.reference.state import Warp
from warploom.machine.reference.tensors import address_words, deferring
from warploom.program.accesses import (
    BULK_FILL_BYTES,
    BULK_PIECE_BYTES,
    accesses,
    bytes_of,
    is_bulk_copy,
    is_bulk_fill,
    space_of,
)
from warploom.program.effects.completions import completion
from warploom.ptx.ir import Address, Immediate, Instruction, Register, Space
from warploom.simt.schedule_layout import (
    CHANGES,
)


def copy(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`[d] = [a]`, `size` bytes a lane, of which some come as zeros (PTX ISA, cp.async)."""
    if is_bulk_copy(instruction.operation):
        _bulk_copy(warp, index, instruction, mask)
        return
    to, source, size = instruction.operands[:3]
    assert isinstance(to, Address)
    assert isinstance(source, Address)
    assert isinstance(size, Immediate)
    wanted = _bytes_to_read(warp, instruction, size.value)
    taken = np.minimum(wanted.astype(np.int64), size.value)
    rows = {
        SHARED_ROW: address_words(warp, to),
        GLOBAL_ROW: address_words(warp, source),
        SIZE_ROW: taken,
        VALUE_ROW: size.value - taken,
    }
    to_shared = AccessRequest(index, Space.SHARED, "store", size.value)
    with deferring(warp, instruction, mask, rows):
        _copy_lanes(warp, to_shared, (to, source), wanted, mask)


def _copy_lanes(
    warp: Warp, to_shared: AccessRequest, places: tuple[Address, Address], wanted: Values, mask: int
) -> None:
    """Loads from the second and stores to the first of two places, in each lane."""
    index, size = to_shared.index, to_shared.size
    to, source = places
    where = addresses(warp, source)
    whole = mask & to_mask(wanted == size)
    data = gather(warp, AccessRequest(index, Space.GLOBAL, "load", size), where, whole)
    for place in range(size):
        some = mask & ~whole & to_mask(wanted > place)
        single = AccessRequest(index, Space.GLOBAL, "load", 1)
        if some:
            found = gather(warp, single, [start + place for start in where], some)
            data[:, place] |= found[:, 0]
    scatter(warp, to_shared, addresses(warp, to), data, mask)


def _bulk_copy(warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
    """`cp.async.bulk`: every lane copies `size` bytes of its own, piece by piece; then an mbarrier
    hears of them, where one is named. What it hears is one more store."""
    to, source, size, *rest = instruction.operands
    (origin, _), _ = accesses(instruction)
    wanted = read(warp, size, U32).astype(np.int64)
    rows = {
        SHARED_ROW: address_words(warp, to),
        GLOBAL_ROW: address_words(warp, source),
        SIZE_ROW: wanted,
    }
    if origin is Space.SHARED:
        rows |= {SHARED_ROW: address_words(warp, source), GLOBAL_ROW: address_words(warp, to)}
    barrier = rest[0] if "mbarrier::complete_tx::bytes" in instruction.operation.modifiers else None
    if barrier is not None:
        rows[BARRIER_ROW] = address_words(warp, barrier)
    with deferring(warp, instruction, mask, rows):
        _copy_pieces(warp, index, instruction, wanted, mask)
        if barrier is not None:
            assert isinstance(barrier, Address)
            request = AccessRequest(index, Space.SHARED, "store", U64.bytes)
            _complete_mbarriers(
                warp, request, addresses(warp, barrier), wanted.astype(np.uint64), mask
            )


def _copy_pieces(
    warp: Warp, index: int, instruction: Instruction, wanted: Values, mask: int
) -> None:
    """Copies the bytes of each lane, piece by piece."""
    (origin, _), (target, _) = accesses(instruction)
    to, source = instruction.operands[:2]
    assert isinstance(to, Address)
    assert isinstance(source, Address)
    starts, ends = addresses(warp, source), addresses(warp, to)
    for offset in range(0, int(wanted.max()), BULK_PIECE_BYTES):
        some = mask & to_mask(wanted >= offset + BULK_PIECE_BYTES)
        if some:
            load = AccessRequest(index, origin, "load", BULK_PIECE_BYTES)
            data = gather(warp, load, [start + offset for start in starts], some)
            store = AccessRequest(index, target, "store", BULK_PIECE_BYTES)
            scatter(warp, store, [end + offset for end in ends], data, some)


def _late_copy_operands(warp: Warp, instruction: Instruction) -> dict[int, npt.NDArray[np.int64]]:
    """Returns the operands of `asynchronous.late_copies` of an `st.async` or a `red.async`."""
    return {
        SHARED_ROW: address_words(warp, instruction.operands[0]),
        BARRIER_ROW: address_words(warp, instruction.operands[2]),
        SIZE_ROW: np.full(warp.size, bytes_of(instruction), np.int64),
    }


def update(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`atom` and `red`: of a `red.async`, the mbarrier is told behind it."""
    completing = completion(instruction)
    if completing is None:
        access.atomic(warp, index, instruction, mask, on)
        return
    given = read(warp, instruction.operands[1], instruction.operation.modifiers.scalar())
    rows = _late_copy_operands(warp, instruction) | {GLOBAL_ROW: resized(given, 64).view(np.int64)}
    with deferring(warp, instruction, mask, rows):
        access.atomic(warp, index, instruction, mask, on)
        access.atomic(warp, index, completing, mask, on)


def store(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`st`, of a register or (`st.bulk`) of zeros: every lane fills `size` bytes of its own."""
    completing = completion(instruction)
    if completing is not None:
        with deferring(warp, instruction, mask, _late_copy_operands(warp, instruction)):
            access.store(warp, index, instruction, mask, on)
            access.atomic(warp, index, completing, mask, on)
        return
    if not is_bulk_fill(instruction.operation):
        access.store(warp, index, instruction, mask, on)
        return
    to, size = instruction.operands[:2]
    assert isinstance(to, Address)
    wanted, starts = read(warp, size, U64), addresses(warp, to)
    request = AccessRequest(index, space_of(instruction), "store", BULK_FILL_BYTES)
    zeros = np.zeros((warp.size, BULK_FILL_BYTES), np.uint8)
    for offset in range(0, int(wanted.max()), BULK_FILL_BYTES):
        some = mask & to_mask(wanted >= offset + BULK_FILL_BYTES)
        if some:
            scatter(warp, request, [start + offset for start in starts], zeros, some)


def _complete_mbarriers(
    warp: Warp, request: AccessRequest, where: Sequence[int], amounts: Values, mask: int
) -> None:
    """Tell mbarriers of bytes that have come."""
    for one in lane_accesses(warp, request, where, mask):
        old = int.from_bytes(one.store.read(one.address, U64.bytes), "little")
        need = COMPLETE_TX.spec.memory_precondition
        check_word(warp, request.index, one.lane, need, (one.space, one.address, old))
        given = [collect([old], U64), amounts[one.lane : one.lane + 1]]
        new = int(evaluate(COMPLETE_TX.combine(1), given, 1)[0])
        one.store.write(one.address, new.to_bytes(U64.bytes, "little"))
    warp.run.plan[CHANGES] += mask != 0


def _bytes_to_read(warp: Warp, instruction: Instruction, size: int) -> Values:
    """Returns how many bytes each lane takes from global memory."""
    given = instruction.operands[3:]
    if "L2::cache_hint" in instruction.operation.modifiers:
        given = given[:-1]
    if not given:
        return splat(size, U32, warp.size)
    if isinstance(given[0], Register) and given[0].type == PRED:
        return np.where(read(warp, given[0], PRED), 0, size).astype(np.uint32)
    return read(warp, given[0], U32)
