"""Code that has the detector (`detector`) take an access of a warp."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.abi.environment import Slot
from warploom.analysis.vector_shape import VectorShape
from warploom.detector import layout as words
from warploom.detector.runs import WORD
from warploom.helpers.calls import call
from warploom.llvm.lanes import (
    I1,
    I32,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    lane_numbers,
    repeated,
    selection,
    splat_constant,
    vector,
    zero,
)
from warploom.ptx.ir import Space

SPACES = {Space.GLOBAL: 0, Space.CONST: 0, Space.SHARED: 1, Space.LOCAL: 2}
"""How the detector numbers spaces; in local memory it only checks bounds."""

OPS = ("load", "store", "atomic")

FEW_RUNS = 4
"""So many rows of lanes of one access `detect_rows` is always asked to take."""


@dataclass(frozen=True, slots=True)
class LaneRuns:
    """Locates what the lanes of a warp reach: `firsts` has the address of the first lane of each of
    as many equal runs as `access_type` has, in which the lanes follow by its stride."""

    firsts: Value
    layout: VectorShape


def emit_event(lanes: Lanes, access_type: AccessType, runs: VectorShape) -> None:
    """Emit a function that has the detector take an access of that shape, and returns the lanes
    that may do it, an i32. It is given the environment, the warp, the instruction, the addresses of
    the first lanes of `runs` and the lanes that are on, where the data are that they store, and of
    their memory the first byte on the host and the length."""
    environment, warp, index, firsts, mask, data, base, limit = lanes.b.function.args
    b, event = lanes.b, lanes.alloca(ir.ArrayType(I64, words.EVENT_WORDS))
    places = lanes.alloca(vector(I64))

    def slot(number: Slot) -> Value:
        return b.load(lanes.slot(environment, int(number)), typ=I64)

    fill_event(
        lanes,
        event,
        {
            words.E_INSTRUCTION: index,
            words.E_BLOCK: slot(Slot.BLOCK),
            words.E_WARP: warp,
            words.E_LANES: b.zext(mask, I64),
            words.E_SPACE: I64(SPACES[access_type.space]),
            words.E_OP: I64(OPS.index(access_type.op)),
            words.E_SIZE: I64(access_type.size),
            words.E_LIMIT: limit,
        },
    )
    state, plan = (b.inttoptr(slot(n), PTR) for n in (Slot.DETECTOR_AT, Slot.PLAN_AT))
    if access_type.op != "atomic" and access_type.space is not Space.LOCAL:
        exact = b.load(lanes.slot(state, words.EXACT), typ=I64)
        thinned = b.and_(b.icmp_signed("==", exact, I64(0)), I1(access_type.op == "load"))
        steps = _steps(lanes, access_type.size, LaneRuns(firsts, runs))
        reported = _reported_lanes(lanes, steps.same, mask, thinned)
        heads = _heads(lanes, access_type.size, steps.breaks, reported)
        if runs.width == LANES and access_type.size >= WORD:
            heads = _one_head(lanes, access_type.size, firsts, reported, heads)
        lane_masks = {words.E_SHOWN: b.zext(reported, I64), words.E_HEADS: b.zext(heads, I64)}
        fill_event(lanes, event, lane_masks)
        with b.if_then(_prefer_runs(lanes, heads, steps)):
            b.store(firsts, places)
            shift = (LANES // runs.width).bit_length() - 1
            run_layout = I64(shift), I64(runs.stride)
            recorded = call(lanes, "detect_rows", state, event, plan, places, *run_layout)
            with b.if_then(b.icmp_signed("!=", recorded, I64(0))):
                b.ret(mask)
    remaining_fields = {
        words.E_KIND: I64(words.ACCESS),
        words.E_PART: I64(access_type.type.bytes),
        words.E_BASE: b.ptrtoint(base, I64),
    }
    fill_event(lanes, event, remaining_fields)
    b.store(lanes.fan(firsts, runs.stride), places)
    none = ir.Constant(PTR, None)
    permitted = call(lanes, "detect_event", state, event, plan, none, places, data)
    b.ret(b.trunc(permitted, I32))


@dataclass(frozen=True, slots=True)
class _Steps:
    """Masks, i32: the lanes that reach the `same` address as the lane before; the `breaks`, which
    do not reach what follows its bytes; and those that are as far behind it as it is behind the one
    before, in `strided` steps of a run (`words.MOST_STRIDE`)."""

    same: Value
    breaks: Value
    strided: Value


def _steps(lanes: Lanes, size: int, runs: LaneRuns) -> _Steps:
    """Return how each lane's address follows that of the lane before, where lanes reach `size`
    bytes each."""
    b, firsts, (width, stride) = lanes.b, runs.firsts, (runs.layout.width, runs.layout.stride)
    begins = ((1 << LANES) - 1) // ((1 << LANES // width) - 1)
    inside = begins ^ ((1 << LANES) - 1)
    same, breaks = I32(inside * (stride == 0)), I32(inside * (stride != size) | 1)
    strided = I32(inside & ~(begins << 1) if 0 < abs(stride) <= words.MOST_STRIDE else 0)
    if width == 1:
        return _Steps(same, breaks, strided)
    before = selection([0, *range(width - 1)])
    rise = b.sub(firsts, b.shuffle_vector(firsts, firsts, before))
    if width == LANES:
        strided = b.icmp_unsigned("==", rise, b.shuffle_vector(rise, rise, before))
        above = b.add(rise, splat_constant(words.MOST_STRIDE, I64))
        within_limit = b.icmp_unsigned("<=", above, splat_constant(2 * words.MOST_STRIDE, I64))
        moves = b.icmp_unsigned("!=", rise, zero(rise.type))
        strided = lanes.bits(b.and_(b.and_(strided, within_limit), moves))
    last = stride * (LANES // width - 1)
    equal = b.icmp_unsigned("==", rise, repeated(last, I64, width))
    not_adjacent = b.icmp_unsigned("!=", rise, repeated(last + size, I64, width))
    same = b.and_(b.or_(same, _first_lanes(lanes, equal)), I32(-2))
    return _Steps(same, b.or_(breaks, _first_lanes(lanes, not_adjacent)), strided)


def _prefer_runs(lanes: Lanes, heads: Value, steps: _Steps) -> Value:
    """Return whether lanes are better taken by rows, of which they have these heads: where they are
    few, and where not most of them follow each other in even steps, which is one run for
    `detect_event`."""
    b = lanes.b
    count, strided = b.ctpop(heads), b.ctpop(b.and_(heads, steps.strided))
    few = b.icmp_unsigned("<=", count, I32(FEW_RUNS))
    return b.or_(few, b.icmp_unsigned("<=", b.shl(strided, I32(1)), count))


def _first_lanes(lanes: Lanes, runs: Value) -> Value:
    """Return the first lanes of some runs, given as a vector of booleans, an i32."""
    width = runs.type.count
    if width == LANES:
        return lanes.bits(runs)
    firsts = [1 << lane for lane in range(0, LANES, LANES // width)]
    type = ir.VectorType(I32, width)
    chosen = lanes.b.select(runs, ir.Constant(type, [I32(bit) for bit in firsts]), zero(type))
    return lanes.intrinsic(f"llvm.vector.reduce.or.v{width}i32", I32, [chosen])


def _reported_lanes(lanes: Lanes, same: Value, mask: Value, thinned: Value) -> Value:
    """Return the lanes of an access that stand for those of a mask: where `thinned`, two lanes for
    those between them that reach the same (`cells.keep_read`)."""
    b = lanes.b
    same = b.and_(same, b.and_(mask, b.shl(mask, I32(1))))
    between = b.and_(same, b.lshr(same, I32(1)))
    return b.and_(mask, b.not_(b.select(thinned, between, I32(0))))


def _heads(lanes: Lanes, size: int, breaks: Value, reported: Value) -> Value:
    """Return which of some lanes do not reach what follows the one before, with the lanes between
    the two missing; of less than a word, none may be missing."""
    b = lanes.b
    missing = b.not_(reported)
    if size < WORD:
        breaks = b.or_(breaks, b.and_(reported, b.shl(missing, I32(1))))
    # What strays where a lane is missing makes the next one that is not a head: the sum carries.
    carried = b.add(b.and_(breaks, missing), missing)
    first = b.and_(reported, b.neg(reported))
    return b.or_(first, b.and_(reported, b.or_(breaks, carried)))


def _one_head(lanes: Lanes, size: int, addresses: Value, reported: Value, heads: Value) -> Value:
    """Return the first of some lanes where all of them reach `size` bytes of one row, whatever the
    addresses of the lanes between them; else these heads."""
    b = lanes.b
    # Without any lane that is shown, some lane is as good as another.
    first = b.and_(lanes.intrinsic("llvm.cttz.i32", I32, [reported, I1(0)]), I32(LANES - 1))
    begins = b.sub(addresses, lane_numbers(I64, size))
    elsewhere = b.icmp_unsigned("!=", begins, lanes.splat(b.extract_element(begins, first)))
    unordered = b.and_(lanes.bits(elsewhere), reported)
    together = b.icmp_unsigned("==", unordered, I32(0))
    return b.select(together, b.and_(reported, b.neg(reported)), heads)


def fill_event(lanes: Lanes, event: Value, fields: dict[int, Value]) -> None:
    """Emit the stores of an event's words."""
    for word, value in fields.items():
        lanes.b.store(value, lanes.slot(event, word))
