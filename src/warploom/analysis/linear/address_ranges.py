"""Bounds the addresses of the accesses of a launch by the facts that hold at their instructions.

if (i < n) x[i] = 0;     store of 4 bytes at x + 4 * i, of which 4 * i is at most 4 * (n - 1)
"""

from __future__ import annotations

from collections.abc import Mapping

from warploom.analysis.linear.affine import LinearAnalysis, MemoryAccess
from warploom.analysis.linear.conditions import facts_by_instruction
from warploom.analysis.linear.dependence import AddressRange
from warploom.analysis.linear.forms import form
from warploom.analysis.linear.predicates import NO_FACTS, Facts
from warploom.analysis.linear.ranges import Ranges
from warploom.analysis.linear.register_values import block_indices, thread_indices
from warploom.core.lazy import cached_property
from warploom.isa.kinds import ACCESSES_BY_LANE, OpKind

BY_LANE = ACCESSES_BY_LANE | {
    OpKind.ATOMIC,
    OpKind.REDUCTION,
    OpKind.ASYNC_REDUCTION,
}
"""Instructions in which each lane accesses what its own address operand says."""


class AddressRanges:
    """Makes the address ranges of a launch's accesses; `blocks` and `threads` are the block and
    thread indices that have several values."""

    def __init__(self, analysis: LinearAnalysis) -> None:
        """Lists the block and thread indices of the launch; makes no ranges (`of` does)."""
        self.analysis = analysis
        self.blocks = block_indices(analysis.launch.grid)
        self.threads = thread_indices(analysis.launch.block)
        self._indices = [form(0, {variable: 1}) for variable in (*self.blocks, *self.threads)]

    @cached_property
    def _facts(self) -> Mapping[int, Facts]:
        """Returns the facts at each reachable instruction that writes no predicate, by its number;
        computed at the first use."""
        return facts_by_instruction(self.analysis)

    def of(self, access: MemoryAccess) -> AddressRange | None:
        """Returns the addresses of an access under the facts at its instruction, perhaps unbounded;
        None if they are unknown, or if the lanes of the instruction do not each access their own
        address operand."""
        address = access.address.form
        kind = self.analysis.program.instructions[access.instruction].operation.kind
        if address is None or kind not in BY_LANE:
            return None
        facts = self._facts.get(access.instruction, NO_FACTS)
        ranges = Ranges.under(facts, [address, *self._indices])
        return AddressRange(ranges.with_fixed(address), access.size, ranges)
