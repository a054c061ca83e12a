"""Atomics on shared words by a short way: they are done at once, and counted later with others.

It is gone where no pattern of the instruction comes again, all lanes are on and all in the window
of the row's list (`rules.listed`): which one comparison of each lane says, for words that are not
aligned come out as far beyond it. Any other goes the general way, which also places the window.
"""

from __future__ import annotations

from warploom.codegen.access import Call
from warploom.codegen.access_moves import AccessMoves
from warploom.codegen.helper_calls import call
from warploom.codegen.lane_by_lane import LaneByLane
from warploom.codegen.lanes import I8, I32, I64, LANES, Value, vector
from warploom.isa.terms import Term
from warploom.rules.atomics import WORD_BYTES
from warploom.rules.distinct import ALL_LANES
from warploom.rules.listed import KEYS, LENGTH, LISTED, WINDOW, WINDOW_WORDS, WORD_BITS
from warploom.rules.patterns import DOUBT, TRIALS


class ListedAtomic:
    """Emits the short way, and then the call of the general one, `any_way`."""

    def __init__(self, access: Call, any_way: Value) -> None:
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b
        self._any_way = any_way

    def emit(self, combine: Term, *, tells: bool) -> None:
        """The whole body of the function."""
        b, lanes = self.b, self.lanes
        turns = LaneByLane(self.access, AccessMoves(self.access), combine, tells=tells)
        window = b.load(lanes.slot(self.access.row, WINDOW), typ=I64)
        behind = b.sub(self.access.addresses, lanes.splat(window))
        rotated = [behind, behind, lanes.splat(I64(WORD_BITS))]
        words = lanes.intrinsic("llvm.fshr.v32i64", vector(I64), rotated)
        short, other = (self.access.function.append_basic_block(n) for n in ("short", "other"))
        b.cbranch(self._matches(window, words), short, other)
        b.position_at_end(other)
        found = b.call(self._any_way, self.access.function.args, tail=True)
        b.ret(found)
        b.position_at_end(short)
        count = b.load(lanes.slot(self.access.row, LISTED), typ=I64)
        keys = lanes.slot(self.access.row, b.add(b.mul(count, I64(LANES // 8)), I64(KEYS)))
        b.store(b.trunc(words, vector(I8)), keys, align=8)
        following = b.add(count, I64(1))
        b.store(following, lanes.slot(self.access.row, LISTED))

        def places_from(lane: Value) -> list[Value]:
            # Out of memory, where LLVM would take a vector apart, which costs more.
            some = b.load_atomic(lanes.slot(keys, lane, I8), "monotonic", 8, typ=I64)
            each = [b.and_(b.lshr(some, I64(8 * n)), I64(WINDOW_WORDS - 1)) for n in range(8)]
            return [b.add(b.shl(key, I64(WORD_BITS)), window) for key in each]

        turns.emit_whole(places_from)
        with b.if_then(b.icmp_unsigned("==", following, I64(LENGTH)), likely=False):
            row = self.access.row
            call(lanes, "count_listed", row, I64(ALL_LANES), I64(WORD_BYTES), row)
        b.ret(I64(0))

    def _matches(self, window: Value, words: Value) -> Value:
        """Whether the access may go the short way."""
        b, lanes = self.b, self.lanes
        # The window begins where an access was that had passed the check, so before the limit.
        room = b.sub(b.sub(self.access.limit, window), I64(WORD_BYTES))
        most = I64((WINDOW_WORDS - 1) << WORD_BITS)
        room = lanes.intrinsic("llvm.umin.i64", I64, [room, most])
        last = lanes.splat(b.lshr(room, I64(WORD_BITS)))
        doubt = b.load(lanes.slot(self.access.row, DOUBT), typ=I64)
        whole = b.icmp_unsigned("==", self.access.bits, I32(ALL_LANES))
        scattered = b.icmp_unsigned(">=", doubt, I64(TRIALS))
        inside = b.not_(lanes.any(b.icmp_unsigned(">", words, last)))
        return b.and_(b.and_(whole, scattered), inside)
