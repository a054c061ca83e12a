"""Emits loops and other regions that lanes leave one by one (`program.masked_loops`), in the
convergent copy.

    loop: ...; @%p bra done; bra loop;     lanes with different trip counts

Lanes that leave are only masked off. Those inside stay in convergent code, with registers by their
vector shapes and without blends. For a lane that leaves, the registers that are read after the
region are stored; the exit of the last lanes merges them. The SIMT stack gets a node for the region
only if the lanes inside diverge otherwise, or if the warp's turn ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.isa.instruction import Register
from warploom.llvm.lanes import I32, I64, Value, storage_type, zero
from warploom.lower.control.simt_stack import SimtStackCode
from warploom.lower.frame.frame import Frame
from warploom.program.masked_loops import MaskedRegion
from warploom.simt.warp_table import NONE, StackNode


class MaskedLoopCode:
    """Emits the entries and exits of masked regions: loops, and blocks that a branch skips, that
    lanes leave one by one by being masked off; holds their variables in stack slots."""

    def __init__(self, frame: Frame, simt_stack: SimtStackCode) -> None:
        """Allocates stack slots for each region: the lanes that entered, the branch at which lanes
        left first, and the values of lanes that have left (zero at the function's entry)."""
        self.frame, self.simt_stack = frame, simt_stack
        self.lanes, self.b = frame.lanes, frame.lanes.b
        regions = frame.shapes.masked_regions
        self._entered = {region: frame.variable(I32) for region in regions}
        """By region, the lanes that entered it, as bits."""
        self._first_exit = {region: frame.variable(I64) for region in regions}
        """By region, the branch at which its first lanes left."""
        self._exited_values = {
            region: {r: frame.variable(storage_type(r.type)) for r in _sorted(region.merged)}
            for region in regions
        }
        """By region and register, the values of lanes that have left."""

    def region_left_at(self, block: int) -> MaskedRegion | None:
        """Returns the masked region that some lanes may leave at the end of a block while others
        stay; None if there is none."""
        return next(
            (region for region in self.frame.shapes.masked_regions if block in region.exits), None
        )

    def enter(self, regions: Iterable[MaskedRegion]) -> None:
        """Stores the active lanes as those that have entered each of `regions`."""
        for region in regions:
            self.b.store(self.frame.active.bits(), self._entered[region])

    def reenter(self, regions: Iterable[MaskedRegion]) -> None:
        """Stores the active lanes as those that have entered regions, after all lanes have
        reconverged inside: none has left, and values stored by lanes that left before are set to
        zero.
        """
        for region in regions:
            for register, variable in self._exited_values[region].items():
                self.b.store(zero(storage_type(register.type)), variable)
        self.enter(regions)

    def exit_lanes(self, region: MaskedRegion, bits: Value, branch: int) -> None:
        """Stores, for active lanes (`bits`, an i32) that leave a region at instruction `branch`,
        the values of its merged registers (written inside and read after it) and, if they are the
        first to leave since lanes entered, the branch. The caller masks them off."""
        b, exited = self.b, self.lanes.mask(bits)
        for register, variable in self._exited_values[region].items():
            held = b.load(variable, typ=storage_type(register.type))
            b.store(self.lanes.blend(exited, self.frame.registers.load(register), held), variable)
        first_exit = I64(branch)
        # With one exit all lanes leave at the same branch: storing it again changes nothing.
        if len(region.exits) > 1:
            # Reconvergence is counted for the branch at which the first lanes left.
            first_exit = b.select(
                self._any_exited(region), self.frame.get(self._first_exit[region]), first_exit
            )
        b.store(first_exit, self._first_exit[region])

    def exit_region_together(self, region: MaskedRegion) -> None:
        """Emits the exit of a region's last lanes: stores its merged registers in 32 lanes. If
        lanes have left before, it blends in the values that these stored, counts a reconvergence of
        their branch, and makes the lanes that entered active again."""
        b, frame = self.b, self.frame
        for register in self._exited_values[region]:
            frame.registers.store_varying(register, frame.registers.load(register))
        # Mostly no lane has left before: nothing is to be merged then, and the mask is as it was.
        with b.if_then(self._any_exited(region), likely=False):
            for register, variable in self._exited_values[region].items():
                held = b.load(variable, typ=storage_type(register.type))
                both = self.lanes.blend(frame.active.mask(), frame.registers.load(register), held)
                frame.registers.store_varying(register, both)
            self.simt_stack.count_reconvergence(frame.get(self._first_exit[region]), I64(1))
            frame.active.set(self._entered_lanes(region))

    def diverge(self, block: int, live: frozenset[Register]) -> None:
        """Emits the saves that precede a divergence of lanes in a block: `live` registers go to the
        context in 32 lanes, and for each masked loop around the block that lanes have left, these
        get a node of the SIMT stack. The active mask is not changed."""
        self.frame.transfers.save_diverging(live)
        if self.frame.shapes.around(block):
            self._push_exited(block, live)

    def _push_exited(self, block: int, live: frozenset[Register]) -> None:
        """Pushes a node on the SIMT stack, outermost first, for each masked region around a block
        that lanes have left, in which these count as arrived, and stores their values in the
        context, since the lanes inside are about to diverge or to wait."""
        b, frame = self.b, self.frame
        around = frame.shapes.around(block)
        inside = frame.active.bits()
        masks = [*(self._entered_lanes(region) for region in around), inside]
        # Outermost first, as the stack nests: the lanes inside a region are those that entered the
        # next inner one. `push` takes the node's lanes from the active mask, which is set to those
        # that entered for it, and restored at the end.
        for region, entered_lanes, stay in zip(around, masks, masks[1:], strict=False):
            exited = b.and_(entered_lanes, b.not_(stay))
            with b.if_then(b.icmp_unsigned("!=", exited, I32(0))):
                frame.active.set(entered_lanes)
                first_exit = frame.get(self._first_exit[region])
                self.simt_stack.push(region.point, I64(NONE), I32(0), first_exit)
                top = frame.get(frame.nodes.top)
                self.simt_stack.add_lanes(frame.nodes.node(top, StackNode.arrived), exited)
                self._store_exited(region, live, self.lanes.mask(exited))
        frame.active.set(inside)

    def _store_exited(self, region: MaskedRegion, live: frozenset[Register], exited: Value) -> None:
        """Stores registers that basic blocks share, of lanes that have left a region (`exited`, a
        mask), to the context: their saved values of registers that are read after the region, zeros
        of other `live` ones that the region writes, which are dead for these lanes. Values of other
        lanes stay."""
        b, frame = self.b, self.frame
        read = region.merged | region.written & live
        for register in _sorted(read & frame.shared_over_blocks):
            whole = storage_type(register.type)
            stored = self._exited_values[region].get(register)
            held = zero(whole) if stored is None else b.load(stored, typ=whole)
            frame.context_registers.write(
                register, self.lanes.blend(exited, held, frame.context_registers.read(register))
            )

    def some_exited(self, block: int) -> Value:
        """Returns true (an i1) if lanes have left the outermost of the masked regions around a
        block, or one inside of it; the block must be in one."""
        return self._any_exited(self.frame.shapes.around(block)[0])

    def _any_exited(self, region: MaskedRegion) -> Value:
        """Returns true (an i1) if the active lanes are fewer than those that entered a region: some
        have left it, or another region inside of it."""
        # Inside the region the active lanes are a subset of those that entered: no lane joins it
        # later, for a region has one entry. So one comparison tells, and no count is needed.
        return self.b.icmp_unsigned("!=", self._entered_lanes(region), self.frame.active.bits())

    def _entered_lanes(self, region: MaskedRegion) -> Value:
        """Returns the lanes that entered a region, as an i32 of bits."""
        return self.b.load(self._entered[region], typ=I32)


def _sorted(registers: Iterable[Register]) -> list[Register]:
    """Returns registers in the order of their names, so that code does not depend on the order of a
    set."""
    return sorted(registers, key=lambda register: register.name)
