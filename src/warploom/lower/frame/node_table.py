"""The SIMT stack of a warp: the nodes of its table (`simt.warp_table`), of which each says where
lanes that diverged reconverge."""

from __future__ import annotations

from warploom.llvm.lanes import I64, LANES, Value
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.warp_context import WarpContext
from warploom.simt.warp_table import NODE_WORDS, NODES_AT, NONE, POINT, node_count

ALL_NODES = (1 << node_count(LANES)) - 1


class NodeTable:
    """Finds nodes in the context of the running warp.

    `top` is the address of the number of the innermost node, or of NONE; `point` that of the block
    where it gathers lanes; `free` that of the set of unused nodes, as bits.
    """

    def __init__(self, frame: FunctionFrame, context: WarpContext) -> None:
        self.frame, self.lanes, self.context = frame, frame.lanes, context
        self.top, self.point, self.free = (frame.variable(I64) for _ in range(3))

    def node(self, node: Value, word: int) -> Value:
        """Return the address of a word of a node."""
        return self.lanes.slot(self.node_at(node), word)

    def node_at(self, node: Value) -> Value:
        """Return the address of a node."""
        index = self.lanes.b.mul(node, I64(NODE_WORDS))
        return self.lanes.slot(self.context.at(8 * NODES_AT), index)

    def set_top(self, node: Value) -> None:
        """Make a node (or NONE) the innermost; `point` is where it gathers."""
        b = self.lanes.b
        none = b.icmp_signed("<", node, I64(0))
        known = b.select(none, I64(0), node)
        point = b.select(none, I64(NONE), self.frame.get(self.node(known, POINT)))
        b.store(node, self.top)
        b.store(point, self.point)
