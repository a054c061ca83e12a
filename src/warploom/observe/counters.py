"""Derives the counters of a launch from its tally: for the kernel, for each source line, for each
PTX instruction.

Everything here was counted during execution and adds up: the counts of all lines, or of all
instructions, sum to those of the kernel. Nsight Compute's names are in `observe.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from warploom.core.lazy import cached_property
from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import Operation
from warploom.machine.tally import Tally
from warploom.observe.asynchronous import BY_THREAD, BY_WARP, LOADED, STORED, copied_bytes
from warploom.observe.metrics import counter_of
from warploom.program.accesses import FIELDS
from warploom.program.program import Program

_ALWAYS: tuple[str, ...] = (
    *("requests", "sectors", "lines", "transactions"),
    *("bytes_requested", "bytes_moved"),
)
_CACHES: tuple[str, ...] = ("l1_hits", "l1_misses", "l2_hits", "l2_misses")
_SIZES: tuple[str, ...] = ("transactions_32", "transactions_64", "transactions_128")
_THROUGH_CACHE: tuple[str, ...] = (*_ALWAYS, *_SIZES, *_CACHES)
_SHARED: tuple[str, ...] = (*_ALWAYS, "wavefronts", "bank_conflicts")

_ACCESSES: dict[tuple[Space, str], tuple[str, ...]] = {
    (Space.GLOBAL, "load"): _THROUGH_CACHE,
    (Space.GLOBAL, "store"): (*_THROUGH_CACHE, "writes"),
    (Space.GLOBAL, "atomic"): (*_THROUGH_CACHE, "passes"),
    (Space.LOCAL, "load"): _THROUGH_CACHE,
    (Space.LOCAL, "store"): _THROUGH_CACHE,
    (Space.SHARED, "load"): _SHARED,
    (Space.SHARED, "store"): (*_SHARED, "writes"),
    (Space.SHARED, "atomic"): (*_SHARED, "passes"),
    (Space.CONST, "load"): (*_ALWAYS, *_CACHES),
    (Space.TEXTURE, "load"): (*_ALWAYS, *_CACHES),
    (Space.SURFACE, "load"): (*_ALWAYS, *_CACHES),
    (Space.SURFACE, "store"): (*_ALWAYS, *_CACHES),
    (Space.SURFACE, "atomic"): (*_ALWAYS, *_CACHES),
}
"""The counts of each kind of access."""

_OF_INSTRUCTIONS: tuple[str, ...] = (
    *("warp_instructions", "thread_instructions", "thread_instructions_predicated_on"),
    *("branches", "divergent_branches", "reconvergences", "exited_members", "barriers", "selects"),
    *("atomic_requests", "atomic_passes"),
)


class Counts(Mapping[str, int]):
    """Counters by name, as a mapping and as attributes.

    Counts of instructions are of PTX instructions. `instructions_by_unit` are warp instructions by
    functional unit, without zeros.
    """

    def __init__(self, values: Mapping[str, int], instructions_by_unit: Mapping[str, int]) -> None:
        self._values = dict(values)
        self.instructions_by_unit = dict(instructions_by_unit)

    @property
    def average_active_lanes(self) -> float:
        """Returns the average number of active lanes per warp instruction; 0 if none was
        executed."""
        warps = self["warp_instructions"]
        return self["thread_instructions"] / warps if warps else 0.0

    def __getitem__(self, name: str) -> int:
        if name not in self._values:
            raise KeyError(f"there is no counter {name!r}; the counters are {', '.join(self)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> int:
        # Private names must fail fast: copy and pickle probe them before `_values` exists.
        if name.startswith("_") or name not in self._values:
            raise AttributeError(
                f"there is no counter {name!r}; the counters are {', '.join(self)}"
            )
        return self._values[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.items() if value)
        return f"{type(self).__name__}({shown})"


class Counters(Counts):
    """The counters of one launch."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._names, self._table = _count(tally)
        self._units = [i.operation.spec.unit.value for i in tally.program.instructions]
        everything = self._of(list(range(len(self._units))))
        super().__init__(everything, everything.instructions_by_unit)

    @property
    def program(self) -> Program:
        """Returns the program of the launch."""
        return self._tally.program

    @property
    def executions(self) -> npt.NDArray[np.int64]:
        """Returns how often warps executed each instruction of the program."""
        return self._tally.warps

    def metric(self, name: str) -> int:
        """Returns the value of one of Nsight Compute's metrics. Raises WarploomError if no counter
        corresponds."""
        return self[counter_of(name)]

    def by_line(self) -> dict[str, Counts]:
        """Returns the counters of each source line ("file:line"), in the order of the program."""
        program = self._tally.program
        lines: dict[str, list[int]] = {}
        for index in range(len(program.instructions)):
            lines.setdefault(program.line(index), []).append(index)
        return {line: self._of(indices) for line, indices in lines.items()}

    def by_instruction(self) -> tuple[Counts, ...]:
        """Returns the counters of each instruction of the program (`Program.instructions`)."""
        return self._instructions

    @cached_property
    def _instructions(self) -> tuple[Counts, ...]:
        return tuple(self._of([index]) for index in range(len(self._units)))

    def _of(self, indices: list[int]) -> Counts:
        """Returns the summed counters of instructions."""
        sums: list[int] = self._table[indices].sum(axis=0).tolist()
        values = dict(zip(self._names, sums, strict=True))
        units: dict[str, int] = {}
        for index in indices:
            warps = int(self._tally.warps[index])
            if warps:
                units[self._units[index]] = units.get(self._units[index], 0) + warps
        return Counts(values, units)


def _counter_name(space: Space, op: str, field: str) -> str:
    """Returns the name of the counter of a cost field for accesses by `op` in `space`."""
    return f"{'constant' if space is Space.CONST else space.value}_{op}_{field}"


COUNTERS: tuple[str, ...] = (
    *(*_OF_INSTRUCTIONS, *BY_WARP, *BY_THREAD, LOADED, STORED),
    *(
        _counter_name(space, op, field)
        for (space, op), fields in _ACCESSES.items()
        for field in fields
    ),
)
"""The names of all counters."""


def _count(tally: Tally) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Returns the names of all counters, and their values, shape (instructions, counters)."""
    columns = {name: np.zeros_like(tally.warps) for name in COUNTERS}
    columns |= {
        "warp_instructions": tally.warps,
        "thread_instructions": tally.threads,
        "thread_instructions_predicated_on": tally.threads_on,
        "branches": tally.warps * _matches(tally, _is_branch),
        "divergent_branches": tally.divergent,
        "reconvergences": tally.reconvergences * _reconverges(tally.program),
        "exited_members": tally.exited_members,
        "barriers": tally.warps * _matches(tally, _is_barrier),
        "selects": tally.warps * _matches(tally, _is_select),
        **{name: tally.warps * _of(tally, test) for name, test in BY_WARP.items()},
        **{name: tally.threads_on * _of(tally, test) for name, test in BY_THREAD.items()},
    }
    _add_accesses(tally, columns)
    return list(columns), np.stack(list(columns.values()), axis=1)


def _add_accesses(tally: Tally, columns: Mapping[str, npt.NDArray[np.int64]]) -> None:
    """Adds the costs of memory accesses to the columns of their instructions."""
    for row, costs in zip(tally.access_records, tally.accesses, strict=True):
        cost: dict[str, int] = dict(zip(FIELDS, costs.tolist(), strict=True))
        for field in _ACCESSES.get((row.space, row.op), ()):
            columns[_counter_name(row.space, row.op, field)][row.instruction] += cost[field]
        # Atomics are counted over all spaces as well.
        if row.op == "atomic":
            columns["atomic_requests"][row.instruction] += cost["requests"]
            columns["atomic_passes"][row.instruction] += cost["passes"]
        operation = tally.program.instructions[row.instruction].operation
        copied = copied_bytes(operation, row.space, row.op)
        if copied is not None:
            columns[copied][row.instruction] += cost["bytes_requested"]


def _reconverges(program: Program) -> npt.NDArray[np.int64]:
    """Returns 0 for each branch after which lanes are together again only to end, else 1: one side
    of it is a return."""
    ones = np.ones(program.size, np.int64)
    for block, point in zip(program.blocks, program.reconvergence, strict=True):
        if point in program.exit_blocks:
            ones[block.stop - 1] = 0
    return ones


def _matches(tally: Tally, test: Callable[[Instruction], bool]) -> npt.NDArray[np.int64]:
    """Returns 1 for each instruction that passes the test, else 0."""
    return np.array([test(i) for i in tally.program.instructions], np.int64)


def _of(tally: Tally, test: Callable[[Operation], bool]) -> npt.NDArray[np.int64]:
    """Returns 1 for each instruction whose operation passes the test, else 0."""
    return _matches(tally, lambda instruction: test(instruction.operation))


def _is_branch(instruction: Instruction) -> bool:
    return instruction.operation.has(Effect.BRANCHES)


def _is_select(instruction: Instruction) -> bool:
    """Returns whether each lane selects one of two computed values: a choice without a branch."""
    return instruction.operation.name in ("selp", "slct")


def _is_barrier(instruction: Instruction) -> bool:
    """Returns true for barriers of the thread block, not for those of a warp or a cluster."""
    return instruction.operation.kind is OpKind.BLOCK_BARRIER
