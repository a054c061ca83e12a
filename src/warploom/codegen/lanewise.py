"""Loops of the rules over the lanes of a warp as vector instructions, which Numba compiles in their
place: of the loops LLVM makes scalar code.

Lanes that are near each other are counted by marking what they touch, a byte for each stretch of
memory. The marks are 32 rows of 32 bytes behind a row of counts, a ring in which a stretch has its
place by its number. Each counts the lanes on its stretch, and all are zero between accesses. Behind
them stands a byte for each lane, which lanes mark that take no part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

from llvmlite import ir

from warploom.codegen.lanes import (
    I8,
    I32,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    lane_numbers,
    splat_constant,
    vector,
    zero,
)
from warploom.rules.distinct import ALL_LANES, all_rise, count_steps
from warploom.rules.fields import SCRATCH
from warploom.rules.near import ROWS, count_near

STRETCHES = ROWS * LANES
BYTES, WORDS = vector(I8), vector(I64)
EVERY_FOURTH, EVERY_EIGHTH = 0x11111111, 0x01010101

Emit = Callable[[Lanes, Sequence[Value]], list[Value]]


@lru_cache(1)
def register() -> None:
    """Have Numba compile these in place of the rules' functions, for pointers and numbers."""
    extending: Any = import_module("numba.extending")
    intrinsic, overload = extending.intrinsic, extending.overload

    @intrinsic
    def near(typing: Any, addresses: Any, mask: Any, shift: Any, row: Any) -> Any:
        return _made(_count_near, 6, addresses, mask, shift, row)

    @intrinsic
    def rises(typing: Any, addresses: Any, mask: Any) -> Any:
        return _made(_all_rise, 1, addresses, mask)

    @intrinsic
    def steps(typing: Any, addresses: Any, shift: Any) -> Any:
        return _made(_count_steps, 1, addresses, shift)

    def compiled_near(addresses: Any, mask: Any, shift: Any, row: Any) -> Any:
        return near(addresses, mask, shift, row)

    def compiled_rise(addresses: Any, mask: Any) -> Any:
        return rises(addresses, mask)[0] != 0

    def compiled_steps(addresses: Any, shift: Any) -> Any:
        return steps(addresses, shift)[0]

    for function, compiled in (
        (count_near, compiled_near),
        (all_rise, compiled_rise),
        (count_steps, compiled_steps),
    ):
        overload(function, strict=False)(partial(_always, compiled))


def _always(compiled: Callable[..., object], *types: Any) -> Callable[..., object]:
    """What is compiled, whatever the types are."""
    return compiled


def _made(emit: Emit, answers: int, *given: Any) -> Any:
    """What an intrinsic of Numba's gives: its types, and what emits it."""
    types: Any = import_module("numba.core.types")
    answer = types.UniTuple(types.int64, answers)

    def generate(context: Any, builder: Any, signature: Any, values: Sequence[Value]) -> Value:
        lanes = Lanes(builder.module, builder)
        return context.make_tuple(builder, answer, emit(lanes, [_plain(lanes, v) for v in values]))

    return answer(*given), generate


def _plain(lanes: Lanes, value: Value) -> Value:
    """A value, an opaque pointer if it is one of Numba's, which say what they point to."""
    if not value.type.is_pointer:
        return value
    same = lanes.slot(value, 0)
    same.type = PTR
    return same


# ---- lanes that rise ----------------------------------------------------------------------------


def _all_rise(lanes: Lanes, given: Sequence[Value]) -> list[Value]:
    """Whether all lanes take part, none at a lower address than the one before."""
    b, (at, mask) = lanes.b, given
    addresses = b.load(at, typ=WORDS, align=8)
    falls = lanes.any(b.icmp_unsigned("<", addresses, _before(lanes, addresses)))
    all_on = b.icmp_unsigned("==", b.and_(mask, I64(ALL_LANES)), I64(ALL_LANES))
    return [b.zext(b.and_(all_on, b.not_(falls)), I64)]


def _count_steps(lanes: Lanes, given: Sequence[Value]) -> list[Value]:
    """How many stretches the lanes touch, which rise."""
    b, (at, shift) = lanes.b, given
    stretches = b.lshr(b.load(at, typ=WORDS, align=8), lanes.splat(shift))
    steps = b.icmp_unsigned("!=", stretches, _before(lanes, stretches))
    return [b.add(lanes.popcount(lanes.bits(steps)), I64(1))]


def _before(lanes: Lanes, value: Value) -> Value:
    """In each lane what the one before has; the first has its own."""
    order = [I32(max(lane - 1, 0)) for lane in range(LANES)]
    return lanes.b.shuffle_vector(value, value, ir.Constant(vector(I32), order))


# ---- lanes in any order -------------------------------------------------------------------------


def _count_near(lanes: Lanes, given: Sequence[Value]) -> list[Value]:
    """The six numbers of `count_near`."""
    b, (at, mask, shift, row) = lanes.b, given
    on = lanes.mask(b.trunc(mask, I32))
    stretches = b.lshr(b.load(at, typ=WORDS, align=8), lanes.splat(shift))
    most = splat_constant(0xFFFFFFFFFFFFFFFF, I64)
    lowest = _reduced(lanes, "umin", b.select(on, stretches, most))
    highest = _reduced(lanes, "umax", b.select(on, stretches, zero(WORDS)))
    first = b.lshr(lowest, I64(5))
    rows = b.add(b.sub(b.lshr(highest, I64(5)), first), I64(1))
    near, done = b.append_basic_block("near"), b.append_basic_block("near.done")
    before = b.block
    b.cbranch(b.icmp_unsigned("<=", rows, I64(ROWS)), near, done)
    b.position_at_end(near)
    marks = lanes.slot(row, SCRATCH)
    _mark(lanes, marks, stretches, on)
    found = _take(lanes, marks, first, rows)
    taken = b.block
    b.branch(done)
    b.position_at_end(done)
    answers: list[Value] = []
    for value in found:
        answers.append(b.phi(I64))
        answers[-1].add_incoming(I64(0), before)
        answers[-1].add_incoming(value, taken)
    return answers


def _mark(lanes: Lanes, marks: Value, stretches: Value, on: Value) -> None:
    """Each lane adds one to the mark of its stretch."""
    b = lanes.b
    places = b.and_(stretches, splat_constant(STRETCHES - 1, I64))
    others = b.add(lane_numbers(I64), splat_constant(STRETCHES, I64))
    kept = lanes.alloca(WORDS)
    b.store(b.select(on, places, others), kept)
    for lane in range(LANES):
        # Out of memory, where LLVM would take a vector apart, which costs twice as much.
        place = b.load_atomic(lanes.slot(kept, lane), "monotonic", 8, typ=I64)
        at = lanes.slot(marks, place, I8)
        b.store(b.add(b.load(at, typ=I8), I8(1)), at)


def _take(lanes: Lanes, marks: Value, first: Value, rows: Value) -> list[Value]:
    """What the marks of some rows say, which are zero again then."""
    b = lanes.b
    before, loop, over = b.block, *(b.append_basic_block(f"rows{end}") for end in ("", ".over"))
    b.branch(loop)
    b.position_at_end(loop)
    index, *counts = (b.phi(I64) for _ in range(5))
    columns, highest = b.phi(BYTES), b.phi(BYTES)
    place = b.mul(b.and_(b.add(first, index), I64(ROWS - 1)), I64(LANES))
    at = lanes.slot(marks, place, I8)
    row = b.load(at, typ=BYTES, align=8)
    b.store(zero(BYTES), at, align=8)
    some = b.icmp_unsigned("!=", row, zero(BYTES))
    after = [b.add(index, I64(1))]
    after += [b.add(old, one) for old, one in zip(counts, _groups(lanes, some), strict=True)]
    after.append(b.sub(columns, b.sext(some, BYTES)))
    after.append(lanes.intrinsic("llvm.umax.v32i8", BYTES, [highest, row]))
    for phi, value in zip((index, *counts, columns, highest), after, strict=True):
        phi.add_incoming(zero(phi.type) if phi.type == BYTES else I64(0), before)
        phi.add_incoming(value, b.block)
    b.cbranch(b.icmp_unsigned("<", after[0], rows), loop, over)
    b.position_at_end(over)
    mosts = [b.zext(_reduced(lanes, "umax", value), I64) for value in after[-2:]]
    return [*after[1:5], *mosts]


def _groups(lanes: Lanes, some: Value) -> list[Value]:
    """Of a row, how many stretches are marked, and how many groups of 4, 8 and 32 have a mark."""
    b = lanes.b
    bits = lanes.bits(some)
    pairs = b.or_(bits, b.lshr(bits, I32(1)))
    fours = b.or_(pairs, b.lshr(pairs, I32(2)))
    eights = b.or_(fours, b.lshr(fours, I32(4)))
    whole = b.zext(b.icmp_unsigned("!=", bits, I32(0)), I64)
    masked = b.and_(fours, I32(EVERY_FOURTH)), b.and_(eights, I32(EVERY_EIGHTH))
    return [lanes.popcount(bits), *map(lanes.popcount, masked), whole]


def _reduced(lanes: Lanes, operation: str, value: Value) -> Value:
    """The lowest or highest of 32 lanes."""
    element = value.type.element
    name = f"llvm.vector.reduce.{operation}.v{LANES}i{element.width}"
    return lanes.intrinsic(name, element, [value])
