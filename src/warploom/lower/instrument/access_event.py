"""Defines the data classes in which the compiler passes an access, while it emits its code, to the
emitters of all instruments: logs, watchpoints, the race detector, observers. They hold LLVM values;
nothing of them exists at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from warploom.abi.access_type import AccessType
from warploom.llvm.lanes import Value
from warploom.lower.instrument.extents import AccessExtent
from warploom.shapes.vector_shape import VectorShape


@dataclass(frozen=True, slots=True)
class SpaceMemory:
    """Holds the host address of a state space (`base`), its length in bytes (`limit`), and the
    buffer of an access's operands and results (`data`)."""

    base: Value
    limit: Value
    data: Value


@dataclass(frozen=True, slots=True)
class LaneRuns:
    """Holds a warp's addresses as lane runs: `firsts` is the address of the first lane of each run
    (a vector), and `layout` the number of runs and the stride within each."""

    firsts: Value
    layout: VectorShape


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """Describes one access of a warp to one state space in the code being emitted.

    `index`: the instruction. `addresses`: of 32 lanes, 64-bit, in the space. `mask`: the lanes that
    access, `<32 x i1>`. `extent` and `runs` describe the addresses where they are affine.
    """

    index: int
    access_type: AccessType
    addresses: Value
    mask: Value
    memory: SpaceMemory
    extent: AccessExtent | None = None
    runs: LaneRuns | None = None


class AccessInstrument(Protocol):
    """Emits what an instrument does with each access of a kernel."""

    def access(self, event: AccessEvent) -> None:
        """Emits the instrument's code for one access; nothing for one that it does not observe."""
        ...
