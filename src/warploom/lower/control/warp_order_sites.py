"""Records, for each site at which warps may wait in warp order (`lower.control.warp_order`,
`abi.sites`), the number of its instruction and that of the barrier, and defines the table of both
from which the warps' states are written when warp order ends.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.llvm.lanes import Value, constant_table


class WarpOrderSites:
    """Holds, by site, the instruction at which a warp waits and the number of its barrier, NONE if
    no barrier makes it wait.

    Sites are added while barriers are emitted; `end_warp_order` (`helpers.turns`) reads the table.
    """

    def __init__(self) -> None:
        """Begins without sites."""
        self._waits: dict[int, tuple[int, int]] = {}

    def add(self, site: int, instruction: int, barrier: int) -> None:
        """Records the instruction and the barrier's number of a site."""
        self._waits[site] = instruction, barrier

    def __contains__(self, site: int | None) -> bool:
        """Returns true if warps may wait at a site."""
        return site in self._waits

    def table(self, module: ir.Module) -> Value:
        """Defines a constant array in the module, which `end_warp_order` reads: two words for each
        site from 0 on, the instruction and the barrier's number (0, 0 for numbers that are no
        sites). Returns its address."""
        last = max(self._waits, default=0)
        words = [n for site in range(last + 1) for n in self._waits.get(site, (0, 0))]
        return constant_table(module, "sites", words)
