"""Emits the moves of loads that are inlined: one function for each move."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from warploom.codegen.access_table import Move
from warploom.codegen.lanes import (
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
from warploom.codegen.masked_memory import gather, masked_load
from warploom.codegen.transfers import WORD_BYTES, Reached, Transfers

Load = Callable[[Transfers, Reached], list[Value]]
"""Returns the elements of each lane, part by part: where the lanes of each run reach one place in
as many lanes as there are runs, else in 32."""


def load(transfers: Transfers, move: Move, reached: Reached) -> list[Value]:
    """Emit a load by a move; returns what a `Load` does."""
    return LOADS[move](transfers, reached)


def load_scalars(transfers: Transfers, reached: Reached) -> list[Value]:
    """Load one place for each run, whether some of its lanes are on or not."""
    b, shape = transfers.b, reached.shape
    pointers = [transfers.pointer(shape, first) for first in reached.firsts]
    found: list[Value] = []
    for part in range(shape.parts):
        value: Value = undefined(ir.VectorType(shape.element, len(pointers)))
        for run, pointer in enumerate(pointers):
            at = b.gep(pointer, [I64(part)], source_etype=shape.element) if part else pointer
            one = b.load(at, typ=shape.element, align=shape.type.bytes)
            value = b.insert_element(value, one, I32(run))
        found.append(value)
    return found


def load_vectors(transfers: Transfers, reached: Reached) -> list[Value]:
    """Load consecutive elements from the begin of each run on."""
    b, shape = transfers.b, reached.shape
    count = LANES // len(reached.firsts) * shape.parts
    runs: list[Value] = []
    for run, first in enumerate(reached.firsts):
        pointer, type = transfers.pointer(shape, first), ir.VectorType(shape.element, count)
        if reached.on is None:
            runs.append(b.load(pointer, typ=type, align=shape.type.bytes))
        else:
            here = transfers.mask_of(reached, run)
            runs.append(masked_load(transfers.lanes, pointer, here, shape.element))
    whole = _joined(b, runs)
    if shape.parts == 1:
        return [whole]
    return [
        b.shuffle_vector(whole, whole, selection(range(part, LANES * shape.parts, shape.parts)))
        for part in range(shape.parts)
    ]


def _joined(b: Value, runs: list[Value]) -> Value:
    """Returns vectors one behind the other."""
    while len(runs) > 1:
        order = selection(range(2 * runs[0].type.count))
        pairs = zip(runs[::2], runs[1::2], strict=True)
        runs = [b.shuffle_vector(one, two, order) for one, two in pairs]
    return runs[0]


def load_each(transfers: Transfers, reached: Reached) -> list[Value]:
    """Gather one place for each run, whether some of its lanes are on or not."""
    assert reached.begins is not None
    shape, begins = reached.shape, reached.begins
    on = repeated(1, I1, begins.type.count)
    parts = (transfers.part(begins, shape, part) for part in range(shape.parts))
    return [gather(transfers.lanes, pointers, on, shape.element) for pointers in parts]


def load_pairs(transfers: Transfers, reached: Reached) -> list[Value]:
    """Gather two words at once, where both lanes of each run are on or none is; else each word."""
    assert reached.begins is not None
    b, begins, shape = transfers.b, reached.begins, reached.shape
    on, differ = transfers.pairs(reached.mask)
    ways = [b.append_basic_block(name) for name in ("alone", "pairs", "moved")]
    b.cbranch(differ, *ways[:2]).set_weights([1, 99])
    b.position_at_end(ways[0])
    [alone] = load_gathered(transfers, reached)
    after_alone = b.block
    b.branch(ways[2])
    b.position_at_end(ways[1])
    pairs = b.bitcast(gather(transfers.lanes, begins, on, I64), vector(shape.element))
    after_pairs = b.block
    b.branch(ways[2])
    b.position_at_end(ways[2])
    result = b.phi(vector(shape.element))
    result.add_incoming(alone, after_alone)
    result.add_incoming(pairs, after_pairs)
    return [result]


def load_gathered(transfers: Transfers, reached: Reached) -> list[Value]:
    """Gather the elements of each lane."""
    shape, on, pointers = reached.shape, reached.mask, transfers.pointers(reached)
    return [
        transfers.gather(shape, transfers.part(pointers, shape, part), on)
        for part in range(shape.parts)
    ]


def load_by_step(transfers: Transfers, reached: Reached) -> list[Value]:
    """Load vectors if lanes follow by the size of an element, as is known when code runs."""
    follow = transfers.b.icmp_unsigned("==", reached.step, I64(reached.shape.size))
    return _load_either(transfers, reached, follow, load_vectors)


def load_structures(transfers: Transfers, reached: Reached) -> list[Value]:
    """Load all that lies between the first and the last element of each run, and pick the lanes'
    elements from that, if all lanes are on; around others that are off memory may end."""
    if reached.on is None:
        return _load_between(transfers, reached)
    return _load_either(transfers, reached, transfers.lanes.all(reached.on), _load_between)


def _load_either(
    transfers: Transfers, reached: Reached, condition: Value, load_short: Load
) -> list[Value]:
    """Load by a short way where a condition holds, else gather."""
    b, shape = transfers.b, reached.shape
    ways = [b.append_basic_block(name) for name in ("vector", "gather", "moved")]
    b.cbranch(condition, *ways[:2])
    found: list[tuple[list[Value], ir.Block]] = []
    for move, block in zip((load_short, load_gathered), ways, strict=False):
        b.position_at_end(block)
        found.append((move(transfers, reached), b.block))
        b.branch(ways[2])
    b.position_at_end(ways[2])
    results: list[Value] = []
    for part in range(shape.parts):
        results.append(b.phi(vector(shape.element)))
        for values, block in found:
            results[-1].add_incoming(values[part], block)
    return results


def _load_between(transfers: Transfers, reached: Reached) -> list[Value]:
    """Load vectors that cover each run, and pick the elements of the lanes."""
    b, shape = transfers.b, reached.shape
    apart, length = reached.stride // shape.type.bytes, LANES // len(reached.firsts)
    begins = covering(length, apart, shape.parts)
    type = ir.VectorType(shape.element, length)
    runs: list[list[Value]] = []
    for first in reached.firsts:
        pointer = transfers.pointer(shape, first)
        places = [b.gep(pointer, [I64(n)], source_etype=shape.element) for n in begins]
        vectors = [b.load(place, typ=type, align=shape.type.bytes) for place in places]
        wanted = [range(part, apart * length, apart) for part in range(shape.parts)]
        runs.append([_picked(b, vectors, begins, elements) for elements in wanted])
    return [_joined(b, list(parts)) for parts in zip(*runs, strict=True)]


def covering(length: int, apart: int, parts: int) -> list[int]:
    """Returns at which elements vectors begin, one of `length` each, that cover a run of as many
    lanes, each of `parts` elements, so many elements `apart`. The last ends where the run does."""
    count = (length - 1) * apart + parts
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


def load_rows(transfers: Transfers, reached: Reached) -> list[Value]:
    """Load from local memory, where each 4-byte word of all lanes is a row."""
    b, shape = transfers.b, reached.shape
    pointer = transfers.pointer(shape, reached.firsts[0])
    words: list[Value] = []
    for number in range(shape.size // WORD_BYTES):
        at = transfers.local_row(pointer, number)
        if reached.on is None:
            words.append(b.load(at, typ=vector(I32), align=128))
        else:
            words.append(masked_load(transfers.lanes, at, reached.on, I32))
    if shape.type.bytes == WORD_BYTES:
        return words
    wide, each = vector(shape.element), shape.type.bytes // WORD_BYTES
    values: list[Value] = []
    for begin in range(0, len(words), each):
        value = b.zext(words[begin], wide)
        for place in range(1, each):
            shift = splat_constant(32 * place, shape.element)
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
