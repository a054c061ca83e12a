"""Emits the data movement of inlined loads, once their guard holds: one function for each kind of
move (scalar, vector, gather, ...) of an access plan.

    SCALAR      affine<0>        load 4 bytes, once for each lane run
    VECTOR      affine<4>        load <32 x i32>, or <8 x i32> for each of four runs
    REVERSED    affine<-4>       load <32 x i32> from the last lane, and a shuffle
    STRUCTURES  affine<12>       loads of whole runs, and shuffles that select every third word
    GATHER      any stride       one gather instruction
    ROWS        local memory     word w of all lanes is one row of 128 bytes

The guard has established that active lanes are inside of one allocation; inactive lanes may be
anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from warploom.ir.access_plans import Move
from warploom.llvm.lanes import (
    I1,
    I32,
    I64,
    LANES,
    Value,
    repeated,
    selection,
    splat_constant,
    undefined,
    vector,
)
from warploom.llvm.masked_memory import gather, masked_load
from warploom.lower.access.transfers import WORD_BYTES, LaneAddresses, Transfers

Load = Callable[[Transfers, LaneAddresses], list[Value]]
"""Returns the elements of each lane, part by part: for uniform lane runs in as many lanes as there
are runs, else in 32."""


def load(transfers: Transfers, move: Move, lane_addresses: LaneAddresses) -> list[Value]:
    """Emits a load by the function of a move; returns the elements as described at `Load`."""
    return LOADS[move](transfers, lane_addresses)


def load_scalars(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Loads one element (and its parts) for each lane run, whose lanes read one address, without a
    mask (a run without active lanes has a safe address); returns one vector for each part, with as
    many lanes as runs."""
    b, access_type = transfers.b, lane_addresses.access_type
    # Runs without active lanes have a safe address (`GroupValues.safe_firsts`).
    pointers = [transfers.pointer(access_type, address) for address in lane_addresses.firsts]
    values: list[Value] = []
    for part in range(access_type.parts):
        value: Value = undefined(ir.VectorType(access_type.element, len(pointers)))
        for run, pointer in enumerate(pointers):
            at = b.gep(pointer, [I64(part)], source_etype=access_type.element) if part else pointer
            element = b.load(at, typ=access_type.element, align=access_type.type.bytes)
            value = b.insert_element(value, element, I32(run))
        values.append(value)
    return values


def load_vectors(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Loads consecutive elements of each lane run by one vector load, once for equal runs, under
    the mask if there is one: inactive lanes get 0, or what the same lane of an equal run gets.
    Returns one vector of 32 lanes, all runs joined, for each part."""
    b, parts = transfers.b, lane_addresses.access_type.parts
    whole, length = _load_runs(transfers, lane_addresses), lane_addresses.length
    if parts == lane_addresses.repeats == 1:
        return [whole]
    # Of equal runs the first was loaded: with two equal runs of 4 lanes, lane 5 gets element 1.
    same = length * lane_addresses.repeats
    starts = [lane // same * length + lane % length for lane in range(LANES)]
    return [
        b.shuffle_vector(whole, whole, selection(start * parts + part for start in starts))
        for part in range(parts)
    ]


def load_reversed(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Loads the elements of each lane run, which lie in memory from its last lane to its first, by
    one vector load, under the mask if there is one (inactive lanes get 0). Returns one vector of 32
    lanes for each part, in the order of lanes."""
    b, parts = transfers.b, lane_addresses.access_type.parts
    whole = _load_runs(transfers, lane_addresses, reverse=True)
    # Lane n of a run is element length - 1 - n of what was loaded for it.
    length = lane_addresses.length
    sources = [lane + length - 1 - 2 * (lane % length) for lane in range(LANES)]
    return [
        b.shuffle_vector(whole, whole, selection(source * parts + part for source in sources))
        for part in range(parts)
    ]


def _load_runs(
    transfers: Transfers, lane_addresses: LaneAddresses, *, reverse: bool = False
) -> Value:
    """Loads each lane run by one vector load from the address of its first lane, of its last one
    with `reverse`, under the mask if there is one; returns all runs joined, as they lie in
    memory."""
    b, access_type = transfers.b, lane_addresses.access_type
    # Loads state the alignment of an element. By default LLVM assumes that of the whole vector, and
    # emits instructions that fault at other addresses.
    type = ir.VectorType(access_type.element, lane_addresses.length * access_type.parts)
    runs: list[Value] = []
    for run in range(len(lane_addresses.firsts)):
        pointer = transfers.run_pointer(lane_addresses, run, reverse=reverse)
        if lane_addresses.on is None:
            runs.append(b.load(pointer, typ=type, align=access_type.type.bytes))
        else:
            run_mask = transfers.run_mask_of(lane_addresses, run, reverse=reverse)
            runs.append(masked_load(transfers.lanes, pointer, run_mask, access_type.element))
    return _concatenated(b, runs)


def _concatenated(b: Value, runs: list[Value]) -> Value:
    """Returns the concatenation of vectors of one length, whose number is a power of two, joined in
    pairs."""
    while len(runs) > 1:
        order = selection(range(2 * runs[0].type.count))
        pairs = zip(runs[::2], runs[1::2], strict=True)
        runs = [b.shuffle_vector(element, next_run, order) for element, next_run in pairs]
    return runs[0]


def load_each(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Gathers one element for each run of two lanes, whose lanes read one address, without a mask;
    returns one vector of 16 lanes for each part."""
    assert lane_addresses.run_pointers is not None
    access_type, begins = lane_addresses.access_type, lane_addresses.run_pointers
    # Runs without active lanes have a safe address (`GroupValues.safe_firsts`).
    on = repeated(1, I1, begins.type.count)
    parts = (
        transfers.part_pointers(begins, access_type, part) for part in range(access_type.parts)
    )
    return [gather(transfers.lanes, pointers, on, access_type.element) for pointers in parts]


def load_pairs(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Loads one 4-byte word in each lane, where runs of two lanes read consecutive words: gathers
    pairs of words as 64-bit elements, without a mask, if in each run both lanes are active or none
    is; else gathers each word. Returns one vector of 32 lanes; the contents of inactive ones do not
    matter."""
    assert lane_addresses.run_pointers is not None
    b, begins, access_type = transfers.b, lane_addresses.run_pointers, lane_addresses.access_type
    # Runs without active lanes have a safe address (`GroupValues.safe_firsts`).
    on = repeated(1, I1, begins.type.count)
    blocks = [b.append_basic_block(name) for name in ("lane_by_lane", "pairs", "moved")]
    # A gather costs by its elements, of which pairs are half as many. But it reads both words:
    # beside an active lane, an inactive one's may be beyond the end of the allocation.
    b.cbranch(transfers.splits_pairs(lane_addresses), *blocks[:2]).set_weights([1, 99])
    b.position_at_end(blocks[0])
    [single_words] = load_gathered(transfers, lane_addresses)
    after_alone = b.block
    b.branch(blocks[2])
    b.position_at_end(blocks[1])
    pairs = b.bitcast(gather(transfers.lanes, begins, on, I64), vector(access_type.element))
    after_pairs = b.block
    b.branch(blocks[2])
    b.position_at_end(blocks[2])
    result = b.phi(vector(access_type.element))
    result.add_incoming(single_words, after_alone)
    result.add_incoming(pairs, after_pairs)
    return [result]


def load_gathered(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Gathers the elements of each active lane, 0 in inactive ones; returns one vector of 32 lanes
    for each part."""
    access_type, on, pointers = (
        lane_addresses.access_type,
        lane_addresses.mask,
        transfers.pointers(lane_addresses),
    )
    return [
        transfers.gather(access_type, transfers.part_pointers(pointers, access_type, part), on)
        for part in range(access_type.parts)
    ]


def load_by_step(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Loads a vector for each lane run if the run-time value `step` is the size of an access with
    all parts, so that lanes of a run follow each other; else gathers. Returns one vector of 32
    lanes for each part, 0 in inactive lanes."""
    consecutive = transfers.b.icmp_unsigned(
        "==", lane_addresses.step, I64(lane_addresses.access_type.size)
    )
    return _load_either(transfers, lane_addresses, consecutive, load_vectors)


def load_structures(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Loads all that lies between the first and the last element of each run, and selects the
    lanes' elements, if all lanes are active; else (a test at run time) gathers, since memory may
    end between inactive lanes. Returns one vector of 32 lanes for each part, 0 in inactive
    lanes."""
    if lane_addresses.on is None:
        return _load_covering(transfers, lane_addresses)
    return _load_either(
        transfers, lane_addresses, transfers.lanes.all(lane_addresses.on), _load_covering
    )


def _load_either(
    transfers: Transfers, lane_addresses: LaneAddresses, condition: Value, load_fast: Load
) -> list[Value]:
    """Loads by `load_fast` if a condition (an i1) holds at run time, else gathers; returns the phis
    of both, one of 32 lanes for each part."""
    b, access_type = transfers.b, lane_addresses.access_type
    blocks = [b.append_basic_block(name) for name in ("vector", "gather", "moved")]
    b.cbranch(condition, *blocks[:2])
    incoming: list[tuple[list[Value], ir.Block]] = []
    for move, block in zip((load_fast, load_gathered), blocks, strict=False):
        b.position_at_end(block)
        incoming.append((move(transfers, lane_addresses), b.block))
        b.branch(blocks[2])
    b.position_at_end(blocks[2])
    results: list[Value] = []
    for part in range(access_type.parts):
        results.append(b.phi(vector(access_type.element)))
        for values, block in incoming:
            results[-1].add_incoming(values[part], block)
    return results


def _load_covering(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Loads vectors that cover each lane run from its first to its last element (`covering`), and
    selects the lanes' elements, `stride` bytes from lane to lane; returns one vector of 32 lanes
    for each part. All lanes must be active."""
    b, access_type = transfers.b, lane_addresses.access_type
    step, length = (
        lane_addresses.stride // access_type.type.bytes,
        lane_addresses.length,
    )
    begins = covering(length, step, access_type.parts)
    type = ir.VectorType(access_type.element, length)
    runs: list[list[Value]] = []
    for run_address in lane_addresses.firsts:
        pointer = transfers.pointer(access_type, run_address)
        starts = [b.gep(pointer, [I64(n)], source_etype=access_type.element) for n in begins]
        vectors = [b.load(start, typ=type, align=access_type.type.bytes) for start in starts]
        wanted = [range(part, step * length, step) for part in range(access_type.parts)]
        runs.append([_select_elements(b, vectors, begins, elements) for elements in wanted])
    return [_concatenated(b, list(parts)) for parts in zip(*runs, strict=True)]


def covering(length: int, step: int, parts: int) -> list[int]:
    """Returns the numbers of the elements at which vectors of `length` elements begin that cover a
    lane run, counted from the run's first. The run has `length` lanes of `parts` elements each,
    `step` elements from lane to lane; the last vector ends where the run does, so that no byte
    beyond it is read.

    For length 8, step 3, parts 1: a run of 22 elements, vectors at 0, 8 and 14."""
    count = (length - 1) * step + parts
    return [min(begin, count - length) for begin in range(0, count, length)]


def _select_elements(b: Value, vectors: list[Value], begins: list[int], elements: range) -> Value:
    """Returns the elements with the numbers `elements`, one a lane, out of vectors of as many
    elements that begin at the elements `begins` (`covering`): one shuffle merges each further
    vector."""
    length, values = len(elements), vectors[0]
    # In `order`, numbers below `length` select from what is merged so far, others from the next
    # vector. Lanes of later vectors take element 0 until theirs comes.
    order = [at if at < length else 0 for at in elements]
    for number, next_vector in enumerate(vectors[1:], 1):
        for lane, at in enumerate(elements):
            # The last vector begins before number * length: `begins` says where.
            if at // length == number:
                order[lane] = length + at - begins[number]
        values = b.shuffle_vector(values, next_vector, selection(order))
        order = list(range(length))
    return values


def load_rows(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Loads from local memory at one address of all lanes, where each 4-byte word of all lanes is
    one row of 128 bytes; under the mask if there is one (inactive lanes get 0). Joins the words of
    8-byte elements, the lowest first; returns one vector of 32 lanes for each part."""
    b, access_type = transfers.b, lane_addresses.access_type
    pointer = transfers.pointer(access_type, lane_addresses.firsts[0])
    words: list[Value] = []
    for number in range(access_type.size // WORD_BYTES):
        at = transfers.local_row(pointer, number)
        if lane_addresses.on is None:
            words.append(b.load(at, typ=vector(I32), align=128))
        else:
            words.append(masked_load(transfers.lanes, at, lane_addresses.on, I32))
    if access_type.type.bytes == WORD_BYTES:
        return words
    wide, words_per_part = vector(access_type.element), access_type.type.bytes // WORD_BYTES
    values: list[Value] = []
    for begin in range(0, len(words), words_per_part):
        value = b.zext(words[begin], wide)
        for start in range(1, words_per_part):
            shift = splat_constant(32 * start, access_type.element)
            value = b.or_(value, b.shl(b.zext(words[begin + start], wide), shift))
        values.append(value)
    return values


LOADS: Mapping[Move, Load] = {
    Move.SCALAR: load_scalars,
    Move.VECTOR: load_vectors,
    Move.EACH: load_each,
    Move.PAIRS: load_pairs,
    Move.REVERSED: load_reversed,
    Move.STRUCTURES: load_structures,
    Move.GATHER: load_gathered,
    Move.BY_STEP: load_by_step,
    Move.ROWS: load_rows,
}
