"""Emits the data movement of inlined stores, once their guard holds: one function for each kind of
move (scalar, vector, scatter, ...) of an access plan (`lower.access.loads` shows them)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from llvmlite import ir

from warploom.ir.access_plans import Move
from warploom.llvm.lanes import I1, I32, I64, LANES, Value, selection, splat_constant, vector
from warploom.llvm.masked_memory import masked_store, scatter
from warploom.lower.access.transfers import WORD_BYTES, LaneAddresses, Transfers

Store = Callable[[Transfers, LaneAddresses, Sequence[Value]], None]
"""Stores elements of 32 lanes, given part by part; of lanes at one address the highest survives."""


def store(
    transfers: Transfers, move: Move, lane_addresses: LaneAddresses, values: Sequence[Value]
) -> None:
    """Emits a store by the function of a move; `values` are the elements of 32 lanes,
    part by part.
    """
    STORES[move](transfers, lane_addresses, values)


def store_scalar(
    transfers: Transfers, lane_addresses: LaneAddresses, values: Sequence[Value]
) -> None:
    """Stores the parts of the highest active lane, whose value survives, to the one address of all
    active lanes (`firsts[0]`). Some lane must be active."""
    b, lanes, access_type = transfers.b, transfers.lanes, lane_addresses.access_type
    highest: Value = I32(LANES - 1)
    if lane_addresses.on is not None:
        zeros = lanes.intrinsic("llvm.ctlz.i32", I32, [lanes.bits(lane_addresses.on), I1(0)])
        # The guard has established that some lane is active; the mask keeps the index valid without
        # one.
        highest = b.and_(b.sub(I32(LANES - 1), zeros), I32(LANES - 1))
    pointer = transfers.pointer(access_type, lane_addresses.firsts[0])
    for part, value in enumerate(values):
        at = b.gep(pointer, [I64(part)], source_etype=access_type.element)
        b.store(lanes.lane(value, highest), at, align=access_type.type.bytes)


def store_vectors(
    transfers: Transfers, lane_addresses: LaneAddresses, values: Sequence[Value]
) -> None:
    """Stores consecutive elements from the first address of each lane run, with the parts of each
    lane side by side, under the mask if there is one."""
    b, parts, runs = transfers.b, lane_addresses.access_type.parts, len(lane_addresses.firsts)
    whole, count = _interleaved(b, values), LANES // runs * parts
    for run in range(runs):
        value = whole
        if runs > 1:
            value = b.shuffle_vector(whole, whole, selection(range(run * count, (run + 1) * count)))
        _store_run(transfers, lane_addresses, run, value)


def store_reversed(
    transfers: Transfers, lane_addresses: LaneAddresses, values: Sequence[Value]
) -> None:
    """Stores the elements of each lane run, from its last lane to its first, from the last one's
    address, with the parts of each lane side by side, under the mask if there is one."""
    b, parts, runs = transfers.b, lane_addresses.access_type.parts, len(lane_addresses.firsts)
    whole, length = _interleaved(b, values), LANES // runs
    for run in range(runs):
        lanes = range(run * length, (run + 1) * length)[::-1]
        elements = [lane * parts + part for lane in lanes for part in range(parts)]
        value = b.shuffle_vector(whole, whole, selection(elements))
        _store_run(transfers, lane_addresses, run, value, reverse=True)


def _store_run(
    transfers: Transfers,
    lane_addresses: LaneAddresses,
    run: int,
    value: Value,
    *,
    reverse: bool = False,
) -> None:
    """Stores the vector of a lane run at the address of its first lane, of its last one with
    `reverse`, under the mask if there is one."""
    pointer = transfers.run_pointer(lane_addresses, run, reverse=reverse)
    if lane_addresses.on is None:
        transfers.b.store(value, pointer, align=lane_addresses.access_type.type.bytes)
    else:
        run_mask = transfers.run_mask_of(lane_addresses, run, reverse=reverse)
        masked_store(transfers.lanes, value, pointer, run_mask)


def _interleaved(b: Value, values: Sequence[Value]) -> Value:
    """Returns one vector with the parts of each lane side by side: a0 b0 a1 b1 ... for parts a and
    b."""
    if len(values) == 1:
        return values[0]
    # With four parts: a0 c0 a1 c1 ... and b0 d0 b1 d1 ..., then both alternately.
    evens, odds = _interleaved(b, values[::2]), _interleaved(b, values[1::2])
    width = LANES * len(values) // 2
    order = [side * width + i for i in range(width) for side in (0, 1)]
    return b.shuffle_vector(evens, odds, selection(order))


def store_scattered(
    transfers: Transfers, lane_addresses: LaneAddresses, values: Sequence[Value]
) -> None:
    """Scatters the elements of each active lane, part by part; of lanes at one address the highest
    survives, as LLVM's scatter stores in lane order."""
    on, pointers = lane_addresses.mask, transfers.pointers(lane_addresses)
    for part, value in enumerate(values):
        scatter(
            transfers.lanes,
            value,
            transfers.part_pointers(pointers, lane_addresses.access_type, part),
            on,
        )


def store_pairs(
    transfers: Transfers, lane_addresses: LaneAddresses, values: Sequence[Value]
) -> None:
    """Stores one 4-byte word of each lane, where runs of two lanes have consecutive addresses:
    scatters pairs of words as 64-bit elements if in each run both lanes are active or none is; else
    scatters each word."""
    assert lane_addresses.run_pointers is not None
    b, begins = transfers.b, lane_addresses.run_pointers
    on = transfers.first_of_pairs(lane_addresses.mask)
    # A 64-bit element stores both words: of a pair with one active lane, it would overwrite what
    # the other lane must leave as it is.
    with b.if_else(transfers.splits_pairs(lane_addresses), likely=False) as (single_words, pairs):
        with single_words:
            store_scattered(transfers, lane_addresses, values)
        with pairs:
            both = b.bitcast(values[0], ir.VectorType(I64, begins.type.count))
            scatter(transfers.lanes, both, begins, on)


def store_by_step(
    transfers: Transfers, lane_addresses: LaneAddresses, values: Sequence[Value]
) -> None:
    """Stores a vector for each lane run if the run-time value `step` is the size of an access with
    all parts, so that lanes of a run follow each other; else scatters."""
    b = transfers.b
    consecutive = b.icmp_unsigned("==", lane_addresses.step, I64(lane_addresses.access_type.size))
    with b.if_else(consecutive) as (then, otherwise):
        with then:
            store_vectors(transfers, lane_addresses, values)
        with otherwise:
            store_scattered(transfers, lane_addresses, values)


def store_rows(
    transfers: Transfers, lane_addresses: LaneAddresses, values: Sequence[Value]
) -> None:
    """Stores to local memory at one address, where each 4-byte word of all lanes is one row of 128
    bytes, under the mask if there is one; splits wider elements into words, the lowest first."""
    b, access_type, words = transfers.b, lane_addresses.access_type, list(values)
    pointer = transfers.pointer(access_type, lane_addresses.firsts[0])
    if access_type.type.bytes > WORD_BYTES:
        word_numbers = range(access_type.type.bytes // WORD_BYTES)
        shifts = [splat_constant(32 * n, access_type.element) for n in word_numbers]
        words = [b.trunc(b.lshr(v, shift), vector(I32)) for v in values for shift in shifts]
    for number, word in enumerate(words):
        at = transfers.local_row(pointer, number)
        if lane_addresses.on is None:
            b.store(word, at, align=128)
        else:
            masked_store(transfers.lanes, word, at, lane_addresses.on)


STORES: Mapping[Move, Store] = {
    Move.SCALAR: store_scalar,
    Move.VECTOR: store_vectors,
    Move.PAIRS: store_pairs,
    Move.REVERSED: store_reversed,
    Move.SCATTER: store_scattered,
    Move.BY_STEP: store_by_step,
    Move.ROWS: store_rows,
}
