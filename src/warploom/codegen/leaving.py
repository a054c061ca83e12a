"""Loops that lanes leave one by one (`analysis.leavings`), in the convergent copy.

Those that are still inside go on together, with registers by their shapes; nothing is blended for
the others. A lane that leaves leaves behind what is read behind the loop. The warp's table hears of
it only if the lanes inside part in another way, or if the warp's turn ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.analysis.leavings import Loop
from warploom.codegen.frame import Frame
from warploom.codegen.lanes import I32, I64, Value, storage_type, zero
from warploom.codegen.nodes import NodeCode
from warploom.ptx.ir import Register
from warploom.rules.warp_table import ARRIVED, NONE


class LeavingCode:
    """Emits what is done where lanes enter such loops and leave them."""

    def __init__(self, frame: Frame, nodes: NodeCode) -> None:
        self.frame, self.nodes = frame, nodes
        self.lanes, self.b = frame.lanes, frame.lanes.b
        left = frame.shapes.left
        self._came = {loop: frame.variable(I32) for loop in left}
        """The lanes that came to a loop, as bits."""
        self._first = {loop: frame.variable(I64) for loop in left}
        """The branch at which the first of them left."""
        self._behind = {
            loop: {r: frame.variable(storage_type(r.type)) for r in _sorted(loop.kept)}
            for loop in left
        }
        """What those that have left hold."""

    def left_at(self, block: int) -> Loop | None:
        """Return the loop that lanes leave at the end of a block while others may stay."""
        return next((loop for loop in self.frame.shapes.left if block in loop.exits), None)

    def enter(self, loops: Iterable[Loop]) -> None:
        """Let the active lanes come to loops."""
        for loop in loops:
            self.b.store(self.frame.active(), self._came[loop])

    def begin_anew(self, loops: Iterable[Loop]) -> None:
        """Let all lanes come to loops from where they had parted: none has left these, and what
        some had left behind when they parted is forgotten."""
        for loop in loops:
            for register, place in self._behind[loop].items():
                self.b.store(zero(storage_type(register.type)), place)
        self.enter(loops)

    def some_leave(self, loop: Loop, bits: Value, branch: int) -> None:
        """Let some of the active lanes, as bits, leave a loop at a branch. They stay active
        here."""
        b, gone = self.b, self.lanes.mask(bits)
        for register, place in self._behind[loop].items():
            held = b.load(place, typ=storage_type(register.type))
            b.store(self.lanes.blend(gone, self.frame.load(register), held), place)
        first = I64(branch)
        if len(loop.exits) > 1:
            first = b.select(self._some_left(loop), self.frame.get(self._first[loop]), first)
        b.store(first, self._first[loop])

    def rest_leaves(self, loop: Loop) -> None:
        """Let all active lanes leave a loop, and meet those that have left it before."""
        b, frame = self.b, self.frame
        for register, place in self._behind[loop].items():
            held = b.load(place, typ=storage_type(register.type))
            both = self.lanes.blend(frame.mask(), frame.load(register), held)
            frame.put_loose(register, both)
        met = b.zext(self._some_left(loop), I64)
        self.nodes.count_meeting(frame.get(self._first[loop]), met)
        frame.activate(self._came_to(loop))

    def note(self, block: int, live: frozenset[Register]) -> None:
        """Note where the active lanes, in a block inside of loops, are about to part in another
        way, or to wait, with the `live` registers put where code for parted lanes finds them: note
        in the warp's table who has left, and what those lanes hold."""
        b, frame = self.b, self.frame
        around = frame.shapes.around(block)
        inside = frame.active()
        masks = [*(self._came_to(loop) for loop in around), inside]
        for loop, came, stay in zip(around, masks, masks[1:], strict=False):
            gone = b.and_(came, b.not_(stay))
            with b.if_then(b.icmp_unsigned("!=", gone, I32(0))):
                frame.activate(came)
                first = frame.get(self._first[loop])
                self.nodes.push(loop.point, I64(NONE), I32(0), first)
                top = frame.get(frame.top)
                self.nodes.add_lanes(frame.node(top, ARRIVED), gone)
                self._put_back(loop, live, self.lanes.mask(gone))
        frame.activate(inside)

    def _put_back(self, loop: Loop, live: frozenset[Register], gone: Value) -> None:
        """Put what the lanes that are `gone` hold where code for parted lanes finds it: what is
        read behind the loop, and of the `live` registers, which others read, anything."""
        b, frame = self.b, self.frame
        read = loop.kept | loop.written & live
        for register in _sorted(read & frame.shared_over_blocks):
            whole = storage_type(register.type)
            behind = self._behind[loop].get(register)
            held = zero(whole) if behind is None else b.load(behind, typ=whole)
            frame.put_apart(register, self.lanes.blend(gone, held, frame.get_apart(register)))

    def have_left(self, block: int) -> Value:
        """Returns whether some lanes have left a loop around a block that has one."""
        return self._some_left(self.frame.shapes.around(block)[0])

    def _some_left(self, loop: Loop) -> Value:
        """Returns whether lanes have left a loop, or one around the block inside of it."""
        return self.b.icmp_unsigned("!=", self._came_to(loop), self.frame.active())

    def _came_to(self, loop: Loop) -> Value:
        return self.b.load(self._came[loop], typ=I32)


def _sorted(registers: Iterable[Register]) -> list[Register]:
    return sorted(registers, key=lambda register: register.name)
