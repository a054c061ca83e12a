"""Defines the input and the result of a rule of advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from warploom.core.errors import Dim3
from warploom.devices.occupancy import Occupancy
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import find_timing
from warploom.isa.instruction import Space
from warploom.observe.counters import Counters, Counts
from warploom.observe.examples import Example
from warploom.program.accesses import access_records
from warploom.program.program import Program
from warploom.report.advice.strides import ThreadStrides
from warploom.report.peaks import peaks
from warploom.report.work import Work
from warploom.timing.work.costs import WorkCosts

ORDERED = frozenset([Space.SHARED, Space.GLOBAL, Space.GENERIC])
"""Spaces in which threads see what others write."""

LEAST_SHARE = 0.03
"""Advice that would save a smaller share of the launch's cost is not given."""


@dataclass(frozen=True, slots=True)
class PointerParameter:
    """A parameter that points to a buffer of `size` bytes at `start` (None: the buffer was freed):
    `symbol` in PTX; `name` and `text` are those of its declaration ("volatile float *x"), empty
    where the source is unknown."""

    symbol: str
    name: str
    text: str
    start: int
    size: int | None


@dataclass(frozen=True, slots=True)
class Case:
    """One launch: the device, the shape, the kernel, what was counted.

    `total_cost` is the cost of all lines (`report.costs`); `registers` and `spill_bytes` are those
    of a thread. `has_structures`: some parameter points to structures; None if that is not known.
    `warps` are those of the launch. `work` is the launch's work by parts of the GPU, None for a
    device whose peaks are not known; `pointers` are the parameters that point to buffers."""

    spec: DeviceSpec
    grid: Dim3
    block: Dim3
    program: Program
    counters: Counters
    occupancy: Occupancy
    examples: tuple[Example, ...]
    strides: ThreadStrides
    total_cost: int
    registers: int
    spill_bytes: int | None
    has_structures: bool | None
    warps: int = 1
    work: Work | None = None
    pointers: tuple[PointerParameter, ...] = ()

    @property
    def l2_slices(self) -> int:
        """Returns the slices of L2, each of which executes atomics one after the other."""
        timing = peaks(self.spec)
        return 1 if timing is None else max(1, timing.l2_slices)

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    def accesses(self, space: Space) -> Iterable[tuple[int, str, Counts]]:
        """Yields the instructions that accessed a space, each with the operation ("load", "store"
        or "atomic") and its counters."""
        by_instruction = self.counters.by_instruction()
        for row in access_records(self.program):
            counts = by_instruction[row.instruction]
            if row.space is space and counts.get(f"{space.value}_{row.op}_requests", 0):
                yield row.instruction, row.op, counts

    def counts_of(self, example: Example) -> Counts:
        """Returns the counters of an example's instruction."""
        return self.counters.by_instruction()[example.instruction]

    def examples_in(self, *spaces: Space) -> Iterable[Example]:
        """Returns the examples of accesses to some spaces."""
        return (example for example in self.examples if example.space in spaces)


def costs_of(case: Case) -> WorkCosts | None:
    """Returns the costs of instructions on the device of a case; None if they are not known."""
    try:
        return WorkCosts(case.spec, find_timing(case.spec))
    except KeyError:
        return None


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding of a rule: at which line (None for the launch), the numbers, and what to do.

    `cost` are the slots that the remedy saves at most, in the unit of `Case.total_cost`; None where
    the finding costs no slots, but results (a shuffle with undefined values) or parts of the GPU.
    `saves` are the amounts of work that the remedy saves at most, by the field of `Work`: from them
    follows the modelled time that it gains; empty where no peak of the device limits them.
    `least` is the share of the whole from which on it is given.
    """

    rule: str
    line: str | None
    evidence: str
    text: str
    cost: int | None = None
    least: float = LEAST_SHARE
    share: float = 0.0
    """The share of the launch's cost that `cost` is."""
    saves: Mapping[str, float] = field(default_factory=dict[str, float])
    is_minor: bool = False
    """True for advice that gains little: it is left out where other advice gains much, and with
    `saves`, which L1 makes less, on a first screen altogether."""
    code: str = ""
    """The source line ("file:line") that it is about, if that is another one than `line`."""
    others: tuple[str, ...] = ()
    """Further lines with the same remedy, whose cost and savings are included."""
