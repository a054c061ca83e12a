"""Emits the values of special registers such as `%tid.x` and `%clock` (PTX ISA, "Special
Registers") as LLVM vectors of lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.isa.special import LAUNCH_WIDE, SPECIAL_REGISTERS
from warploom.llvm.lanes import I32, I64, LANES, Value, selection, undefined, vector
from warploom.lower.frame.frame import Frame
from warploom.simt.schedule_layout import CLOCK_READ, Plan, WarpState

MOST_SCALAR_LOADS = 4
"""Thread indices that are loaded one by one; of more lane runs, a load of all lanes and a shuffle
take fewer instructions (16 runs with AVX2: 7 in place of 18)."""


class Specials:
    """Emits reads of special registers. Values that are the same for a whole call of `warp` are
    computed in the prologue.
    """

    def __init__(self, frame: Frame) -> None:
        """Shares the frame and its IR builder; emits nothing."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b

    def read(self, name: str, width: int = LANES) -> Value:
        """Returns the value of a special register by its PTX name, in 32 lanes, or in the `width`
        of its vector shape: one value for each run of lanes. `%lanemask_*`, which have no shape,
        always have 32 lanes."""
        base, _, part = name.partition(".")
        if base == "%tid":
            return self._thread_index("xyz".index(part), width)
        if base == "%laneid":
            # One value for each run of lanes: the number of its first lane.
            step = LANES // width
            return ir.Constant(ir.VectorType(I32, width), [I32(i * step) for i in range(width)])
        if base.startswith("%lanemask_"):
            masks = [LANE_MASKS[base.removeprefix("%lanemask_")](i) for i in range(LANES)]
            return ir.Constant(vector(I32), [I32(m) for m in masks])
        return self.lanes.splat(self._shared_by_warp(name), width)

    def _shared_by_warp(self, name: str) -> Value:
        """Returns the value of a special register that is uniform in a warp, a scalar of its type:
        a constant if its table states so (`fixed`; 0 for `%gridid`), else computed from the
        environment. Reading a clock sets `timed` in the warp's state to CLOCK_READ, by which the
        scheduler recognizes spinning on time."""
        b, special = self.b, SPECIAL_REGISTERS[name]
        type = ir.IntType(special.type.bits)
        if special.fixed is not None:
            return type(special.fixed)
        if special.clock_bit is not None:
            self.frame.context.set_state(WarpState.timed, I64(CLOCK_READ))
            return b.trunc(b.lshr(self._clock(), I64(special.clock_bit)), type)
        base, _, part = name.partition(".")
        if base in ("%ntid", "%ctaid", "%nctaid"):
            return self.frame.word(Slot[f"{base[1:]}_{part}".upper()])
        if base in ("%clusterid", "%cluster_ctaid"):
            return self._in_cluster(base, part)
        if base == "%cluster_ctarank":
            return self.rank()
        if base == "%smid":
            return self._sm()
        if base == "%warpid":
            return b.trunc(self.frame.warp, I32)
        if base == "%gridid":
            return I64(0)
        value = self._launch_wide(name)
        return self.frame.prologue.b.trunc(value, type) if special.type.bits < 32 else value

    def _launch_wide(self, name: str) -> Value:
        """Returns an i32 from the launch's table of special registers, by the index of `name` in
        `LAUNCH_WIDE`.
        """
        return self._special_at(I64(LAUNCH_WIDE.index(name)))

    def _special_at(self, index: Value) -> Value:
        """Returns the i32 at an index of the launch's table of special registers."""
        p, table = self.frame.prologue.b, self.frame.pointer(Slot.SPECIALS_AT)
        return p.load(p.gep(table, [index], source_etype=I32), typ=I32)

    def _in_cluster(self, base: str, part: str) -> Value:
        """Returns `%clusterid` or `%cluster_ctaid` (`base`) along axis `part`: the block's index
        divided by the cluster's size, or its remainder.
        """
        p, block = self.frame.prologue.b, self.frame.word(Slot[f"CTAID_{part}".upper()])
        size = self._launch_wide(f"%cluster_nctaid.{part}")
        return (p.udiv if base == "%clusterid" else p.urem)(block, size)

    def rank(self) -> Value:
        """Returns the rank of the thread block in its cluster (x fastest, then y and z), an i32."""
        p = self.frame.prologue.b
        x, y, z = (self._in_cluster("%cluster_ctaid", part) for part in "xyz")
        wide, high = (self._launch_wide(f"%cluster_nctaid.{part}") for part in "xy")
        return p.add(x, p.mul(wide, p.add(y, p.mul(high, z))))

    def _sm(self) -> Value:
        """Returns the number of the SM that the thread block is resident on: that of its slot,
        which follows the values of `LAUNCH_WIDE` in their table. The slot is that of the schedule
        or, in a launch without one, whose blocks end in order, the block's number modulo the number
        of available slots.
        """
        p, plan = self.frame.prologue, self.frame.pointer(Slot.PLAN_AT)
        if self.frame.warp_ir.is_scheduled:
            slot = self._plan_word(plan, Plan.slot)
        else:
            slot = p.b.urem(self.frame.slot(Slot.BLOCK), self._plan_word(plan, Plan.available))
        return self._special_at(p.b.add(slot, I64(len(LAUNCH_WIDE))))

    def _plan_word(self, plan: Value, word: int) -> Value:
        """Returns a word of the schedule at `plan`, an i64 that is loaded in the prologue."""
        p = self.frame.prologue
        return p.b.load(p.slot(plan, word, I64), typ=I64)

    def _clock(self) -> Value:
        """Returns the number of instructions that the warp has issued before this one, an i64.

        The fuel of this turn has already been reduced by the whole basic block, so the instructions
        from this one to the end of the block are subtracted.
        """
        b = self.b
        before = self.frame.get(self.frame.context.state(WarpState.issued))
        used = b.sub(self.frame.slot(Slot.FUEL), self.frame.get(self.frame.fuel.left))
        return b.sub(b.add(before, used), I64(self.frame.position.remaining))

    def _thread_index(self, dimension: int, width: int) -> Value:
        """Returns `%tid.x`, `.y` or `.z` (0, 1, 2), in 32 lanes or the first of each run: computed
        if the position has a layout of threads (code for all warps of a block), else loaded from
        the launch's table of thread indices."""
        b = self.b
        layout = self.frame.position.thread_layout
        if layout is not None:
            return layout.thread_index(dimension, width)
        at = self.thread_indices(dimension)
        if width > MOST_SCALAR_LOADS:
            whole = b.load(at, typ=vector(I32), align=64)
            firsts = selection(range(0, LANES, LANES // width))
            return whole if width == LANES else b.shuffle_vector(whole, whole, firsts)
        indices: Value = undefined(ir.VectorType(I32, width))
        for lane in range(width):
            address = self.lanes.slot(at, lane * (LANES // width), I32)
            indices = b.insert_element(indices, b.load(address, typ=I32), I32(lane))
        return indices

    def thread_indices(self, dimension: int) -> Value:
        """Returns the address, in the launch's table of thread indices, of the 32 i32 of the
        running warp's threads along x, y or z (0, 1, 2)."""
        row = self.frame.prologue.b.mul(self.frame.slot(Slot.WARPS), I64(dimension))
        index = self.b.mul(self.b.add(row, self.frame.warp), I64(LANES))
        return self.b.gep(self.frame.pointer(Slot.TIDS_AT), [index], source_etype=I32)


LANE_MASKS: dict[str, Callable[[int], int]] = {
    "eq": lambda i: 1 << i,
    "lt": lambda i: (1 << i) - 1,
    "le": lambda i: (2 << i) - 1,
    "gt": lambda i: 0xFFFFFFFF & ~((2 << i) - 1),
    "ge": lambda i: 0xFFFFFFFF & ~((1 << i) - 1),
}
"""The values of `%lanemask_*`, as functions of the lane."""
