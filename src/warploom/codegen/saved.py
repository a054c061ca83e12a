"""What a warp keeps in its context while others run: its table, products in flight, then its
registers.

A register has a place where it is kept lane by lane; and one where it is kept by its shape, for
waits of all lanes together, if it has that everywhere; those lie side by side. Steady registers,
which one instruction writes, go to the latter as soon as they are written, so that waiting costs
nothing for them: while all lanes are together, their places always hold what they are, and the head
of the table says that no lanes have parted.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from warploom.codegen.frame import ALL_NODES, Frame
from warploom.codegen.in_flight import RING_AT, FlightCode, ring_bytes
from warploom.codegen.lanes import I32, I64, LANES, Value
from warploom.codegen.sizes import is_long
from warploom.ptx.ir import Register
from warploom.rules.warp_table import FREE, LIVE, NONE, TOP
from warploom.rules.warp_table import MASK as ACTIVE

LINE = 64


class Saved:
    """Emits what puts the state of a warp into its context and takes it out again. `delays`: the
    products of a warp group may stay in flight (`codegen.in_flight`)."""

    def __init__(self, frame: Frame, *, delays: bool) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._is_long = is_long(frame.program)
        live = sorted(frame.shared_over_blocks, key=lambda register: register.name)
        held = [*live, *frame.pieces.values()]
        shaped = [register for register in live if register in frame.shapes.lasting]
        shaped.sort(key=self._size_by_shape, reverse=True)
        apart = [LINE * -(-LANES * register.type.bits // 8 // LINE) for register in held]
        self._ring_bytes = ring_bytes(frame.program) if delays else 0
        starts = list(accumulate(apart, initial=RING_AT + self._ring_bytes))
        self._apart = dict(zip(held, starts, strict=False))
        packed = list(accumulate(map(self._size_by_shape, shaped), initial=starts[-1]))
        self._together = self._apart | dict(zip(shaped, packed, strict=False))
        self.context_bytes = LINE * -(-packed[-1] // LINE)

    def _size_by_shape(self, register: Register) -> int:
        """Bytes in which a register is kept by its shape; a power of two."""
        width = self.frame.shapes.known[register].width
        return width * max(1, register.type.bits // 8)

    def keep_steady(self, steady: Iterable[Register]) -> None:
        """Put these into the context whenever they are written while all lanes are together."""
        self.frame.steady = {register: self._together[register] for register in steady}

    def settle(self, live: Iterable[Register]) -> None:
        """All lanes are together again: what is steady goes to its places."""
        steady = self.frame.steady
        for register in sorted(steady.keys() & set(live), key=lambda r: r.name):
            self.frame.keep(register, steady[register])
        self.b.store(I64(NONE), self.frame.table(TOP))
        self.b.store(I64(ALL_NODES), self.frame.table(FREE))

    # ---- all lanes together ---------------------------------------------------------------------

    def save_together(self, live: Iterable[Register]) -> None:
        """Put what all lanes together will need into the context."""
        if self.frame.steady:
            self._save_lanes()
        else:
            self.save_head()
        self.save_registers(live)

    def save_registers(self, live: Iterable[Register]) -> None:
        """The same for a warp that has all lanes that it had when it was taken up together: the
        head of its table is as it was."""
        for register in self._kept(live):
            if register not in self.frame.steady:
                self.frame.keep(register, self._together[register])

    def keep_together(self, registers: Iterable[Register]) -> None:
        """Put these where all lanes together will find them."""
        for register in sorted(registers, key=lambda r: r.name):
            self.frame.keep(register, self._together[register])

    def take_up_together(self, live: Iterable[Register], *, whole: bool) -> None:
        """The opposite of `save_together`. `whole`: all 32 lanes of the warp are known to live."""
        b, frame = self.b, self.frame
        self._stand(I32(-1) if whole else b.trunc(frame.get(frame.table(LIVE)), I32))
        self._take_up(live, self._together)

    def fetch_together(self, registers: Iterable[Register]) -> None:
        """The same for some registers, the rest being as it is."""
        for register in sorted(registers, key=lambda r: r.name):
            self.frame.fetch(register, self._together[register])

    def begin(self, lanes: Value) -> None:
        """A warp begins with these lanes (an i32); its registers hold zeros."""
        self.frame.clear()
        if self._ring_bytes:
            FlightCode(self.frame).clear()
        self._stand(lanes)

    def _stand(self, lanes: Value) -> None:
        """All lanes that live, these, are together."""
        b, frame = self.b, self.frame
        b.store(lanes, frame.live)
        frame.activate(lanes)
        for place, value in ((frame.top, NONE), (frame.point, NONE), (frame.free, ALL_NODES)):
            b.store(I64(value), place)

    # ---- lane by lane ---------------------------------------------------------------------------

    def save(self, live: Iterable[Register]) -> None:
        """Put the registers lane by lane, whatever their shapes, and the head of the table into the
        context."""
        frame = self.frame
        if frame.convergent:
            frame.spread(live)
        was, frame.convergent = frame.convergent, False
        self.save_head()
        for register in self._kept(live):
            frame.keep(register, self._apart[register])
        frame.convergent = was

    def save_head(self) -> None:
        """Put the head of the table into the context."""
        self._save_lanes()
        self.b.store(self.frame.get(self.frame.top), self.frame.table(TOP))
        self.b.store(self.frame.get(self.frame.free), self.frame.table(FREE))

    def _save_lanes(self) -> None:
        b, frame = self.b, self.frame
        b.store(b.zext(frame.active(), I64), frame.table(ACTIVE))
        b.store(b.zext(b.load(frame.live, typ=I32), I64), frame.table(LIVE))

    def take_up(self, live: Iterable[Register]) -> None:
        """The opposite of `save` for registers."""
        self._take_up(live, self._apart)

    def _take_up(self, live: Iterable[Register], places: dict[Register, int]) -> None:
        """The other registers hold nothing any more. The optimiser is told so by zeros, which in a
        kernel that it never sees were most of the code."""
        if not self._is_long:
            self.frame.clear(live)
        for register in self._kept(live):
            self.frame.fetch(register, places[register])

    def restore_head(self) -> None:
        """The opposite of `save_head`; the table may name other lanes by now."""
        b, frame = self.b, self.frame
        frame.activate(b.trunc(frame.get(frame.table(ACTIVE)), I32))
        b.store(b.trunc(frame.get(frame.table(LIVE)), I32), frame.live)
        b.store(frame.get(frame.table(FREE)), frame.free)
        frame.set_top(frame.get(frame.table(TOP)))

    def _kept(self, live: Iterable[Register]) -> list[Register]:
        return [*sorted(live, key=lambda r: r.name), *self.frame.pieces.values()]
