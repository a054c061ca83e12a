"""Emits the addresses of a warp's SIMT stack: the nodes of its table (`simt.warp_table`), each of
which holds a reconvergence point and the lanes that wait for it."""

from __future__ import annotations

from warploom.llvm.lanes import I64, LANES, Value
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.warp_context import WarpContext
from warploom.simt.warp_table import NONE, StackNode, WarpTable, node_count

ALL_NODES = (1 << node_count(LANES)) - 1


class NodeTable:
    """Emits addresses of the SIMT stack's nodes (each a divergence with its reconvergence block) in
    the running warp's context.

    `top`: the address of the innermost node's number, or NONE. `point`: the address of that node's
    reconvergence block, a copy of `point` in a register. `free`: the address of the unused nodes,
    as bits."""

    def __init__(self, frame: FunctionFrame, context: WarpContext) -> None:
        """Allocates the stack slots `top`, `point` and `free`, an i64 each."""
        self.frame, self.lanes, self.context = frame, frame.lanes, context
        self.top, self.point, self.free = (frame.variable(I64) for _ in range(3))

    def node(self, node: Value, word: int) -> Value:
        """Returns the address of a 64-bit word (such as `StackNode.point`) of a node, given by its
        number (an i64)."""
        return self.lanes.slot(self.node_at(node), word)

    def node_at(self, node: Value) -> Value:
        """Returns the address of a node, given by its number (an i64)."""
        index = self.lanes.b.mul(node, I64(StackNode.WORDS))
        return self.lanes.slot(self.context.at(8 * WarpTable.WORDS), index)

    def set_top(self, node: Value) -> None:
        """Makes a node, or NONE, the innermost one, and copies its reconvergence block (for NONE:
        NONE) to `point`."""
        b = self.lanes.b
        # For NONE (-1) node 0 is read and the value discarded, which needs no branch.
        none = b.icmp_signed("<", node, I64(0))
        index_or_zero = b.select(none, I64(0), node)
        point = b.select(none, I64(NONE), self.frame.get(self.node(index_or_zero, StackNode.point)))
        b.store(node, self.top)
        b.store(point, self.point)
