"""Emits functions that check whether lanes access shared memory that no thread has written, from
the detector's bitmap of written bytes (`detector.memory_words.check_written`).

The bitmap has one bit a byte, 32 in each 64-bit word. The block's longest written range is stored
beside it and answers most checks with two comparisons:

    range [0, 0x400), load of [0x80, 0x100): covered
    load of [0x400, 0x480): bits of words 0x20..0x23 are tested; if all are set, the range
    grows to 0x480, and on as far as the bits after it are set
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.detector.records import DetectorState, ResidentBlock
from warploom.llvm.lanes import I1, I32, I64, PTR, Lanes, Value, splat_constant, vector
from warploom.llvm.masked_memory import gather
from warploom.simt.schedule_layout import Plan

WORD_SHIFT = 5
"""A word of the bitmap has bits for 32 bytes."""

FULL = I64((1 << 32) - 1)
"""A bitmap word of 32 written bytes; the upper half of a word is not used."""
MOST_WORDS = 64
"""Words of a range that are tested before each lane is checked; also how many words beyond either
end extend the range of written bytes."""


@dataclass(frozen=True, slots=True)
class DetectorBlock:
    """Locates the detector's state of a thread block: `state` is its address, `number` the block's
    number plus 1, which the state holds while it is this block's, and `written` the offset of its
    bitmap of written bytes, in words."""

    state: Value
    number: Value
    written: Value


def block_of(lanes: Lanes, environment: Value) -> DetectorBlock:
    """Emits the location of the detector's state of the environment's current block: its address,
    the block's number plus 1, which a current state holds, and the address of its bitmap. The
    schedule's slot of the block selects it, slot 0 without a schedule."""
    b = lanes.b
    state, plan = (
        b.inttoptr(_word(lanes, environment, int(slot)), PTR)
        for slot in (Slot.DETECTOR_AT, Slot.PLAN_AT)
    )
    slot = _word(lanes, plan, Plan.slot)
    slot = b.select(b.icmp_signed(">", slot, I64(0)), slot, I64(0))
    size = _word(lanes, state, DetectorState.slot_words)
    start = b.add(_word(lanes, state, DetectorState.slots_at), b.mul(slot, size))
    number = b.add(_word(lanes, environment, int(Slot.BLOCK)), I64(1))
    return DetectorBlock(
        lanes.slot(state, start), number, _word(lanes, state, DetectorState.slot_written)
    )


def is_known_written(lanes: Lanes, block: DetectorBlock, low: Value, high: Value) -> Value:
    """Returns true (an i1) if the bytes from `low` up to `high` (offsets in shared memory) lie in
    the range of written bytes that is stored of the block, and the detector's state is this
    block's.
    """
    b = lanes.b
    begin, end = (
        _word(lanes, block.state, at)
        for at in (ResidentBlock.written_from, ResidentBlock.written_to)
    )
    within = b.and_(b.icmp_unsigned(">=", low, begin), b.icmp_unsigned("<=", high, end))
    return b.and_(is_current(lanes, block), within)


def is_current(lanes: Lanes, block: DetectorBlock) -> Value:
    """Returns true (an i1) if the detector's state is that of the block."""
    return lanes.b.icmp_signed("==", _word(lanes, block.state, ResidentBlock.block), block.number)


def emit_range_unwritten(lanes: Lanes) -> None:
    """Emits the body of the function `unwritten(environment, first byte, end, size of shared
    memory)`. It returns true if a byte between is not written, if the range is empty, beyond the
    end or has more than MOST_WORDS bitmap words, or if the detector has no state of the block yet.
    A range that is written extends the stored one, and on over written words beside it."""

    def check(address: Value, outside: Value) -> Value:
        """Returns true (an i1) if all bytes of the range in the bitmap word at an address are
        written."""
        b = lanes.b
        # Bits outside of the range are set, so that only its own decide.
        loaded = b.or_(b.load(address, typ=I64), outside)
        return b.icmp_unsigned("==", b.and_(loaded, FULL), FULL)

    def extend(bitmap: Value) -> tuple[Value, Value]:
        """Returns the ends of the range, extended over written words beside it."""
        _, low, high, limit = lanes.b.function.args
        return _extended_range(lanes, bitmap, low, high, limit)

    _emit_range(lanes, check, extend)


def emit_range_written(lanes: Lanes) -> None:
    """Emits the body of the function `write(environment, first byte, end, size of shared memory)`,
    which marks the bytes between as written and returns false. It returns true, and does nothing,
    if the range is empty, beyond the end or has more than MOST_WORDS bitmap words, or if the
    detector has no state of the block yet."""

    def write(address: Value, outside: Value) -> Value:
        """Marks the range's bytes in the bitmap word at an address as written; returns true."""
        b = lanes.b
        b.store(b.or_(b.load(address, typ=I64), b.xor(outside, FULL)), address)
        return I1(1)

    _emit_range(lanes, write, lambda _: lanes.b.function.args[1:3])


def _emit_range(
    lanes: Lanes,
    visit: Callable[[Value, Value], Value],
    around: Callable[[Value], tuple[Value, Value]],
) -> None:
    """Emits the body of a function for a range of shared memory. It returns false if the range lies
    in the block's stored range of written bytes, or if `visit` returns true for each of its bitmap
    words; `visit` gets a word's address and its bits outside of the range. In the second case all
    of the range is written, and so is the larger one that `around` returns, given the bitmap's
    address: merged with the stored one if they adjoin, it replaces that if it is longer. Else it
    returns true."""
    b, function = lanes.b, lanes.b.function
    _, low, high, _ = function.args
    block, bitmap, unknown = _locate_block(lanes, low, high)
    ends = [
        lanes.slot(block, word) for word in (ResidentBlock.written_from, ResidentBlock.written_to)
    ]
    begin, end = (b.load(at, typ=I64) for at in ends)
    done_block, check_words = (
        function.append_basic_block(name) for name in ("covered", "check_words")
    )
    is_covered = b.and_(b.icmp_unsigned(">=", low, begin), b.icmp_unsigned("<=", high, end))
    b.cbranch(is_covered, done_block, check_words)
    b.position_at_end(check_words)
    _each_word(
        lanes, low, high, unknown, lambda at, outside: visit(lanes.slot(bitmap, at), outside)
    )
    low, high = around(bitmap)
    # Only one range is kept: merge it with an adjoining one, else keep the longer of both.
    adjoins = b.and_(b.icmp_unsigned("<=", low, end), b.icmp_unsigned(">=", high, begin))
    lower = b.select(b.and_(adjoins, b.icmp_unsigned("<", begin, low)), begin, low)
    upper = b.select(b.and_(adjoins, b.icmp_unsigned(">", end, high)), end, high)
    longer = b.icmp_unsigned(">", b.sub(upper, lower), b.sub(end, begin))
    with b.if_then(longer):
        for at, value in zip(ends, (lower, upper), strict=True):
            b.store(value, at)
    b.branch(done_block)
    b.position_at_end(done_block)
    b.ret(I1(0))


def _locate_block(lanes: Lanes, low: Value, high: Value) -> tuple[Value, Value, ir.Block]:
    """Locates the current block in a function whose first argument is the environment and whose
    last is the size of shared memory. Returns the addresses of its state and of its bitmap, and an
    LLVM block that returns true: code branches there if the detector has no state of the block, or
    if the range from `low` to `high` is empty or ends outside of shared memory."""
    b, function = lanes.b, lanes.b.function
    environment, limit = function.args[0], function.args[-1]
    block = block_of(lanes, environment)
    inside = b.and_(b.icmp_unsigned("<", low, high), b.icmp_unsigned("<=", high, limit))
    within, unknown = (function.append_basic_block(name) for name in ("within", "unknown"))
    b.cbranch(b.and_(is_current(lanes, block), inside), within, unknown)
    b.position_at_end(unknown)
    b.ret(I1(1))
    b.position_at_end(within)
    return block.state, lanes.slot(block.state, block.written), unknown


def emit_unwritten(lanes: Lanes, size: int, of_range: ir.Function | None, *, writes: bool) -> None:
    """Emits the body of a function of the environment, 32 addresses, the lanes that access `size`
    bytes there (an i32), and the size of shared memory. It returns true if some of these bytes are
    not written, if they are outside of shared memory, or if the detector has no state of the block
    yet. If it `writes`, it marks the bytes, and returns true only in the last two cases. `of_range`
    is the function of `emit_range_unwritten`, called first for the whole range, which answers false
    if all of it is written; None if that was done before."""
    b, function = lanes.b, lanes.b.function
    environment, addresses, bits, limit = function.args
    mask = lanes.mask(bits)
    offsets = b.trunc(addresses, vector(I32))
    high = _reduced(lanes, "umax", b.select(mask, offsets, splat_constant(0, I32)))
    # An address of more than 32 bits is outside of shared memory: make the range end at the largest
    # number, which fails the bounds check.
    beyond = b.lshr(addresses, splat_constant(32, I64))
    beyond = b.select(mask, b.trunc(beyond, vector(I32)), splat_constant(0, I32))
    end = b.add(b.zext(high, I64), I64(size))
    end = b.select(b.icmp_unsigned("==", _reduced(lanes, "or", beyond), I32(0)), end, I64(-1))
    low = I64(0)
    if of_range is not None:
        low = _reduced(lanes, "umin", b.select(mask, offsets, splat_constant(-1, I32)))
        low = b.zext(low, I64)
        written, fallback = (
            function.append_basic_block(name) for name in ("written", "lane_by_lane")
        )
        some = b.icmp_unsigned("!=", bits, I32(0))
        b.cbranch(b.and_(some, b.call(of_range, (environment, low, end, limit))), fallback, written)
        b.position_at_end(written)
        b.ret(I1(0))
        b.position_at_end(fallback)
    _, bitmap, _ = _locate_block(lanes, low, end)
    if writes:
        _write_lanes(lanes, bitmap, offsets, bits, size)
        b.ret(I1(0))
    else:
        b.ret(_some_unwritten(lanes, bitmap, offsets, mask, size))


def _reduced(lanes: Lanes, operation: str, value: Value) -> Value:
    """Returns a 32-lane vector of i32 reduced to an i32 by `operation` (such as `umax`, `or`)."""
    return lanes.intrinsic(f"llvm.vector.reduce.{operation}.v32i32", I32, [value])


def _each_word(
    lanes: Lanes,
    low: Value,
    high: Value,
    fallback: ir.Block,
    visit: Callable[[Value, Value], Value],
) -> None:
    """Emits a loop over the bitmap words of the bytes from `low` up to `high` (not empty), while
    `visit` returns true. A word has 64 bits, whose low 32 stand for 32 bytes; `visit` gets its
    index, and the mask of its bits outside of the range. Code continues after the last word, and
    branches to `fallback` if `visit` returns false, or if there are more than MOST_WORDS words."""
    b, function = lanes.b, lanes.b.function
    loop_block, following, through = (
        function.append_basic_block(name) for name in ("words", "next_word", "words_end")
    )
    begin, last = (b.lshr(at, I64(WORD_SHIFT)) for at in (low, b.sub(high, I64(1))))
    before_loop = b.block
    b.cbranch(b.icmp_unsigned("<", b.sub(last, begin), I64(MOST_WORDS)), loop_block, fallback)
    b.position_at_end(loop_block)
    at = b.phi(I64)
    # Only the first and the last word have bits outside of the range.
    before = b.shl(I64(1), b.and_(low, I64(31)))
    before = b.select(b.icmp_unsigned("==", at, begin), b.sub(before, I64(1)), I64(0))
    after_mask = b.shl(I64(-2), b.and_(b.sub(high, I64(1)), I64(31)))
    after_mask = b.select(b.icmp_unsigned("==", at, last), after_mask, I64(0))
    b.cbranch(visit(at, b.and_(b.or_(before, after_mask), FULL)), following, fallback)
    b.position_at_end(following)
    after = b.add(at, I64(1))
    b.cbranch(b.icmp_unsigned("<=", after, last), loop_block, through)
    at.add_incoming(begin, before_loop)
    at.add_incoming(after, following)
    b.position_at_end(through)


def _extended_range(
    lanes: Lanes, bitmap: Value, low: Value, high: Value, limit: Value
) -> tuple[Value, Value]:
    """Returns the ends of a range of written bytes (`low`, `high`), moved outwards to word
    boundaries over up to MOST_WORDS bitmap words at either end whose bytes are all written.
    `bitmap` is the bitmap's address, `limit` the bytes of shared memory."""
    b, most = lanes.b, I64(MOST_WORDS)
    below = b.lshr(b.add(low, I64((1 << WORD_SHIFT) - 1)), I64(WORD_SHIFT))
    above, of_memory = (b.lshr(at, I64(WORD_SHIFT)) for at in (high, limit))
    least = b.select(b.icmp_unsigned(">", below, most), b.sub(below, most), I64(0))
    last = b.add(above, most)
    last = b.select(b.icmp_unsigned("<", last, of_memory), last, of_memory)
    lower, upper = (
        b.shl(_past_full_words(lanes, bitmap, at, end, step), I64(WORD_SHIFT))
        for at, end, step in ((below, least, -1), (above, last, 1))
    )
    return (
        b.select(b.icmp_unsigned("<", lower, low), lower, low),
        b.select(b.icmp_unsigned(">", upper, high), upper, high),
    )


def _past_full_words(lanes: Lanes, bitmap: Value, start: Value, end: Value, step: int) -> Value:
    """Returns the word boundary at which a scan of the bitmap from boundary `start` to `end` stops:
    before the first word (downwards: below it) whose 32 bits are not all set. `step` is 1 upwards,
    -1 downwards."""
    b, function = lanes.b, lanes.b.function
    scan, test_word, stop = (
        function.append_basic_block(name) for name in ("scan", "test_word", "stop")
    )
    before = b.block
    b.branch(scan)
    b.position_at_end(scan)
    at = b.phi(I64)
    b.cbranch(b.icmp_unsigned("==", at, end), stop, test_word)
    b.position_at_end(test_word)
    following = b.add(at, I64(step))
    word = _word(lanes, bitmap, at if step > 0 else following)
    b.cbranch(b.icmp_unsigned("==", word, FULL), scan, stop)
    at.add_incoming(start, before)
    at.add_incoming(following, test_word)
    b.position_at_end(stop)
    return at


def _some_unwritten(lanes: Lanes, bitmap: Value, offsets: Value, mask: Value, size: int) -> Value:
    """Returns true (an i1) if the `size` bytes (fewer than 32) of some lane of `mask` are not all
    marked in the bitmap at `bitmap`, or lie in two of its words."""
    b = lanes.b
    # The bits of an aligned access of up to 32 bytes lie in one word. A misaligned one may cross
    # words: the shift then leaves zeros, and it counts as unwritten, which the detector decides.
    words_at = b.lshr(offsets, splat_constant(WORD_SHIFT, I32))
    at = b.gep(lanes.splat(bitmap), [b.zext(words_at, vector(I64))], source_etype=I64)
    # A 32-bit gather reads the low half of the word, in which all its bits are.
    loaded = gather(lanes, at, mask, I32)
    within = b.and_(offsets, splat_constant((1 << WORD_SHIFT) - 1, I32))
    wanted = splat_constant((1 << size) - 1, I32)
    missing = b.icmp_unsigned("!=", b.and_(b.lshr(loaded, within), wanted), wanted)
    return lanes.any(b.and_(mask, missing))


def _write_lanes(lanes: Lanes, bitmap: Value, offsets: Value, bits: Value, size: int) -> None:
    """Marks the `size` bytes of each lane in `bits` (an i32, which may be 0) as written in the
    bitmap at `bitmap`, one lane after the other: several lanes may have bits in one word."""
    b, buffer = lanes.b, lanes.alloca(vector(I32))
    b.store(offsets, buffer)
    before = b.block
    next_lane, done = (b.append_basic_block(name) for name in ("each", "done"))
    b.cbranch(b.icmp_unsigned("!=", bits, I32(0)), next_lane, done)
    b.position_at_end(next_lane)
    left = b.phi(I32)
    lane = b.cttz(left, I1(1))
    offset = b.zext(b.load(lanes.slot(buffer, b.zext(lane, I64), I32), typ=I32), I64)
    at = lanes.slot(bitmap, b.lshr(offset, I64(WORD_SHIFT)))
    written = b.shl(I64((1 << size) - 1), b.and_(offset, I64((1 << WORD_SHIFT) - 1)))
    b.store(b.or_(b.load(at, typ=I64), written), at)
    remaining = b.and_(left, b.sub(left, I32(1)))
    b.cbranch(b.icmp_unsigned("!=", remaining, I32(0)), next_lane, done)
    left.add_incoming(bits, before)
    left.add_incoming(remaining, b.block)
    b.position_at_end(done)


def _word(lanes: Lanes, array: Value, index: Value | int) -> Value:
    """Loads a 64-bit word of an array."""
    return lanes.b.load(lanes.slot(array, index), typ=I64)
