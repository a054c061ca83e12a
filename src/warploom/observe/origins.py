"""Finds accesses to memory that came in another order in one run of a kernel than in another.

Two runs of the reference machine are listened to, each under its own schedule. Of every thread, the
first value that it finds in memory and did not find in the other run is looked at: where it was
left there by another access, the order of these accesses made the difference; where it was left by
the same one, the difference is older and somebody else's. Memory counts in words of 4 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warploom.machine.reference.state import Warp, WarpAccess
from warploom.program.program import Program
from warploom.ptx.ir import Space

WORD = 4
SHARED_BY_ALL = (Space.GLOBAL, Space.SHARED)
"""The spaces in which threads meet."""

Thread = tuple[int, int]
"""A block's number, and a thread's number in it."""

Place = tuple[int, int]
"""A block, -1 for global memory, and the number of a word."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The access that last wrote a word: the instruction, and a number that stands for all that
    was ever written there, so that it tells apart what came in another order."""

    instruction: int
    thread: Thread
    history: int


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A value that a thread found in memory: by which instruction, and who had left it."""

    time: int
    instruction: int
    data: bytes
    writers: tuple[Writer | None, ...]


class RecordingFull(Exception):
    """Ends a run that a listener has seen enough of."""


@dataclass
class Origins:
    """Listens to a launch; keeps what every thread finds and who wrote every word last.

    Raises RecordingFull at warp instruction `limit`.
    """

    limit: int
    findings: dict[Thread, list[ReadValue]] = field(default_factory=dict[Thread, list[ReadValue]])
    writers: dict[Place, Writer] = field(default_factory=dict[Place, Writer])
    _time: int = 0
    _accesses: dict[Thread, int] = field(default_factory=dict[Thread, int])

    @property
    def full(self) -> bool:
        """Returns whether the run was longer than what was listened to."""
        return self._time > self.limit

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        self._time += 1
        if self.full:
            raise RecordingFull

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        if access.space not in SHARED_BY_ALL:
            return
        block = warp.block.number
        block_or_global = block if access.space is Space.SHARED else -1
        for lane, address, data in zip(access.lanes, access.addresses, access.found, strict=True):
            thread = block, warp.number * warp.size + lane
            words = range(address // WORD, (address + access.size - 1) // WORD + 1)
            self._record(thread, access, data, [(block_or_global, word) for word in words])

    def _record(self, thread: Thread, access: WarpAccess, data: bytes, places: list[Place]) -> None:
        number = self._accesses[thread] = self._accesses.get(thread, 0) + 1
        if access.op != "store":
            before = tuple(self.writers.get(place) for place in places)
            found = ReadValue(self._time, access.instruction, data, before)
            self.findings.setdefault(thread, []).append(found)
        if access.op != "load":
            for place in places:
                older = self.writers.get(place) if access.op == "atomic" else None
                history = hash((thread, number, older.history if older else 0))
                self.writers[place] = Writer(access.instruction, thread, history)


@dataclass(frozen=True, slots=True)
class AccessSource:
    """A line, as `file:line`, and one of the threads that were there: its block's number in the
    grid and its own in the block, x fastest."""

    line: str
    block: int
    thread: int

    def __str__(self) -> str:
        return f"{self.line} (thread {self.thread} of block {self.block})"


@dataclass(frozen=True, slots=True)
class Cause:
    """Accesses whose order made a difference: `reader` found what `first` had written in one run
    and what `second` had in the other; None stands for nobody in this launch, and as the reader
    where only what is left at the end differs."""

    reader: AccessSource | None
    first: AccessSource | None
    second: AccessSource | None

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(s.line if s else "" for s in (self.reader, self.first, self.second))


def causes(program: Program, one: Origins, other: Origins, most: int = 3) -> tuple[Cause, ...]:
    """Return the causes of the difference of two runs that come first, at most so many, each on
    lines of its own."""
    found = sorted(_first_differences(one, other), key=lambda each: each[1].time)
    listed: dict[tuple[str, ...], Cause] = {}
    for thread, in_one, in_other in found:
        for a, b in zip(in_one.writers, in_other.writers, strict=False):
            if _history(a) != _history(b):
                reader = AccessSource(program.line(in_one.instruction), *thread)
                cause = Cause(reader, _source(program, a), _source(program, b))
                listed.setdefault(cause.lines, cause)
    return tuple(listed.values())[:most]


def cause_at(program: Program, one: Origins, other: Origins, address: int) -> tuple[Cause, ...]:
    """Returns who wrote global memory last at an address, where that differs between two runs."""
    place = -1, address // WORD
    a, b = one.writers.get(place), other.writers.get(place)
    if _history(a) == _history(b):
        return ()
    return (Cause(None, _source(program, a), _source(program, b)),)


def _first_differences(
    one: Origins, other: Origins
) -> Iterator[tuple[Thread, ReadValue, ReadValue]]:
    """Yield the first finding of each thread that is not the same in both runs."""
    for thread, findings in one.findings.items():
        for in_one, in_other in zip(findings, other.findings.get(thread, ()), strict=False):
            if (in_one.instruction, in_one.data) != (in_other.instruction, in_other.data):
                yield thread, in_one, in_other
                break


def _history(writer: Writer | None) -> int:
    return writer.history if writer else 0


def _source(program: Program, writer: Writer | None) -> AccessSource | None:
    return AccessSource(program.line(writer.instruction), *writer.thread) if writer else None
