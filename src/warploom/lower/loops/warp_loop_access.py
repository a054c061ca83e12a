"""Emits loads and stores of all warps of a thread block (`lower.loops.warp_loop`): looked up in the
range cache for the first and the last warp, then performed warp by warp.

    part[tid], 8 warps: the first warp at 0x1000, step 128 bytes from warp to warp
    ->  one check that the entry allows 0x1000 and 0x1000 + 7 * 128
"""

from __future__ import annotations

from warploom.ir.loops import WarpLoop
from warploom.isa.instruction import Instruction, Space
from warploom.llvm.lanes import I1, I64, Value
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.loads import load
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.range_cache import RangeCache
from warploom.lower.access.stores import store
from warploom.lower.access.transfers import LaneAddresses, Transfers
from warploom.lower.frame.block_layout import BlockLayout
from warploom.lower.instrument.access_event import LaneRuns
from warploom.shapes.operand_shapes import OperandShapes


class WarpLoopAccess:
    """Emits the accesses of one warp loop by full warps. `block` has the vector shapes
    of operands in a whole thread block."""

    def __init__(
        self,
        memory: MemoryCode,
        block: OperandShapes,
        layout: BlockLayout,
        warp_loop: WarpLoop,
    ) -> None:
        """Reads the accesses from the loop's `groups`, whose addresses `check` sets. `layout`
        extrapolates addresses from the first warp to all."""
        self.memory, self._block, self.layout = memory, block, layout
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._cache = RangeCache(memory)
        self._transfers = Transfers(memory.lanes, memory.storage.pointer)
        self._groups: dict[int, GroupValues] = {}
        for access_group in warp_loop.groups:
            group = GroupValues(access_group)
            self._groups |= dict.fromkeys((index for index, _ in access_group.members), group)
        self._offsets = {i: offset for g in self._groups.values() for i, offset in g.members}
        self._steps: dict[int, Value] = {}
        """Bytes from one warp's address to the next one's, by the first access of a group."""
        self._warps: dict[int, Value] = {}
        """The number of warps that perform an access."""

    @property
    def accesses_global_memory(self) -> bool:
        """Returns true if some grouped access of the loop is to global memory."""
        return any(group.access_type.space is Space.GLOBAL for group in self._groups.values())

    # ---- for all warps --------------------------------------------------------------------------

    def check(self, index: int, instruction: Instruction, warps: Value) -> Value:
        """Emits the check that an access hits in the first `warps` warps (i64), while registers
        hold the first warp's values: at the first and the last warp's address, with one counter for
        all. Returns an i1, true for no warps and for a member of a group that has been checked.
        Stores addresses and step for `count`, `load` and `store`."""
        b, group = self.b, self._groups[index]
        self._warps[index] = warps
        # The group was checked at its first access.
        if group.firsts:
            return I1(1)
        address = instruction.operands[0 if group.access_type.op == "store" else 1]
        base = self.memory.operands.base(address, group.base.width)
        if self._block.address(address).width == 1:  # all rows of the block begin there
            base = self.lanes.splat(self.lanes.lane(base, 0), group.base.width)
        group.bases = base
        group.firsts = [self.lanes.lane(base, run) for run in range(group.base.width)]
        step = self.layout.step(base, group.base.stride)
        self._steps[group.members[0][0]] = step = I64(0) if step is None else step
        # The addresses of warps lie on a line, and an entry allows a contiguous range: where the
        # first and the last warp hit, so do all between.
        hit = self._cache.hits_until(group, b.mul(b.sub(warps, I64(1)), step))
        # All warps are counted at once in one counter: their offsets in the unit must be equal.
        hit = b.and_(hit, self._cache.retains_counter(group, step))
        # Without warps the last address would be one step before the first: no access, no matter.
        return b.or_(hit, b.icmp_unsigned("==", warps, I64(0)))

    def track(self) -> None:
        """Emits, before the loop, the records of the loop's accesses to global memory in the
        worker's access set (`TrackingCode.warps`): of each, the ranges of all warps. Accesses to
        other spaces are not recorded; emits nothing if the kernel is compiled without a tracker."""
        tracker = self.memory.instruments.tracker
        if tracker is None:
            return
        for index, warps in self._warps.items():
            group = self._groups[index]
            if group.access_type.space is Space.GLOBAL:
                offset = self.lanes.splat(I64(self._offsets[index]), group.base.width)
                runs = LaneRuns(self.b.add(group.bases, offset), group.base)
                step = self._steps[group.members[0][0]]
                tracker.warps(index, group.access_type.size, runs, step, warps)

    def count(self, index: int, warps: Value) -> None:
        """Adds `warps` to the count of a group's accesses in the range cache, if `index` is the
        last access of the group; for the others nothing, as a group is counted once.
        """
        group = self._groups[index]
        if index == group.members[-1][0]:
            self._cache.count(group, warps)

    # ---- for each -------------------------------------------------------------------------------

    def load(self, index: int) -> list[Value]:
        """Returns what the running warp loads, one value for each element of a vector access: in 32
        lanes, but in 1 for a uniform address, or in 2 for uniform half-warps."""
        return load(self._transfers, self._groups[index].plan.move, self._lane_addresses(index))

    def store(self, index: int, instruction: Instruction) -> None:
        """Emits the store of the running warp, in all lanes, of one value for each lane."""
        group = self._groups[index]
        value = self.memory.operands.bits(instruction.operands[1], group.access_type.type)
        store(self._transfers, group.plan.move, self._lane_addresses(index), [value])

    def _lane_addresses(self, index: int) -> LaneAddresses:
        """Emits the computation of the addresses that the extrapolated access of instruction
        `index` has in the running warp, one for each lane run, and returns them: the first warp's,
        plus the warp's number times the step, plus the member's offset in its group."""
        b, group = self.b, self._groups[index]
        offset = b.mul(self.frame.warp, self._steps[group.members[0][0]])
        offset = b.add(offset, I64(self._offsets[index]))
        firsts = [b.add(run_address, offset) for run_address in group.firsts]
        return LaneAddresses(group.access_type, firsts, repeats=group.base.repeats)
