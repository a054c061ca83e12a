"""Code that has the detector (`rules.happens_before`) take an access of a warp."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.access import Shape
from warploom.codegen.environment import Slot
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import (
    I1,
    I32,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    selection,
    splat_constant,
    vector,
    zero,
)
from warploom.ptx.ir import Space
from warploom.rules.happens_before import words
from warploom.rules.happens_before.runs import WORD

SPACES = {Space.GLOBAL: 0, Space.CONST: 0, Space.SHARED: 1, Space.LOCAL: 2}
"""How the detector numbers spaces; in local memory it only checks bounds."""

OPS = ("load", "store", "atomic")

FEW_ROWS = 4
"""Rows of lanes of one access that `detect_rows` is asked to take."""


def emit_event(lanes: Lanes, shape: Shape) -> None:
    """Emit a function that has the detector take an access of that shape, and returns the lanes
    that may do it, an i32. It is given the environment, the warp, the instruction, the addresses of
    the lanes and those that are on, where the data are that they store, and of their memory the
    first byte on the host and the length."""
    environment, warp, index, addresses, mask, data, base, limit = lanes.b.function.args
    b, event = lanes.b, lanes.alloca(ir.ArrayType(I64, words.EVENT_WORDS))
    places = lanes.alloca(vector(I64))
    b.store(addresses, places)

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
            words.E_SPACE: I64(SPACES[shape.space]),
            words.E_OP: I64(OPS.index(shape.op)),
            words.E_SIZE: I64(shape.size),
            words.E_LIMIT: limit,
        },
    )
    state, plan = (b.inttoptr(slot(n), PTR) for n in (Slot.DETECTOR_AT, Slot.PLAN_AT))
    if shape.op != "atomic" and shape.space is not Space.LOCAL:
        exact = b.load(lanes.slot(state, words.EXACT), typ=I64)
        thinned = b.and_(b.icmp_signed("==", exact, I64(0)), I1(shape.op == "load"))
        shown, heads = _rows(lanes, shape.size, addresses, mask, thinned)
        told = {words.E_SHOWN: b.zext(shown, I64), words.E_HEADS: b.zext(heads, I64)}
        fill_event(lanes, event, told)
        with b.if_then(b.icmp_unsigned("<=", b.ctpop(heads), I32(FEW_ROWS))):
            taken = call(lanes, "detect_rows", state, event, plan, places)
            with b.if_then(b.icmp_signed("!=", taken, I64(0))):
                b.ret(mask)
    rest = {
        words.E_KIND: I64(words.ACCESS),
        words.E_PART: I64(shape.type.bytes),
        words.E_BASE: b.ptrtoint(base, I64),
    }
    fill_event(lanes, event, rest)
    none = ir.Constant(PTR, None)
    kept = call(lanes, "detect_event", state, event, plan, none, places, data)
    b.ret(b.trunc(kept, I32))


def _rows(
    lanes: Lanes, size: int, addresses: Value, mask: Value, thinned: Value
) -> tuple[Value, Value]:
    """Return the lanes of an access that stand for those of a mask, and which of them do not reach
    what follows the one before, `size` bytes each, with the lanes between the two missing; of less
    than a word, none may be missing. Where `thinned`, two lanes stand for those between them that
    reach the same (`cells.keep_read`)."""
    b = lanes.b
    before = b.shuffle_vector(addresses, addresses, selection([0, *range(LANES - 1)]))
    rise = b.sub(addresses, before)
    same = b.and_(lanes.bits(b.icmp_unsigned("==", rise, zero(rise.type))), mask)
    same = b.and_(same, b.shl(mask, I32(1)))
    between = b.and_(same, b.lshr(same, I32(1)))
    shown = b.and_(mask, b.not_(b.select(thinned, between, I32(0))))
    strays = lanes.bits(b.icmp_unsigned("!=", rise, splat_constant(size, I64)))
    missing = b.not_(shown)
    if size < WORD:
        strays = b.or_(strays, b.and_(shown, b.shl(missing, I32(1))))
    # What strays where a lane is missing makes the next one that is not a head: the sum carries.
    carried = b.add(b.and_(strays, missing), missing)
    first = b.and_(shown, b.neg(shown))
    return shown, b.or_(first, b.and_(shown, b.or_(strays, carried)))


def fill_event(lanes: Lanes, event: Value, given: dict[int, Value]) -> None:
    """Emit the stores of an event's words."""
    for word, value in given.items():
        lanes.b.store(value, lanes.slot(event, word))
