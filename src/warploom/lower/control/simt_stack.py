"""Emits operations on a warp's SIMT stack: the nodes of its table (`simt.warp_table`), each with a
reconvergence point, the lanes expected there and those that have arrived.
`lower.control.reconvergence` decides when lanes join a node."""

from __future__ import annotations

from warploom.llvm.lanes import I1, I32, I64, Value, constant_table
from warploom.lower.frame.frame import Frame
from warploom.simt.warp_table import NONE, StackNode


class SimtStackCode:
    """Emits operations on the SIMT stack of the running warp. A node is a divergence: its
    reconvergence point, the lanes expected and arrived there, and a side that has not begun.
    `Value`s named `node` are numbers of nodes (i64), NONE for no node."""

    def __init__(self, frame: Frame) -> None:
        """Defines the table of reconvergence counters in the module, which `count_reconvergence`
        reads.
        """
        self.frame, self.program = frame, frame.program
        self.lanes, self.b = frame.lanes, frame.lanes.b
        _reconvergence_table(frame)

    def push(self, point: int, other_block: Value, other_mask: Value, branch: Value) -> None:
        """Pushes a node, which becomes the innermost, for the active lanes, which diverge at
        instruction `branch` (i64) and reconverge at block `point`; of these, the lanes `other_mask`
        (i32) wait in it to begin at block `other_block` (NONE with an empty mask: no side waits).
        No lane has arrived. In programs with calls that are not inlined, the node also has the call
        depth. The active mask does not change."""
        b, frame = self.b, self.frame
        free = frame.get(frame.nodes.free)
        node = self.lanes.intrinsic("llvm.cttz.i64", I64, [free, I1(1)])
        # Removes the lowest free node from the set. There always is one: the table has a node for
        # each possible split (`simt.warp_table.node_count`).
        b.store(b.and_(free, b.sub(free, I64(1))), frame.nodes.free)
        words = {
            StackNode.point: I64(point),
            StackNode.expected: b.zext(frame.active.bits(), I64),
            StackNode.arrived: I64(0),
            StackNode.other_block: other_block,
            StackNode.other_mask: b.zext(other_mask, I64),
            StackNode.branch: branch,
            StackNode.parent: frame.get(frame.nodes.top),
        }
        if self.program.depth is not None:
            words[StackNode.level] = call_depth(frame)
        address = frame.nodes.node_at(node)
        for word, value in words.items():
            b.store(value, self.lanes.slot(address, word))
        b.store(node, frame.nodes.top)
        b.store(I64(point), frame.nodes.point)

    def gathers_at(self, point: int) -> Value:
        """Returns true (an i1) if the innermost node has this reconvergence point, in a program
        with calls that are not inlined only if pushed at the present call depth (but for the exit);
        false if the stack is empty."""
        b, frame = self.b, self.frame
        # One comparison with a stack slot: it holds the innermost node's point, or NONE, which no
        # block has as its number.
        here = b.icmp_signed("==", frame.get(frame.nodes.point), I64(point))
        if self.program.depth is None or point == self.program.exit:
            return here
        # Reads node 0 if the point differs: the stack may be empty then, and its top (-1) no index.
        node = b.select(here, frame.get(frame.nodes.top), I64(0))
        same = b.icmp_signed(
            "==", frame.get(frame.nodes.node(node, StackNode.level)), call_depth(frame)
        )
        return b.and_(here, same)

    def are_together(self) -> Value:
        """Returns true (an i1) if all living lanes are active and the stack is empty."""
        b, frame = self.b, self.frame
        whole = b.icmp_unsigned("==", frame.active.bits(), b.load(frame.active.live, typ=I32))
        return b.and_(whole, b.icmp_signed("<", frame.get(frame.nodes.top), I64(0)))

    def add_lanes(self, address: Value, bits: Value) -> Value:
        """Adds lanes (an i32) to the 64-bit mask at an address, such as a node's `arrived`; returns
        the new mask.
        """
        total = self.b.or_(self.frame.get(address), self.b.zext(bits, I64))
        self.b.store(total, address)
        return total

    def branch(self, node: Value) -> Value:
        """Returns the number of the branch instruction that pushed a node, NONE for all but one of
        several nodes of one branch."""
        return self.frame.get(self.frame.nodes.node(node, StackNode.branch))

    def count_reconvergence(self, branch: Value, amount: Value) -> None:
        """Adds an amount (i64) to the counter of reconvergences of branch instruction `branch` (a
        run-time i64), found by the table in the module; for NONE to a counter that nobody reads."""
        b = self.b
        table = self.frame.module.globals["reconvergence_counters"]
        # The first element of the table is that of NONE, -1.
        at = [I64(0), b.add(branch, I64(1))]
        address = b.load(b.gep(table, at, source_etype=table.value_type), typ=I64)
        self.lanes.add_to(self.lanes.slot(self.frame.counts, address), amount)

    def pop(self, node: Value) -> None:
        """Frees a node, and makes its parent the innermost one; the active mask does not change."""
        b, frame = self.b, self.frame
        b.store(b.or_(frame.get(frame.nodes.free), b.shl(I64(1), node)), frame.nodes.free)
        frame.nodes.set_top(frame.get(frame.nodes.node(node, StackNode.parent)))


def call_depth(frame: Frame) -> Value:
    """Returns the call depth of the lowest active lane, as an i64, from the depth register of a
    program with calls that are not inlined (`program.calls`). The program must have such calls.
    """
    depth, lanes = frame.program.depth, frame.lanes
    assert depth is not None
    lowest = [frame.active.bits(), I1(0)]
    lane = lanes.intrinsic("llvm.cttz.i32", I32, lowest)
    return lanes.b.zext(lanes.lane(frame.registers.load(depth), lane), I64)


def _reconvergence_table(frame: Frame) -> None:
    """Defines a constant array in the module, which `count_reconvergence` reads: by instruction,
    the index of a branch's counter of reconvergences; the first element is for NONE.
    """
    branches, discarded_count = frame.layout.branches, frame.layout.discarded_count
    size = len(frame.program.instructions)
    counters = [branches[i] + 1 if i in branches else discarded_count for i in range(NONE, size)]
    constant_table(frame.module, "reconvergence_counters", counters)
