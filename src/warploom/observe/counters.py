"""Derives the counters of a launch from its tally: for the kernel, for each source line, for each
PTX instruction.

Everything here was counted during execution and adds up: the counts of all lines, or of all
instructions, sum to those of the kernel. Nsight Compute's names are in `observe.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from warploom.core.lazy import cached_property
from warploom.isa.instruction import Space
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import Operation
from warploom.machine.tally import Tally
from warploom.observe.asynchronous import BY_THREAD, BY_WARP, LOADED, STORED, copied_bytes
from warploom.observe.metrics import counter_of
from warploom.program.accesses import FIELDS, AccessRecord
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
        self._tally, self._sources = tally, _sources_of(tally)
        self._table = _count(tally, self._sources)
        super().__init__(*self._sums(slice(None)))

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
        return tuple(self._of([index]) for index in range(len(self._table)))

    def _of(self, indices: list[int]) -> Counts:
        """Returns the summed counters of instructions."""
        return Counts(*self._sums(indices))

    def _sums(self, indices: list[int] | slice) -> tuple[dict[str, int], dict[str, int]]:
        """Returns the summed counters of instructions by name, and their warp instructions by
        functional unit."""
        sums: list[int] = self._table[indices].sum(axis=0).tolist()
        sources, warps = self._sources, self._tally.warps[indices]
        by_unit: list[int] = (warps @ sources.is_in_unit[indices]).tolist()
        units = {unit: count for unit, count in zip(sources.units, by_unit, strict=True) if count}
        return dict(zip(COUNTERS, sums, strict=True)), units


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


_COLUMNS: dict[str, int] = {name: column for column, name in enumerate(COUNTERS)}

_TESTS: dict[str, Callable[[Operation], bool]] = {
    "branches": lambda operation: operation.has(Effect.BRANCHES),
    # Barriers of the thread block, not those of a warp or a cluster.
    "barriers": lambda operation: operation.kind is OpKind.BLOCK_BARRIER,
    # Each lane selects one of two computed values: a choice without a branch.
    "selects": lambda operation: operation.name in ("selp", "slct"),
    **BY_WARP,
    **BY_THREAD,
}
"""Counters of the instructions whose operation passes a test: of warp instructions, those of
BY_THREAD of threads."""


@cache
def _passed_tests(operation: Operation) -> tuple[bool, ...]:
    """Returns which of `_TESTS` an operation passes, in their order."""
    return tuple(test(operation) for test in _TESTS.values())


_COUNTS_THREADS = np.array([name in BY_THREAD for name in _TESTS])
_TEST_COLUMNS = [_COLUMNS[name] for name in _TESTS]


@dataclass(frozen=True, eq=False)
class _Sources:
    """Lists what the counters of a program's instructions are made of, in all its launches.

    `units` are the names of functional units, and `is_in_unit`, shape (instructions, units), is 1
    for the unit of each instruction. `passed`, shape (instructions, _TESTS), is 1 for the tests
    that its operation passes. `reconverges` is 0 for each branch after which lanes are together
    again only to end, else 1. Field number `fields[k]` of access record `at[k]` is added to
    column `columns[k]` of instruction `instructions[k]`.
    """

    records: tuple[AccessRecord, ...]
    units: tuple[str, ...]
    is_in_unit: npt.NDArray[np.int64]
    passed: npt.NDArray[np.int64]
    reconverges: npt.NDArray[np.int64]
    at: list[int]
    fields: list[int]
    instructions: list[int]
    columns: list[int]

    @classmethod
    def of(cls, program: Program, records: tuple[AccessRecord, ...]) -> _Sources:
        """Returns the sources for a program with these access records."""
        unit_of = [i.operation.spec.unit.value for i in program.instructions]
        units = tuple(dict.fromkeys(unit_of))
        added = [
            (number, field, record.instruction, column)
            for number, record in enumerate(records)
            for field, column in _columns_of(program, record)
        ]
        at, fields, instructions, columns = (
            map(list, zip(*added, strict=True)) if added else [[]] * 4
        )
        return cls(
            records,
            units,
            np.array([[unit == one for one in units] for unit in unit_of], np.int64),
            np.array([_passed_tests(i.operation) for i in program.instructions], np.int64),
            _reconverges(program),
            at,
            fields,
            instructions,
            columns,
        )


def _sources_of(tally: Tally) -> _Sources:
    """Returns the sources of the counters of a launch; the program caches them."""
    found = tally.program.cache.get(_Sources)
    if isinstance(found, _Sources) and found.records is tally.access_records:
        return found
    sources = _Sources.of(tally.program, tally.access_records)
    tally.program.cache[_Sources] = sources
    return sources


def _columns_of(program: Program, record: AccessRecord) -> Iterator[tuple[int, int]]:
    """Yields which fields of an access record are counted, by their numbers in FIELDS, and the
    column of the counter of each."""
    for field in _ACCESSES.get((record.space, record.op), ()):
        yield FIELDS.index(field), _COLUMNS[_counter_name(record.space, record.op, field)]
    # Atomics are counted over all spaces as well.
    if record.op == "atomic":
        yield FIELDS.index("requests"), _COLUMNS["atomic_requests"]
        yield FIELDS.index("passes"), _COLUMNS["atomic_passes"]
    operation = program.instructions[record.instruction].operation
    copied = copied_bytes(operation, record.space, record.op)
    if copied is not None:
        yield FIELDS.index("bytes_requested"), _COLUMNS[copied]


def _count(tally: Tally, sources: _Sources) -> npt.NDArray[np.int64]:
    """Returns the values of all counters, shape (instructions, COUNTERS)."""
    table = np.zeros((len(tally.program.instructions), len(COUNTERS)), np.int64)
    columns: dict[str, npt.NDArray[np.int64]] = {
        "warp_instructions": tally.warps,
        "thread_instructions": tally.threads,
        "thread_instructions_predicated_on": tally.threads_on,
        "divergent_branches": tally.divergent,
        "reconvergences": tally.reconvergences * sources.reconverges,
        "exited_members": tally.exited_members,
    }
    for name, column in columns.items():
        table[:, _COLUMNS[name]] = column
    executed = np.where(_COUNTS_THREADS, tally.threads_on[:, None], tally.warps[:, None])
    table[:, _TEST_COLUMNS] = executed * sources.passed
    counted = tally.accesses[sources.at, sources.fields]
    np.add.at(table, (sources.instructions, sources.columns), counted)
    return table


def _reconverges(program: Program) -> npt.NDArray[np.int64]:
    """Returns 0 for each branch after which lanes are together again only to end, else 1: one side
    of it is a return."""
    ones = np.ones(program.size, np.int64)
    for block, point in zip(program.blocks, program.reconvergence, strict=True):
        if point in program.exit_blocks:
            ones[block.stop - 1] = 0
    return ones
