"""Emits the moves of loads that are inlined: one function for each move."""

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
"""Returns the elements of each lane, part by part: where the lanes of each run reach one place in
as many lanes as there are runs, else in 32."""


def load(transfers: Transfers, move: Move, lane_addresses: LaneAddresses) -> list[Value]:
    """Emit a load by a move; returns what a `Load` does."""
    return LOADS[move](transfers, lane_addresses)


def load_scalars(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Load one place for each run, whether some of its lanes are on or not."""
    b, access_type = transfers.b, lane_addresses.access_type
    pointers = [transfers.pointer(access_type, first) for first in lane_addresses.firsts]
    found: list[Value] = []
    for part in range(access_type.parts):
        value: Value = undefined(ir.VectorType(access_type.element, len(pointers)))
        for run, pointer in enumerate(pointers):
            at = b.gep(pointer, [I64(part)], source_etype=access_type.element) if part else pointer
            one = b.load(at, typ=access_type.element, align=access_type.type.bytes)
            value = b.insert_element(value, one, I32(run))
        found.append(value)
    return found


def load_vectors(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Load consecutive elements from the begin of each run on."""
    b, access_type = transfers.b, lane_addresses.access_type
    count = LANES // len(lane_addresses.firsts) * access_type.parts
    runs: list[Value] = []
    for run, first in enumerate(lane_addresses.firsts):
        pointer, type = (
            transfers.pointer(access_type, first),
            ir.VectorType(access_type.element, count),
        )
        if lane_addresses.on is None:
            runs.append(b.load(pointer, typ=type, align=access_type.type.bytes))
        else:
            here = transfers.mask_of(lane_addresses, run)
            runs.append(masked_load(transfers.lanes, pointer, here, access_type.element))
    whole = _joined(b, runs)
    if access_type.parts == 1:
        return [whole]
    return [
        b.shuffle_vector(
            whole, whole, selection(range(part, LANES * access_type.parts, access_type.parts))
        )
        for part in range(access_type.parts)
    ]


def _joined(b: Value, runs: list[Value]) -> Value:
    """Returns vectors one behind the other."""
    while len(runs) > 1:
        order = selection(range(2 * runs[0].type.count))
        pairs = zip(runs[::2], runs[1::2], strict=True)
        runs = [b.shuffle_vector(one, two, order) for one, two in pairs]
    return runs[0]


def load_each(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Gather one place for each run, whether some of its lanes are on or not."""
    assert lane_addresses.begins is not None
    access_type, begins = lane_addresses.access_type, lane_addresses.begins
    on = repeated(1, I1, begins.type.count)
    parts = (transfers.part(begins, access_type, part) for part in range(access_type.parts))
    return [gather(transfers.lanes, pointers, on, access_type.element) for pointers in parts]


def load_pairs(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Gather two words at once, where both lanes of each run are on or none is; else each word."""
    assert lane_addresses.begins is not None
    b, begins, access_type = transfers.b, lane_addresses.begins, lane_addresses.access_type
    on, differ = transfers.pairs(lane_addresses.mask)
    ways = [b.append_basic_block(name) for name in ("alone", "pairs", "moved")]
    b.cbranch(differ, *ways[:2]).set_weights([1, 99])
    b.position_at_end(ways[0])
    [alone] = load_gathered(transfers, lane_addresses)
    after_alone = b.block
    b.branch(ways[2])
    b.position_at_end(ways[1])
    pairs = b.bitcast(gather(transfers.lanes, begins, on, I64), vector(access_type.element))
    after_pairs = b.block
    b.branch(ways[2])
    b.position_at_end(ways[2])
    result = b.phi(vector(access_type.element))
    result.add_incoming(alone, after_alone)
    result.add_incoming(pairs, after_pairs)
    return [result]


def load_gathered(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Gather the elements of each lane."""
    access_type, on, pointers = (
        lane_addresses.access_type,
        lane_addresses.mask,
        transfers.pointers(lane_addresses),
    )
    return [
        transfers.gather(access_type, transfers.part(pointers, access_type, part), on)
        for part in range(access_type.parts)
    ]


def load_by_step(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Load vectors if lanes follow by the size of an element, as is known when code runs."""
    follow = transfers.b.icmp_unsigned(
        "==", lane_addresses.step, I64(lane_addresses.access_type.size)
    )
    return _load_either(transfers, lane_addresses, follow, load_vectors)


def load_structures(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Load all that lies between the first and the last element of each run, and pick the lanes'
    elements from that, if all lanes are on; around others that are off memory may end."""
    if lane_addresses.on is None:
        return _load_between(transfers, lane_addresses)
    return _load_either(
        transfers, lane_addresses, transfers.lanes.all(lane_addresses.on), _load_between
    )


def _load_either(
    transfers: Transfers, lane_addresses: LaneAddresses, condition: Value, load_short: Load
) -> list[Value]:
    """Load by a short way where a condition holds, else gather."""
    b, access_type = transfers.b, lane_addresses.access_type
    ways = [b.append_basic_block(name) for name in ("vector", "gather", "moved")]
    b.cbranch(condition, *ways[:2])
    found: list[tuple[list[Value], ir.Block]] = []
    for move, block in zip((load_short, load_gathered), ways, strict=False):
        b.position_at_end(block)
        found.append((move(transfers, lane_addresses), b.block))
        b.branch(ways[2])
    b.position_at_end(ways[2])
    results: list[Value] = []
    for part in range(access_type.parts):
        results.append(b.phi(vector(access_type.element)))
        for values, block in found:
            results[-1].add_incoming(values[part], block)
    return results


def _load_between(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Load vectors that cover each run, and pick the elements of the lanes."""
    b, access_type = transfers.b, lane_addresses.access_type
    step, length = (
        lane_addresses.stride // access_type.type.bytes,
        LANES // len(lane_addresses.firsts),
    )
    begins = covering(length, step, access_type.parts)
    type = ir.VectorType(access_type.element, length)
    runs: list[list[Value]] = []
    for first in lane_addresses.firsts:
        pointer = transfers.pointer(access_type, first)
        places = [b.gep(pointer, [I64(n)], source_etype=access_type.element) for n in begins]
        vectors = [b.load(place, typ=type, align=access_type.type.bytes) for place in places]
        wanted = [range(part, step * length, step) for part in range(access_type.parts)]
        runs.append([_picked(b, vectors, begins, elements) for elements in wanted])
    return [_joined(b, list(parts)) for parts in zip(*runs, strict=True)]


def covering(length: int, step: int, parts: int) -> list[int]:
    """Returns at which elements vectors begin, one of `length` each, that cover a run of as many
    lanes, each of `parts` elements, so many elements `step`. The last ends where the run does."""
    count = (length - 1) * step + parts
    return [min(begin, count - length) for begin in range(0, count, length)]


def _picked(b: Value, vectors: list[Value], begins: list[int], elements: range) -> Value:
    """Returns those elements, one a lane, of vectors that begin at some elements: lanes whose
    element lies in the first vector, then those of each other."""
    length, found = len(elements), vectors[0]
    order = [at if at < length else 0 for at in elements]
    for number, other in enumerate(vectors[1:], 1):
        for lane, at in enumerate(elements):
            if at // length == number:
                order[lane] = length + at - begins[number]
        found = b.shuffle_vector(found, other, selection(order))
        order = list(range(length))
    return found


def load_rows(transfers: Transfers, lane_addresses: LaneAddresses) -> list[Value]:
    """Load from local memory, where each 4-byte word of all lanes is a row."""
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
    wide, each = vector(access_type.element), access_type.type.bytes // WORD_BYTES
    values: list[Value] = []
    for begin in range(0, len(words), each):
        value = b.zext(words[begin], wide)
        for place in range(1, each):
            shift = splat_constant(32 * place, access_type.element)
            value = b.or_(value, b.shl(b.zext(words[begin + place], wide), shift))
        values.append(value)
    return values


LOADS: Mapping[Move, Load] = {
    Move.SCALAR: load_scalars,
    Move.VECTOR: load_vectors,
    Move.EACH: load_each,
    Move.PAIRS: load_pairs,
    Move.STRUCTURES: load_structures,
    Move.GATHER: load_gathered,
    Move.BY_STEP: load_by_step,
    Move.ROWS: load_rows,
}
