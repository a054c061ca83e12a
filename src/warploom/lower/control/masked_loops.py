"""Regions that lanes leave one by one (`analysis.masked_loops`), in the convergent copy.

Those that are still inside go on together, with registers by their shapes; nothing is blended for
the others. A lane that leaves leaves behind what is read behind the region. The warp's table hears
of it only if the lanes inside part in another way, or if the warp's turn ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.analysis.masked_loops import MaskedRegion
from warploom.llvm.lanes import I32, I64, Value, storage_type, zero
from warploom.lower.control.simt_stack import NodeCode
from warploom.lower.frame.frame import Frame
from warploom.ptx.ir import Register
from warploom.simt.warp_table import ARRIVED, NONE


class MaskedLoopCode:
    """Emits what is done where lanes enter such regions and leave them."""

    def __init__(self, frame: Frame, nodes: NodeCode) -> None:
        self.frame, self.nodes = frame, nodes
        self.lanes, self.b = frame.lanes, frame.lanes.b
        left = frame.shapes.masked_regions
        self._came = {region: frame.variable(I32) for region in left}
        """The lanes that came to a region, as bits."""
        self._first = {region: frame.variable(I64) for region in left}
        """The branch at which the first of them left."""
        self._behind = {
            region: {r: frame.variable(storage_type(r.type)) for r in _sorted(region.merged)}
            for region in left
        }
        """What those that have left hold."""

    def left_at(self, block: int) -> MaskedRegion | None:
        """Return the region that lanes leave at the end of a block while others may stay."""
        return next(
            (region for region in self.frame.shapes.masked_regions if block in region.exits), None
        )

    def enter(self, regions: Iterable[MaskedRegion]) -> None:
        """Let the active lanes come to regions."""
        for region in regions:
            self.b.store(self.frame.active.bits(), self._came[region])

    def begin_anew(self, regions: Iterable[MaskedRegion]) -> None:
        """Let all lanes come to regions from where they had parted: none has left these, and what
        some had left behind when they parted is forgotten."""
        for region in regions:
            for register, place in self._behind[region].items():
                self.b.store(zero(storage_type(register.type)), place)
        self.enter(regions)

    def some_leave(self, region: MaskedRegion, bits: Value, branch: int) -> None:
        """Let some of the active lanes, as bits, leave a region at a branch. They stay active
        here."""
        b, gone = self.b, self.lanes.mask(bits)
        for register, place in self._behind[region].items():
            held = b.load(place, typ=storage_type(register.type))
            b.store(self.lanes.blend(gone, self.frame.registers.load(register), held), place)
        first = I64(branch)
        if len(region.exits) > 1:
            first = b.select(self._some_left(region), self.frame.get(self._first[region]), first)
        b.store(first, self._first[region])

    def rest_leaves(self, region: MaskedRegion) -> None:
        """Let all active lanes leave a region, and meet those that have left it before."""
        b, frame = self.b, self.frame
        for register, place in self._behind[region].items():
            held = b.load(place, typ=storage_type(register.type))
            both = self.lanes.blend(frame.active.mask(), frame.registers.load(register), held)
            frame.registers.put_loose(register, both)
        met = b.zext(self._some_left(region), I64)
        self.nodes.count_reconvergence(frame.get(self._first[region]), met)
        frame.active.set(self._came_to(region))

    def part(self, block: int, live: frozenset[Register]) -> None:
        """Let lanes that were together in a block part, which will read these registers."""
        self.frame.transfers.part(live)
        if self.frame.shapes.around(block):
            self._note(block, live)

    def _note(self, block: int, live: frozenset[Register]) -> None:
        """Note where the active lanes, in a block inside of regions, are about to part in another
        way, or to wait, with the `live` registers put where code for parted lanes finds them: note
        in the warp's table who has left, and what those lanes hold."""
        b, frame = self.b, self.frame
        around = frame.shapes.around(block)
        inside = frame.active.bits()
        masks = [*(self._came_to(region) for region in around), inside]
        for region, came, stay in zip(around, masks, masks[1:], strict=False):
            gone = b.and_(came, b.not_(stay))
            with b.if_then(b.icmp_unsigned("!=", gone, I32(0))):
                frame.active.set(came)
                first = frame.get(self._first[region])
                self.nodes.push(region.point, I64(NONE), I32(0), first)
                top = frame.get(frame.nodes.top)
                self.nodes.add_lanes(frame.nodes.node(top, ARRIVED), gone)
                self._put_back(region, live, self.lanes.mask(gone))
        frame.active.set(inside)

    def _put_back(self, region: MaskedRegion, live: frozenset[Register], gone: Value) -> None:
        """Put what the lanes that are `gone` hold where code for parted lanes finds it: what is
        read behind the region, and of the `live` registers, which others read, anything."""
        b, frame = self.b, self.frame
        read = region.merged | region.written & live
        for register in _sorted(read & frame.shared_over_blocks):
            whole = storage_type(register.type)
            behind = self._behind[region].get(register)
            held = zero(whole) if behind is None else b.load(behind, typ=whole)
            frame.homes.write(register, self.lanes.blend(gone, held, frame.homes.read(register)))

    def have_left(self, block: int) -> Value:
        """Returns whether some lanes have left a region around a block that has one."""
        return self._some_left(self.frame.shapes.around(block)[0])

    def _some_left(self, region: MaskedRegion) -> Value:
        """Returns whether lanes have left a region, or one around the block inside of it."""
        return self.b.icmp_unsigned("!=", self._came_to(region), self.frame.active.bits())

    def _came_to(self, region: MaskedRegion) -> Value:
        return self.b.load(self._came[region], typ=I32)


def _sorted(registers: Iterable[Register]) -> list[Register]:
    return sorted(registers, key=lambda register: register.name)
