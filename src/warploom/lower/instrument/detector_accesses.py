"""Emits the call that passes one access of a warp to the race detector (`detector`).

The detector works on runs of memory, not on lanes: the code computes which lanes begin a run
(*heads*) before the call. With 4-byte elements:

    lanes 0..31 at 0x100 + 4l                   heads 0x00000001: one run of 128 bytes
    lanes 0..15 at 0x100 + 4l, 16.. at 0x800    heads 0x00010001: two runs
    all lanes at 0x100, loads                   lanes 0 and 31 reported for all

Accesses of few runs use the quick path `detect_lane_runs`; lanes with a constant larger stride,
atomics and local memory use `detect_event`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.abi.environment import Slot
from warploom.detector import layout as words
from warploom.detector.records import DetectorEvent, DetectorState
from warploom.detector.runs import WORD
from warploom.helpers.calls import call
from warploom.isa.instruction import Space
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
from warploom.lower.instrument.access_event import LaneRuns
from warploom.shapes.vector_shape import VectorShape

SPACES = {Space.GLOBAL: 0, Space.CONST: 0, Space.SHARED: 1, Space.LOCAL: 2}
"""Numbers of state spaces in the detector; in local memory it only checks bounds."""

OPS = ("load", "store", "atomic")

FEW_RUNS = 4
"""Number of runs up to which an access always uses the quick path, `detect_lane_runs`."""


def emit_event(lanes: Lanes, access_type: AccessType, runs: VectorShape) -> None:
    """Emits the body of a function that passes an access to the detector, and returns the lanes
    that may perform it (an i32). Its arguments are the environment, the warp, the instruction, the
    addresses of the first lanes of `runs`, the active lanes (an i32), the stored data, and the host
    address and length of the state space. The quick path (`detect_lane_runs`, for loads and stores
    outside of local memory that `_prefer_runs` accepts) permits all active lanes; otherwise, or if
    it returns 0, `detect_event` decides."""
    environment, warp, index, firsts, mask, data, base, limit = lanes.b.function.args
    b, event = lanes.b, lanes.alloca(ir.ArrayType(I64, DetectorEvent.WORDS))
    addresses = lanes.alloca(vector(I64))

    def slot(number: Slot) -> Value:
        """Loads a 64-bit word of the environment."""
        return b.load(lanes.slot(environment, int(number)), typ=I64)

    fill_event(
        lanes,
        event,
        {
            DetectorEvent.instruction: index,
            DetectorEvent.block: slot(Slot.BLOCK),
            DetectorEvent.warp: warp,
            DetectorEvent.lanes: b.zext(mask, I64),
            DetectorEvent.space: I64(SPACES[access_type.space]),
            DetectorEvent.op: I64(OPS.index(access_type.op)),
            DetectorEvent.size: I64(access_type.size),
            DetectorEvent.limit: limit,
        },
    )
    state, plan = (b.inttoptr(slot(n), PTR) for n in (Slot.DETECTOR_AT, Slot.PLAN_AT))
    if access_type.op != "atomic" and access_type.space is not Space.LOCAL:
        pointers = state, event, plan, addresses
        _try_quick_path(lanes, access_type, LaneRuns(firsts, runs), mask, pointers)
    remaining_fields = {
        DetectorEvent.kind: I64(words.ACCESS),
        DetectorEvent.part: I64(access_type.type.bytes),
        DetectorEvent.base: b.ptrtoint(base, I64),
    }
    fill_event(lanes, event, remaining_fields)
    b.store(lanes.expand(firsts, offsets=runs.offsets(LANES)), addresses)
    none = ir.Constant(PTR, None)
    permitted = call(lanes, "detect_event", state, event, plan, none, addresses, data)
    b.ret(b.trunc(permitted, I32))


def _try_quick_path(
    lanes: Lanes, access_type: AccessType, runs: LaneRuns, mask: Value, pointers: Sequence[Value]
) -> None:
    """Stores which lanes the event reports, and which of them begin runs of memory; if few do
    (`_prefer_runs`), emits the call of `detect_lane_runs`, and the return of `mask` (an i32) if it
    records them all. `pointers` are the helper's: to the detector's state, the event, the schedule,
    and a buffer for the addresses of lanes."""
    b, layout, (state, event, _, addresses) = lanes.b, runs.layout, pointers
    exact = b.load(lanes.slot(state, DetectorState.exact), typ=I64)
    # Where only barriers of whole blocks and warps synchronize (`exact` is 0), two reads of one
    # address make those of all lanes between redundant: no later write is ordered after both and
    # not after the others.
    thinned = b.and_(b.icmp_signed("==", exact, I64(0)), I1(access_type.op == "load"))
    steps = _steps(lanes, access_type.size, runs)
    reported = _reported_lanes(lanes, steps.same, mask, thinned)
    heads = _heads(lanes, access_type.size, steps.breaks, reported)
    if layout.width == LANES and access_type.size >= WORD:
        heads = _one_head(lanes, access_type.size, runs.firsts, reported, heads)
    lane_masks = {
        DetectorEvent.checked: b.zext(reported, I64),
        DetectorEvent.heads: b.zext(heads, I64),
    }
    fill_event(lanes, event, lane_masks)
    with b.if_then(_prefer_runs(lanes, heads, steps)):
        b.store(runs.firsts, addresses)
        # The helper gets the length of a run as its logarithm.
        shift = (LANES // layout.width).bit_length() - 1
        recorded = call(lanes, "detect_lane_runs", *pointers, I64(shift), I64(layout.stride))
        with b.if_then(b.icmp_signed("!=", recorded, I64(0))):
            b.ret(mask)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Holds masks (i32) of how each lane's address follows that of the lane before: `same`: equal
    to it; `breaks`: not right after its bytes; `strided`: as far after it as that one is after its
    own predecessor (at most `words.MOST_STRIDE` bytes, not 0). Lane 0 only `breaks`."""

    same: Value
    breaks: Value
    strided: Value


def _steps(lanes: Lanes, size: int, runs: LaneRuns) -> _Steps:
    """Returns three masks (`_Steps`) of how each lane's address follows that of the lane before,
    for accesses of `size` bytes a lane: equal to it (`same`), not adjacent to it (`breaks`, lane 0
    included), in one stride up to MOST_STRIDE with the two before (`strided`). They are constants
    for lanes inside of a run, and compared at run time for each run's first lane; but `strided` is
    compared only where each lane is a run, and else false for a run's first two lanes."""
    b, firsts, (width, stride) = lanes.b, runs.firsts, (runs.layout.width, runs.layout.stride)
    # One bit at the first lane of each run; within a run the constant stride decides, and only
    # these lanes are compared at run time.
    begins = ((1 << LANES) - 1) // ((1 << LANES // width) - 1)
    inside = begins ^ ((1 << LANES) - 1)
    # The first two lanes of a run have no two predecessors in it, which `strided` needs.
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
    # `rise` is the distance of two runs' first lanes; the lane before is the last one of its run.
    last = stride * (LANES // width - 1)
    equal = b.icmp_unsigned("==", rise, repeated(last, I64, width))
    not_adjacent = b.icmp_unsigned("!=", rise, repeated(last + size, I64, width))
    same = b.and_(b.or_(same, _first_lanes(lanes, equal)), I32(-2))
    return _Steps(same, b.or_(breaks, _first_lanes(lanes, not_adjacent)), strided)


def _prefer_runs(lanes: Lanes, heads: Value, steps: _Steps) -> Value:
    """Returns true (an i1) if the access should be passed to the detector as runs of adjacent
    lanes, which begin at the lanes `heads`. It should if there are at most FEW_RUNS runs, or if at
    most half of the heads are strided lanes, which form a single run in `detect_event`."""
    b = lanes.b
    count, strided = b.ctpop(heads), b.ctpop(b.and_(heads, steps.strided))
    few = b.icmp_unsigned("<=", count, I32(FEW_RUNS))
    return b.or_(few, b.icmp_unsigned("<=", b.shl(strided, I32(1)), count))


def _first_lanes(lanes: Lanes, runs: Value) -> Value:
    """Returns the first lanes of those lane runs whose element in `runs`, a vector of booleans, is
    true, as bits of an i32.
    """
    width = runs.type.count
    if width == LANES:
        return lanes.bits(runs)
    firsts = [1 << lane for lane in range(0, LANES, LANES // width)]
    type = ir.VectorType(I32, width)
    chosen = lanes.b.select(runs, ir.Constant(type, [I32(bit) for bit in firsts]), zero(type))
    return lanes.intrinsic(f"llvm.vector.reduce.or.v{width}i32", I32, [chosen])


def _reported_lanes(lanes: Lanes, same: Value, mask: Value, thinned: Value) -> Value:
    """Returns the lanes that the detector records for those of a mask: all of them, or if `thinned`
    (an i1: reads where only barriers synchronize) all but those between two active neighbors with
    the same address (`cells.record_weak_read`). `same`: lanes with the address of the lane
    before."""
    b = lanes.b
    same = b.and_(same, b.and_(mask, b.shl(mask, I32(1))))
    between = b.and_(same, b.lshr(same, I32(1)))
    return b.and_(mask, b.not_(b.select(thinned, between, I32(0))))


def _heads(lanes: Lanes, size: int, breaks: Value, reported: Value) -> Value:
    """Returns the reported lanes that begin a run: the first one, and those not adjacent (`breaks`)
    to the reported lane before, through the lanes between the two that are not reported. For
    elements of less than a word no lane between may be missing."""
    b = lanes.b
    missing = b.not_(reported)
    if size < WORD:
        breaks = b.or_(breaks, b.and_(reported, b.shl(missing, I32(1))))
    # A break at a lane that is not reported makes the next reported lane a head: adding the break
    # to the mask of missing lanes carries through them to that lane's bit.
    carried = b.add(b.and_(breaks, missing), missing)
    lowest = b.and_(reported, b.neg(reported))
    return b.or_(lowest, b.and_(reported, b.or_(breaks, carried)))


def _one_head(lanes: Lanes, size: int, addresses: Value, reported: Value, heads: Value) -> Value:
    """Returns the first reported lane (as a mask, an i32) if all reported lanes access consecutive
    bytes of one run, each at the offset of its lane number, whatever the addresses of other lanes
    between; else returns `heads`."""
    b = lanes.b
    # With an empty mask cttz gives 32; any lane serves, but the extraction needs a valid index.
    lowest = b.and_(lanes.intrinsic("llvm.cttz.i32", I32, [reported, I1(0)]), I32(LANES - 1))
    begins = b.sub(addresses, lane_numbers(I64, size))
    elsewhere = b.icmp_unsigned("!=", begins, lanes.splat(b.extract_element(begins, lowest)))
    unordered = b.and_(lanes.bits(elsewhere), reported)
    together = b.icmp_unsigned("==", unordered, I32(0))
    return b.select(together, b.and_(reported, b.neg(reported)), heads)


def fill_event(lanes: Lanes, event: Value, fields: dict[int, Value]) -> None:
    """Stores words of an event, by their numbers, in the buffer at `event`."""
    for word, value in fields.items():
        lanes.b.store(value, lanes.slot(event, word))
