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
    I1,
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
WINDOW_BITS = 8
WINDOW_ROWS = (1 << WINDOW_BITS) // LANES
WORDS, PLACES, PAIR = vector(I64), vector(I32), ir.VectorType(I8, 2 * LANES)
EVERY_FOURTH = 0x11111111

FEW = 8
"""Lanes that are looked at before the others are."""

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
    """Whether all lanes take part, none at a lower address than the one before. Mostly the first
    few tell, if they do not."""
    b, (at, mask) = lanes.b, given
    first = b.load(at, typ=ir.VectorType(I64, FEW), align=8)
    falls = b.bitcast(b.icmp_unsigned("<", first, _before(lanes, first)), ir.IntType(FEW))
    some_off = b.icmp_unsigned("!=", b.and_(mask, I64(ALL_LANES)), I64(ALL_LANES))
    no = b.or_(some_off, b.icmp_unsigned("!=", falls, ir.IntType(FEW)(0)))
    before, rest, told = b.block, *(b.append_basic_block(f"rise{end}") for end in ("", ".told"))
    b.cbranch(no, told, rest)
    b.position_at_end(rest)
    addresses = b.load(at, typ=WORDS, align=8)
    falls = lanes.any(b.icmp_unsigned("<", addresses, _before(lanes, addresses)))
    rises = b.zext(b.not_(falls), I64)
    b.branch(told)
    b.position_at_end(told)
    answer = b.phi(I64)
    answer.add_incoming(I64(0), before)
    answer.add_incoming(rises, rest)
    return [answer]


def _count_steps(lanes: Lanes, given: Sequence[Value]) -> list[Value]:
    """How many stretches the lanes touch, which rise."""
    b, (at, shift) = lanes.b, given
    stretches = b.lshr(b.load(at, typ=WORDS, align=8), lanes.splat(shift))
    steps = b.icmp_unsigned("!=", stretches, _before(lanes, stretches))
    return [b.add(lanes.popcount(lanes.bits(steps)), I64(1))]


def _before(lanes: Lanes, value: Value) -> Value:
    """In each lane what the one before has; the first has its own."""
    order = [I32(max(lane - 1, 0)) for lane in range(value.type.count)]
    whole = ir.VectorType(I32, len(order))
    return lanes.b.shuffle_vector(value, value, ir.Constant(whole, order))


# ---- lanes in any order -------------------------------------------------------------------------


def _count_near(lanes: Lanes, given: Sequence[Value]) -> list[Value]:
    """The six numbers of `count_near`."""
    b, (at, mask, shift, row) = lanes.b, given
    near, done = b.append_basic_block("near"), b.append_basic_block("near.done")
    on = lanes.mask(b.trunc(mask, I32))
    addresses = b.load(at, typ=WORDS, align=8)
    one = b.load(lanes.slot(at, lanes.intrinsic("llvm.cttz.i64", I64, [mask, I1(1)])), typ=I64)
    found = _windows(lanes, (addresses, on, one, shift), near, done)
    far = b.block
    b.position_at_end(near)
    first, count = (b.phi(I64) for _ in range(2))
    for block, values in found:
        for phi, value in zip((first, count), values, strict=True):
            phi.add_incoming(value, block)
    marks = lanes.slot(row, SCRATCH)
    _mark(lanes, marks, b.lshr(b.trunc(addresses, PLACES), lanes.splat(b.trunc(shift, I32))), on)
    taken = _take(lanes, marks, first, count)
    for value in (taken[0], taken[-1]):  # what callers ask: whether lanes were near
        lanes.intrinsic("llvm.assume", ir.VoidType(), [b.icmp_unsigned("!=", value, I64(0))])
    b.branch(done)
    last = b.block
    b.position_at_end(done)
    answers: list[Value] = []
    for value in taken:
        answers.append(b.phi(I64))
        answers[-1].add_incoming(I64(0), far)
        answers[-1].add_incoming(value, last)
    return answers


Windows = tuple[ir.Block, tuple[Value, Value]]
"""Coming from a block: the first window that lanes touch, and how many follow each other."""


def _windows(
    lanes: Lanes, given: tuple[Value, Value, Value, Value], near: ir.Block, done: ir.Block
) -> list[Windows]:
    """Branch to `near` where lanes are near, else to `done`: by what `count_near` is given, and the
    address of one lane, which mostly says in which window all are."""
    b, (addresses, on, one, shift) = lanes.b, given
    bits = b.add(shift, I64(WINDOW_BITS))
    apart = b.lshr(b.xor(addresses, lanes.splat(one)), lanes.splat(bits))
    some = lanes.any(b.and_(b.icmp_unsigned("!=", apart, zero(WORDS)), on))
    window, here, wide = b.lshr(one, bits), b.block, b.append_basic_block("wide")
    b.cbranch(some, wide, near)
    b.position_at_end(wide)
    taken = b.select(on, addresses, lanes.splat(one))
    ends = [_reduced(lanes, operation, taken) for operation in ("umin", "umax")]
    first, last = (b.lshr(end, bits) for end in ends)
    top, bottom = (b.lshr(end, b.add(shift, I64(5))) for end in ends)
    # The ring has no more: where the last window is the first one's place, it is the same.
    count = b.add(b.sub(last, first), I64(1))
    count = lanes.intrinsic("llvm.umin.i64", I64, [count, I64(STRETCHES >> WINDOW_BITS)])
    b.cbranch(b.icmp_unsigned("<", b.sub(bottom, top), I64(ROWS)), near, done)
    return [(here, (window, I64(1))), (wide, (first, count))]


def _mark(lanes: Lanes, marks: Value, stretches: Value, on: Value) -> None:
    """Each lane adds one to the mark of its stretch, of which the low bits say where it is."""
    b = lanes.b
    inside = b.and_(stretches, splat_constant(STRETCHES - 1, I32))
    others = b.add(lane_numbers(I32), splat_constant(STRETCHES, I32))
    places = lanes.slot(marks, STRETCHES + LANES, I8)
    b.store(b.select(on, inside, others), places, align=4)
    for lane in range(LANES):
        # Out of memory, where LLVM would take a vector apart, which costs twice as much.
        place = b.load_atomic(lanes.slot(places, lane, I32), "monotonic", 4, typ=I32)
        at = lanes.slot(marks, b.zext(place, I64), I8)
        b.store(b.add(b.load(at, typ=I8), I8(1)), at)


def _take(lanes: Lanes, marks: Value, first: Value, count: Value) -> list[Value]:
    """What the marks of some windows say, which are zero again then."""
    b = lanes.b
    before, loop, over = b.block, *(b.append_basic_block(f"window{end}") for end in ("", ".over"))
    b.branch(loop)
    b.position_at_end(loop)
    index, *counts = (b.phi(I64) for _ in range(4))
    columns, highest = b.phi(PAIR), b.phi(PAIR)
    place = b.and_(b.shl(b.add(first, index), I64(WINDOW_BITS)), I64(STRETCHES - 1))
    at = lanes.slot(marks, place, I8)
    after = [b.add(index, I64(1))]
    after += [b.add(old, one) for old, one in zip(counts, _groups(lanes, at), strict=True)]
    many, most = columns, highest
    for pair in range(WINDOW_ROWS // 2):
        here = lanes.slot(at, 2 * LANES * pair, I8)
        rows = b.load(here, typ=PAIR, align=8)
        b.store(zero(PAIR), here, align=8)
        many = b.add(many, b.zext(b.icmp_unsigned("!=", rows, zero(PAIR)), PAIR))
        most = lanes.intrinsic("llvm.umax.v64i8", PAIR, [most, rows])
    after += [many, most]
    for phi, value in zip((index, *counts, columns, highest), after, strict=True):
        phi.add_incoming(zero(phi.type) if phi.type == PAIR else I64(0), before)
        phi.add_incoming(value, b.block)
    b.cbranch(b.icmp_unsigned("<", after[0], count), loop, over)
    b.position_at_end(over)
    halves = [ir.Constant(vector(I32), [I32(n + at) for n in range(LANES)]) for at in (0, LANES)]
    many = b.add(*(b.shuffle_vector(many, many, half) for half in halves))
    ends = (("add", many), ("umax", many), ("umax", most))
    stretches, column, lanes_on_one = (b.zext(_reduced(lanes, *end), I64) for end in ends)
    return [stretches, *after[1:4], column, lanes_on_one]


def _groups(lanes: Lanes, window: Value) -> list[Value]:
    """How many groups of 4, of 8 and of 32 stretches of a window have a mark."""
    b = lanes.b
    fours, eights = (
        b.icmp_unsigned("!=", b.load(window, typ=type, align=8), zero(type))
        for type in (ir.VectorType(I32, 2 * LANES), WORDS)
    )
    bits = lanes.bits(eights)
    pairs = b.or_(bits, b.lshr(bits, I32(1)))
    lines = b.and_(b.or_(pairs, b.lshr(pairs, I32(2))), I32(EVERY_FOURTH))
    number = lanes.intrinsic("llvm.ctpop.i64", I64, [b.bitcast(fours, I64)])
    return [number, lanes.popcount(bits), lanes.popcount(lines)]


def _reduced(lanes: Lanes, operation: str, value: Value) -> Value:
    """All lanes of a vector put together."""
    element, count = value.type.element, value.type.count
    name = f"llvm.vector.reduce.{operation}.v{count}i{element.width}"
    return lanes.intrinsic(name, element, [value])
