"""Finds the memory operations in the machine code of a kernel: its instructions that access memory,
with the PTX instructions from which they were made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warploom.machinecode.counted import Matching
from warploom.machinecode.merged import Merging
from warploom.program.program import Site
from warploom.timing.machinecode.tokens import BlockTokens
from warploom.timing.machinecode.work import accesses_memory, indexes_constants

ONE_LANE = -1
"""Stands for the bytes of a lane of an access that one lane makes for all: ptxas had the values of
an atomic reduced among the lanes first."""

_REDUCTIONS = ("SHFL", "REDUX")
"""Opcodes that reduce the values of an atomic over a warp."""


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """Describes a machine instruction that accesses memory: its index in the listing, the site of
    the PTX instruction from which it was made, the token of the site's basic block, and the offset
    there of the (first) PTX instruction.

    If it was merged from several, `lane_bytes` are the bytes of a lane, and `iterations` is how
    many iterations of a loop they come from.
    """

    instruction: int
    site: Site
    token: int
    ptx_offset: int
    lane_bytes: int = 0
    iterations: int = 1


class MemoryOperations:
    """The memory operations of a kernel's machine code, by node, each found once."""

    def __init__(self, matching: Matching, tokens: BlockTokens) -> None:
        """Finds none yet. `tokens` are those of the basic blocks of the PTX."""
        self._matching, self._tokens = matching, tokens
        self._merging = Merging(matching.program)
        self._of_node: dict[int, list[MemoryOperation]] = {}
        self._reduced: dict[int, dict[Site, MemoryOperation]] = {}

    def of(self, node: int) -> list[MemoryOperation]:
        """Returns the memory operations of a node, cached: its instructions that access memory, or
        constants by register, and were made for a known PTX instruction; marked as made by one lane
        (ONE_LANE) if the node also reduces values over the warp for the same site."""
        if node not in self._of_node:
            matching = self._matching
            span = matching.nodes[node]
            rows: list[tuple[int, Site]] = []
            reduced: set[Site] = set()
            for number in range(span.start, span.stop):
                instruction = matching.listing.instructions[number]
                site = matching.site_of(instruction)
                if site is None or site not in self._merging.offsets_in_blocks:
                    continue
                if accesses_memory(instruction) or indexes_constants(instruction):
                    rows.append((number, site))
                elif instruction.name in _REDUCTIONS:
                    reduced.add(site)
            sites = [site for _, site in rows]
            operations = [self._operation(number, site, sites) for number, site in rows]
            self._of_node[node] = [
                replace(instruction, lane_bytes=ONE_LANE)
                if instruction.site in reduced
                else instruction
                for instruction in operations
            ]
        return self._of_node[node]

    def reduced_in(self, node: int = -1) -> dict[Site, MemoryOperation]:
        """Returns the memory operations of a node that one lane makes for all (ONE_LANE), by their
        PTX site, cached; none for node -1, which stands for no node. Where such a node follows, the
        operation for the same site in the node before, which serves warps with inactive lanes,
        makes no access."""
        if node < 0:
            return {}
        if node not in self._reduced:
            operations = self.of(node)
            self._reduced[node] = {
                operation.site: operation
                for operation in operations
                if operation.lane_bytes == ONE_LANE
            }
        return self._reduced[node]

    def _operation(self, number: int, site: Site, sites: list[Site]) -> MemoryOperation:
        """Returns how machine instruction `number`, made for the PTX instruction `site`, accesses
        memory. It has the token of its PTX block. If it merges several PTX accesses, it has the
        offset in the block of the first of them, the bytes of a lane, and the iterations that they
        come from; else the offset of `site`, 0 bytes and 1 iteration. `sites` are the PTX
        instructions of all memory operations in its node."""
        block, ptx_offset = self._merging.offsets_in_blocks[site]
        token = int(self._tokens.of_block[block])
        instruction = self._matching.listing.instructions[number]
        merged = self._merging.of(instruction, site, sites)
        if merged is None:
            return MemoryOperation(number, site, token, ptx_offset)
        return MemoryOperation(
            number,
            site,
            token,
            merged.first,
            lane_bytes=merged.width,
            iterations=merged.turns,
        )
