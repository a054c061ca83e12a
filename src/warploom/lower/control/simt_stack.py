"""The nodes of a warp's table (`simt.warp_table`), as compiled code makes and leaves them: each
says where lanes that parted gather again. When that happens is for `lower.control.reconvergence`.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.llvm.lanes import I1, I32, I64, PTR, Value
from warploom.lower.frame.frame import Frame
from warploom.simt.warp_table import (
    ARRIVED,
    BRANCH,
    EXPECTED,
    LEVEL,
    NONE,
    OTHER_BLOCK,
    OTHER_MASK,
    PARENT,
    POINT,
)


class SimtStackCode:
    """Emits what is done to the nodes of one warp."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.program = frame, frame.program
        self.lanes, self.b = frame.lanes, frame.lanes.b
        _reconvergence_table(frame)

    def push(self, point: int, other: Value, other_mask: Value, branch: Value) -> None:
        """Make a node for the active lanes that part at a branch; of them, `other_mask` wait to
        begin at a block."""
        b, frame = self.b, self.frame
        free = frame.get(frame.nodes.free)
        node = self.lanes.intrinsic("llvm.cttz.i64", I64, [free, I1(1)])
        b.store(b.and_(free, b.sub(free, I64(1))), frame.nodes.free)
        words = {
            POINT: I64(point),
            EXPECTED: b.zext(frame.active.bits(), I64),
            ARRIVED: I64(0),
            OTHER_BLOCK: other,
            OTHER_MASK: b.zext(other_mask, I64),
            BRANCH: branch,
            PARENT: frame.get(frame.nodes.top),
        }
        if self.program.depth is not None:
            words[LEVEL] = call_depth(frame)
        place = frame.nodes.node_at(node)
        for word, value in words.items():
            b.store(value, self.lanes.slot(place, word))
        b.store(node, frame.nodes.top)
        b.store(I64(point), frame.nodes.point)

    def gathers_at(self, point: int) -> Value:
        """Returns whether the innermost node gathers lanes there, as deep in calls."""
        b, frame = self.b, self.frame
        here = b.icmp_signed("==", frame.get(frame.nodes.point), I64(point))
        if self.program.depth is None or point == self.program.exit:
            return here
        known = b.select(here, frame.get(frame.nodes.top), I64(0))
        same = b.icmp_signed("==", frame.get(frame.nodes.node(known, LEVEL)), call_depth(frame))
        return b.and_(here, same)

    def are_together(self) -> Value:
        """Returns whether all living lanes are active, and no node gathers any."""
        b, frame = self.b, self.frame
        whole = b.icmp_unsigned("==", frame.active.bits(), b.load(frame.active.live, typ=I32))
        return b.and_(whole, b.icmp_signed("<", frame.get(frame.nodes.top), I64(0)))

    def add_lanes(self, place: Value, bits: Value) -> Value:
        """Add lanes to a mask in memory; gives the sum."""
        total = self.b.or_(self.frame.get(place), self.b.zext(bits, I64))
        self.b.store(total, place)
        return total

    def branch(self, node: Value) -> Value:
        """Return the branch that made a node."""
        return self.frame.get(self.frame.nodes.node(node, BRANCH))

    def count_reconvergence(self, branch: Value, amount: Value) -> None:
        """Count so many more reconvergences for a branch."""
        b = self.b
        table = self.frame.module.globals["meetings"]
        at = [I64(0), b.add(branch, I64(1))]
        place = b.load(b.gep(table, at, source_etype=table.value_type), typ=I64)
        self.lanes.add_to(self.lanes.slot(self.frame.counts, place), amount)

    def pop(self, node: Value) -> None:
        """Leave a node for the one around it."""
        b, frame = self.b, self.frame
        b.store(b.or_(frame.get(frame.nodes.free), b.shl(I64(1), node)), frame.nodes.free)
        frame.nodes.set_top(frame.get(frame.nodes.node(node, PARENT)))


def call_depth(frame: Frame) -> Value:
    """Returns how many calls deep the running lanes are, in a program whose calls come again
    (`program.calls`)."""
    depth, lanes = frame.program.depth, frame.lanes
    assert depth is not None
    lowest = [frame.active.bits(), I1(0)]
    lane = lanes.intrinsic("llvm.cttz.i32", I32, lowest)
    return lanes.b.zext(lanes.lane(frame.registers.load(depth), lane), I64)


def _reconvergence_table(frame: Frame) -> None:
    """Return a constant of the module: where each branch instruction's meetings are counted, that
    of none (NONE) first."""
    branches, unwanted = frame.layout.branches, frame.layout.unwanted
    size = len(frame.program.instructions)
    places = [I64(branches[i] + 1 if i in branches else unwanted) for i in range(NONE, size)]
    type = ir.ArrayType(I64, size + 1)
    table = ir.GlobalVariable(frame.module, type, "meetings")
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(type, places)
    table.type = PTR
