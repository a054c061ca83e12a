"""Names the accesses that code records while several workers run blocks that may conflict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tracking:
    """Selects instructions, by number, whose accesses to global memory a worker's code records
    (`abi.access_sets`).

    `reads` and `writes` may touch bytes that another block writes or reads: they are compared with
    those of other workers. `stores` are all other writes, which are recorded so that they can be
    undone. `unit`: the bytes for which one bit stands; each access is to whole units.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    stores: frozenset[int]
    unit: int

    def __contains__(self, instruction: int) -> bool:
        """Returns whether the accesses of an instruction are recorded."""
        return instruction in self.reads | self.writes | self.stores
