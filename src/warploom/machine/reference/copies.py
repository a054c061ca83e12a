"""Executes copies that lanes issue on the reference machine: `cp.async` and `cp.async.bulk`, stores
(`st.async` and `st.bulk` included), and `red.async` with its mbarrier update.

If the schedule completes a copy late, the bytes that it overwrote are restored until then
(`asynchronous.late_copies`). Lanes that copy only part of their bytes (`src-size` less than
`cp-size`) read byte by byte, so that nothing past that part is accessed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.records import CopyOperands
from warploom.core.types import PRED, U32, U64
from warploom.isa.instruction import Address, Immediate, Instruction, Register, Space
from warploom.isa.kinds import OpKind
from warploom.isa.ops.mbarrier import COMPLETE_TX
from warploom.machine.reference import access
from warploom.machine.reference.access import gather, scatter
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lane_access import AccessRequest
from warploom.machine.reference.lane_checks import lane_accesses
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
    space_of,
)
from warploom.program.effects.completions import completion


def copy_async(warp: Warp, index: int, instruction: Instruction, mask: int, _on: Values) -> None:
    """Executes `cp.async` in each lane of `mask`: copies `size` bytes, of which those past
    `src-size` are zeros (PTX ISA, cp.async); or a bulk copy. The operands are passed to
    `deferring`, which may undo the copy until a thread waits for it."""
    if instruction.operation.kind is OpKind.BULK_COPY:
        _bulk_copy(warp, index, instruction, mask)
        return
    target, source, size = instruction.operands[:3]
    assert isinstance(target, Address)
    assert isinstance(source, Address)
    assert isinstance(size, Immediate)
    copied_bytes = _bytes_to_read(warp, instruction, size.value)
    bytes_read = np.minimum(copied_bytes.astype(np.int64), size.value)
    rows = {
        CopyOperands.shared: address_words(warp, target),
        CopyOperands.opposite: address_words(warp, source),
        CopyOperands.size: bytes_read,
        CopyOperands.value: size.value - bytes_read,
    }
    to_shared = AccessRequest(index, Space.SHARED, "store", size.value)
    with deferring(warp, instruction, mask, rows):
        _copy_lanes(warp, to_shared, (target, source), copied_bytes, mask)


def _copy_lanes(
    warp: Warp,
    to_shared: AccessRequest,
    endpoints: tuple[Address, Address],
    copied_bytes: Values,
    mask: int,
) -> None:
    """Copies in each lane of `mask` to the first of `endpoints`, in shared memory, from the second,
    in global memory: `copied_bytes` (by lane) are read, the rest of the request's size is zero.
    Lanes that copy the whole size read it in one request; the others read byte by byte, in a
    request for each byte."""
    index, size = to_shared.index, to_shared.size
    target, source = endpoints
    source_addresses = addresses(warp, source)
    # As hardware does.
    whole = mask & to_mask(copied_bytes == size)
    data = gather(warp, AccessRequest(index, Space.GLOBAL, "load", size), source_addresses, whole)
    for offset in range(size):
        partial = mask & ~whole & to_mask(copied_bytes > offset)
        byte_request = AccessRequest(index, Space.GLOBAL, "load", 1)
        if partial:
            byte = gather(
                warp, byte_request, [start + offset for start in source_addresses], partial
            )
            data[:, offset] |= byte[:, 0]
    scatter(warp, to_shared, addresses(warp, target), data, mask)


def _bulk_copy(warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
    """Executes `cp.async.bulk`: every lane of `mask` copies its `size` bytes (`_copy_pieces`); then
    they are completed at the mbarrier, if one is named, an update that is counted as one more
    store. All of it may happen late (`deferring`)."""
    target, source, size, *rest = instruction.operands
    (origin, _), _ = accesses(instruction)
    copied_bytes = read(warp, size, U32).astype(np.int64)
    rows = {
        CopyOperands.shared: address_words(warp, target),
        CopyOperands.opposite: address_words(warp, source),
        CopyOperands.size: copied_bytes,
    }
    if origin is Space.SHARED:
        rows |= {
            CopyOperands.shared: address_words(warp, source),
            CopyOperands.opposite: address_words(warp, target),
        }
    barrier = rest[0] if "mbarrier::complete_tx::bytes" in instruction.operation.modifiers else None
    if barrier is not None:
        rows[CopyOperands.barrier] = address_words(warp, barrier)
    with deferring(warp, instruction, mask, rows):
        _copy_pieces(warp, index, instruction, copied_bytes, mask)
        if barrier is not None:
            assert isinstance(barrier, Address)
            request = AccessRequest(index, Space.SHARED, "store", U64.bytes)
            _complete_mbarriers(
                warp, request, addresses(warp, barrier), copied_bytes.astype(np.uint64), mask
            )


def _copy_pieces(
    warp: Warp, index: int, instruction: Instruction, copied_bytes: Values, mask: int
) -> None:
    """Copies `copied_bytes` of each lane of `mask`, by its own operands, in pieces of
    BULK_PIECE_BYTES: lanes with fewer pieces end earlier, and a rest that is no whole piece is not
    copied."""
    (source_space, _), (target_space, _) = accesses(instruction)
    destination, source = instruction.operands[:2]
    assert isinstance(destination, Address)
    assert isinstance(source, Address)
    starts, ends = addresses(warp, source), addresses(warp, destination)
    for offset in range(0, int(copied_bytes.max()), BULK_PIECE_BYTES):
        # Lanes may copy different sizes; short ones drop out.
        active = mask & to_mask(copied_bytes >= offset + BULK_PIECE_BYTES)
        if active:
            load = AccessRequest(index, source_space, "load", BULK_PIECE_BYTES)
            data = gather(warp, load, [start + offset for start in starts], active)
            store = AccessRequest(index, target_space, "store", BULK_PIECE_BYTES)
            scatter(warp, store, [end + offset for end in ends], data, active)


def _late_copy_operands(warp: Warp, instruction: Instruction) -> dict[int, npt.NDArray[np.int64]]:
    """Returns, by row number, the operand rows of an `st.async` or a `red.async` for
    `asynchronous.late_copies`: addresses of target and mbarrier and the number of bytes, by lane.
    The value is not among them: the caller adds the row of a `red.async`."""
    return {
        CopyOperands.shared: address_words(warp, instruction.operands[0]),
        CopyOperands.barrier: address_words(warp, instruction.operands[2]),
        CopyOperands.size: np.full(warp.size, bytes_of(instruction), np.int64),
    }


def update_memory(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes `atom` and `red` in the lanes of `mask` (`on`: the same set as a predicate); a
    `red.async` then completes its bytes at its mbarrier, both perhaps late (`deferring`)."""
    completing = completion(instruction)
    if completing is None:
        access.atomic(warp, index, instruction, mask, on)
        return
    operand = read(warp, instruction.operands[1], instruction.operation.modifiers.scalar())
    rows = _late_copy_operands(warp, instruction) | {
        CopyOperands.opposite: resized(operand, 64).view(np.int64)
    }
    with deferring(warp, instruction, mask, rows):
        access.atomic(warp, index, instruction, mask, on)
        access.atomic(warp, index, completing, mask, on)


def store(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes, in the lanes of `mask` (`on`: the same set as a predicate), `st` of registers;
    `st.async`, which then completes bytes at its mbarrier, both late if the policy defers copies;
    or `st.bulk`, with which every lane zeroes the bytes that its operand gives, in requests of
    BULK_FILL_BYTES (a rest shorter than that is left)."""
    completing = completion(instruction)
    if completing is not None:
        with deferring(warp, instruction, mask, _late_copy_operands(warp, instruction)):
            access.store(warp, index, instruction, mask, on)
            access.atomic(warp, index, completing, mask, on)
        return
    if instruction.operation.kind is not OpKind.FILL:
        access.store(warp, index, instruction, mask, on)
        return
    target, size = instruction.operands[:2]
    assert isinstance(target, Address)
    copied_bytes, starts = read(warp, size, U64), addresses(warp, target)
    request = AccessRequest(index, space_of(instruction), "store", BULK_FILL_BYTES)
    zeros = np.zeros((warp.size, BULK_FILL_BYTES), np.uint8)
    for offset in range(0, int(copied_bytes.max()), BULK_FILL_BYTES):
        active = mask & to_mask(copied_bytes >= offset + BULK_FILL_BYTES)
        if active:
            scatter(warp, request, [start + offset for start in starts], zeros, active)


def _complete_mbarriers(
    warp: Warp, request: AccessRequest, addresses_by_lane: Sequence[int], amounts: Values, mask: int
) -> None:
    """Subtracts arrived bytes, `amounts` by lane, from the transaction count (tx-count) of the
    mbarrier at each lane's address, after a check that one is there; the phase completes where
    nothing is pending any more. Lanes go in order: after the fault of one without an mbarrier,
    those before it have changed. Adds 1 to `changes` unless `mask` is 0."""
    for lane_access in lane_accesses(warp, request, addresses_by_lane, mask):
        old = int.from_bytes(lane_access.store.read(lane_access.address, U64.bytes), "little")
        precondition = COMPLETE_TX.spec.memory_precondition
        check_word(
            warp,
            request.index,
            lane_access.lane,
            precondition,
            (lane_access.space, lane_access.address, old),
        )
        arguments = [collect([old], U64), amounts[lane_access.lane : lane_access.lane + 1]]
        new = int(evaluate(COMPLETE_TX.combine(1), arguments, 1)[0])
        lane_access.store.write(lane_access.address, new.to_bytes(U64.bytes, "little"))
    warp.run.plan.changes += mask != 0


def _bytes_to_read(warp: Warp, instruction: Instruction, size: int) -> Values:
    """Returns the bytes that each lane reads from global memory: all `size` of them, the `src-size`
    operand, or 0 where a predicate operand (`ignore-src`) is true."""
    operands = instruction.operands[3:]
    if "L2::cache_hint" in instruction.operation.modifiers:
        # The cache-policy operand has no effect on results.
        operands = operands[:-1]
    if not operands:
        return splat(size, U32, warp.size)
    if isinstance(operands[0], Register) and operands[0].type == PRED:
        return np.where(read(warp, operands[0], PRED), 0, size).astype(np.uint32)
    return read(warp, operands[0], U32)
