"""Code that tells whether lanes reach shared memory that nobody has written, from the bits that the
detector keeps (`rules.happens_before.memory_words.check_written`)."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.environment import Slot
from warploom.codegen.lanes import I1, I64, PTR, Lanes, Value, splat_constant, vector
from warploom.rules import plan_words
from warploom.rules.happens_before import words

WORD_SHIFT = 5
"""A word of the bits of written bytes has 32 of them."""

FULL = I64((1 << 32) - 1)
MOST_WORDS = 64
"""So many words are looked at one by one, before each lane's own."""


def emit_unwritten(lanes: Lanes, size: int) -> None:
    """Emits the body of a function of the environment, 32 addresses, the lanes that reach `size`
    bytes there, and the size of shared memory. It returns whether some of these bytes are not
    written, or nothing is known of the block yet."""
    b, function = lanes.b, lanes.b.function
    environment, addresses, bits, limit = function.args
    mask = lanes.mask(bits)
    state, start = _slot_of(lanes, environment)
    block = b.add(_word(lanes, environment, int(Slot.BLOCK)), I64(1))
    known = b.icmp_signed("==", _word(lanes, state, b.add(start, I64(words.B_BLOCK))), block)
    low, high = _range(lanes, addresses, mask, size)
    inside = b.and_(known, b.icmp_unsigned("<=", high, limit))
    at = b.add(start, _word(lanes, state, words.SLOT_WRITTEN))
    first = lanes.slot(state, at)
    within, unknown = (function.append_basic_block(name) for name in ("within", "unknown"))
    b.cbranch(inside, within, unknown)
    b.position_at_end(unknown)
    b.ret(I1(1))
    b.position_at_end(within)
    apart = _emit_words(lanes, first, low, high)
    b.position_at_end(apart)
    b.ret(_some_unwritten(lanes, first, addresses, mask, size))


def _slot_of(lanes: Lanes, environment: Value) -> tuple[Value, Value]:
    """Returns the detector's state, and where that of the current block begins in it."""
    b = lanes.b
    state, plan = (
        b.inttoptr(_word(lanes, environment, int(slot)), PTR)
        for slot in (Slot.DETECTOR_AT, Slot.PLAN_AT)
    )
    number = _word(lanes, plan, plan_words.SLOT)
    number = b.select(b.icmp_signed(">", number, I64(0)), number, I64(0))
    size = _word(lanes, state, words.SLOT_WORDS)
    return state, b.add(_word(lanes, state, words.SLOTS_AT), b.mul(number, size))


def _range(lanes: Lanes, addresses: Value, mask: Value, size: int) -> tuple[Value, Value]:
    """Returns where the lowest byte lies that some lanes reach, and where their last one ends."""
    b = lanes.b
    none = splat_constant(-1, I64), splat_constant(0, I64)
    ends = [
        lanes.intrinsic(
            f"llvm.vector.reduce.{name}.v32i64", I64, [b.select(mask, addresses, neutral)]
        )
        for name, neutral in zip(("umin", "umax"), none, strict=True)
    ]
    return ends[0], b.add(ends[1], I64(size))


def _emit_words(lanes: Lanes, first: Value, low: Value, high: Value) -> ir.Block:
    """Emits a return of "none" where all bytes from `low` to `high` are written and lie in a few
    words; returns the block to go on in otherwise."""
    b, function = lanes.b, lanes.b.function
    names = ("few", "next", "written", "apart")
    few, following, written, apart = (function.append_basic_block(name) for name in names)
    begin, last = (b.lshr(at, I64(WORD_SHIFT)) for at in (low, b.sub(high, I64(1))))
    before_loop = b.block
    b.cbranch(b.icmp_unsigned("<", b.sub(last, begin), I64(MOST_WORDS)), few, apart)
    b.position_at_end(few)
    at = b.phi(I64)
    word = b.load(lanes.slot(first, at), typ=I64)
    # Bits of bytes outside of the range count as set.
    before = b.shl(I64(1), b.and_(low, I64(31)))
    before = b.select(b.icmp_unsigned("==", at, begin), b.sub(before, I64(1)), I64(0))
    behind = b.shl(I64(-2), b.and_(b.sub(high, I64(1)), I64(31)))
    behind = b.select(b.icmp_unsigned("==", at, last), behind, I64(0))
    found = b.and_(b.or_(word, b.or_(before, behind)), FULL)
    b.cbranch(b.icmp_unsigned("==", found, FULL), following, apart)
    b.position_at_end(following)
    after = b.add(at, I64(1))
    b.cbranch(b.icmp_unsigned("<=", after, last), few, written)
    at.add_incoming(begin, before_loop)
    at.add_incoming(after, following)
    b.position_at_end(written)
    b.ret(I1(0))
    return apart


def _some_unwritten(lanes: Lanes, first: Value, addresses: Value, mask: Value, size: int) -> Value:
    """Returns whether a lane's own bytes are not all written."""
    b = lanes.b
    words_at = b.shl(b.lshr(addresses, splat_constant(WORD_SHIFT, I64)), splat_constant(3, I64))
    start = lanes.splat(b.ptrtoint(first, I64))
    found = lanes.gather(b.inttoptr(b.add(start, words_at), vector(PTR)), mask, I64)
    within = b.and_(addresses, splat_constant((1 << WORD_SHIFT) - 1, I64))
    wanted = splat_constant((1 << size) - 1, I64)
    missing = b.icmp_unsigned("!=", b.and_(b.lshr(found, within), wanted), wanted)
    return lanes.any(b.and_(mask, missing))


def _word(lanes: Lanes, array: Value, index: Value | int) -> Value:
    return lanes.b.load(lanes.slot(array, index), typ=I64)
