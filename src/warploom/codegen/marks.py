"""What lanes in any order touch, counted by vector instructions (`rules.near`).

Lanes that are near each other mark what they touch, a byte for each stretch of memory. The marks
are 32 rows of 32 bytes behind a row of counts, a ring in which a stretch has its place by its
number. Each counts the lanes on its stretch, and all are zero between accesses. They are read by
windows of 8 rows; mostly all lanes are in one. Behind them stands a byte for each lane, which lanes
mark that take no part, and then the place of each lane's mark.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from warploom.codegen.lanes import (
    I1,
    I8,
    I32,
    I64,
    LANES,
    Lanes,
    Value,
    lane_numbers,
    splat_constant,
    vector,
    zero,
)
from warploom.rules.fields import SCRATCH
from warploom.rules.near import ROWS

STRETCHES = ROWS * LANES
WINDOW_BITS = 8
WINDOW_ROWS = (1 << WINDOW_BITS) // LANES
WORDS, PLACES, PAIR = vector(I64), vector(I32), ir.VectorType(I8, 2 * LANES)
EVERY_FOURTH = 0x11111111


def count_near_by_marks(lanes: Lanes, given: Sequence[Value]) -> list[Value]:
    """The six numbers of `rules.near.count_near`, of what that is given."""
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
