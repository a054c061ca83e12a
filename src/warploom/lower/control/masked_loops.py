"""Regions that lanes leave one by one (`analysis.masked_loops`), in the convergent copy.

Those that are still inside go on together, with registers by their shapes; nothing is blended for
the others. A lane that leaves leaves behind what is read behind the region. The warp's table hears
of it only if the lanes inside part in another way, or if the warp's turn ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.analysis.masked_loops import Region
from warploom.llvm.lanes import I32, I64, Value, storage_type, zero
from warploom.lower.control.simt_stack import SimtStackCode
from warploom.lower.frame.frame import Frame
from warploom.ptx.ir import Register
from warploom.simt.warp_table import ARRIVED, NONE


class MaskedLoopCode:
    """Emits what is done where lanes enter such regions and leave them."""

    def __init__(self, frame: Frame, simt_stack: SimtStackCode) -> None:
        self.frame, self.simt_stack = frame, simt_stack
        self.lanes, self.b = frame.lanes, frame.lanes.b
        left = frame.shapes.left
        self._entered = {region: frame.variable(I32) for region in left}
        """The lanes that came to a region, as bits."""
        self._first_exit = {region: frame.variable(I64) for region in left}
        """The branch at which the first of them left."""
        self._exited_values = {
            region: {r: frame.variable(storage_type(r.type)) for r in _sorted(region.kept)}
            for region in left
        }
        """What those that have left hold."""

    def region_left_at(self, block: int) -> Region | None:
        """Return the region that lanes leave at the end of a block while others may stay."""
        return next((region for region in self.frame.shapes.left if block in region.exits), None)

    def enter(self, regions: Iterable[Region]) -> None:
        """Let the active lanes come to regions."""
        for region in regions:
            self.b.store(self.frame.active.bits(), self._entered[region])

    def reenter(self, regions: Iterable[Region]) -> None:
        """Let all lanes come to regions from where they had parted: none has left these, and what
        some had left behind when they parted is forgotten."""
        for region in regions:
            for register, place in self._exited_values[region].items():
                self.b.store(zero(storage_type(register.type)), place)
        self.enter(regions)

    def exit_lanes(self, region: Region, bits: Value, branch: int) -> None:
        """Let some of the active lanes, as bits, leave a region at a branch. They stay active
        here."""
        b, gone = self.b, self.lanes.mask(bits)
        for register, place in self._exited_values[region].items():
            held = b.load(place, typ=storage_type(register.type))
            b.store(self.lanes.blend(gone, self.frame.registers.load(register), held), place)
        first = I64(branch)
        if len(region.exits) > 1:
            first = b.select(
                self._any_exited(region), self.frame.get(self._first_exit[region]), first
            )
        b.store(first, self._first_exit[region])

    def exit_region_together(self, region: Region) -> None:
        """Let all active lanes leave a region, and meet those that have left it before."""
        b, frame = self.b, self.frame
        for register, place in self._exited_values[region].items():
            held = b.load(place, typ=storage_type(register.type))
            both = self.lanes.blend(frame.active.mask(), frame.registers.load(register), held)
            frame.registers.put_loose(register, both)
        count = b.zext(self._any_exited(region), I64)
        self.simt_stack.count_reconvergence(frame.get(self._first_exit[region]), count)
        frame.active.set(self._entered_lanes(region))

    def diverge(self, block: int, live: frozenset[Register]) -> None:
        """Let lanes that were together in a block part, which will read these registers."""
        self.frame.transfers.part(live)
        if self.frame.shapes.around(block):
            self._push_exited(block, live)

    def _push_exited(self, block: int, live: frozenset[Register]) -> None:
        """Note where the active lanes, in a block inside of regions, are about to part in another
        way, or to wait, with the `live` registers put where code for parted lanes finds them: note
        in the warp's table who has left, and what those lanes hold."""
        b, frame = self.b, self.frame
        around = frame.shapes.around(block)
        inside = frame.active.bits()
        masks = [*(self._entered_lanes(region) for region in around), inside]
        for region, entered_lanes, stay in zip(around, masks, masks[1:], strict=False):
            gone = b.and_(entered_lanes, b.not_(stay))
            with b.if_then(b.icmp_unsigned("!=", gone, I32(0))):
                frame.active.set(entered_lanes)
                first = frame.get(self._first_exit[region])
                self.simt_stack.push(region.point, I64(NONE), I32(0), first)
                top = frame.get(frame.nodes.top)
                self.simt_stack.add_lanes(frame.nodes.node(top, ARRIVED), gone)
                self._store_exited(region, live, self.lanes.mask(gone))
        frame.active.set(inside)

    def _store_exited(self, region: Region, live: frozenset[Register], gone: Value) -> None:
        """Put what the lanes that are `gone` hold where code for parted lanes finds it: what is
        read behind the region, and of the `live` registers, which others read, anything."""
        b, frame = self.b, self.frame
        read = region.kept | region.written & live
        for register in _sorted(read & frame.shared_over_blocks):
            whole = storage_type(register.type)
            stored = self._exited_values[region].get(register)
            held = zero(whole) if stored is None else b.load(stored, typ=whole)
            frame.homes.write(register, self.lanes.blend(gone, held, frame.homes.read(register)))

    def some_exited(self, block: int) -> Value:
        """Returns whether some lanes have left a region around a block that has one."""
        return self._any_exited(self.frame.shapes.around(block)[0])

    def _any_exited(self, region: Region) -> Value:
        """Returns whether lanes have left a region, or one around the block inside of it."""
        return self.b.icmp_unsigned("!=", self._entered_lanes(region), self.frame.active.bits())

    def _entered_lanes(self, region: Region) -> Value:
        return self.b.load(self._entered[region], typ=I32)


def _sorted(registers: Iterable[Register]) -> list[Register]:
    return sorted(registers, key=lambda register: register.name)
