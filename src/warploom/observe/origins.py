"""Finds memory accesses whose order differs between two runs of a kernel and changes what threads
read.

Two runs of the reference machine are recorded, each under its own schedule. For each thread, the
first value that it reads in one run but not in the other is examined: if different accesses wrote
it, their order caused the difference; if the same access wrote it, the difference came from an
earlier one, of another thread. Example: thread 0 stores 1 to a word, thread 1 stores 2, thread 2
loads it; if the load returns 1 in one run and 2 in the other, the cause is (load, store of thread
0, store of thread 1). Memory is tracked in words of 4 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warploom.isa.instruction import Space
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.program.program import Program

WORD = 4
SHARED_BY_ALL = (Space.GLOBAL, Space.SHARED)
"""The spaces through which threads communicate."""

Thread = tuple[int, int]
"""A thread block's number, and a thread's number in it."""

Place = tuple[int, int]
"""A word of memory: a thread block for its shared memory, or -1 for global memory, and the number
of the word."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The access that last wrote a word: the instruction, the thread, and `history`, a hash of all
    writes to the word so far, which differs if they were made in another order."""

    instruction: int
    thread: Thread
    history: int


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A value that a thread read from memory, the instruction that read it, and the writers of its
    words."""

    time: int
    instruction: int
    data: bytes
    writers: tuple[Writer | None, ...]


class RecordingFull(Exception):
    """Ends a run when its listener has recorded enough."""


@dataclass
class Origins:
    """Listens to a launch and records the values that each thread reads, and the last writer of
    every word.

    Raises RecordingFull at warp instruction `limit`.
    """

    limit: int
    findings: dict[Thread, list[ReadValue]] = field(default_factory=dict[Thread, list[ReadValue]])
    writers: dict[Place, Writer] = field(default_factory=dict[Place, Writer])
    _time: int = 0
    _accesses: dict[Thread, int] = field(default_factory=dict[Thread, int])

    @property
    def full(self) -> bool:
        """Returns true if the run was longer than what was recorded."""
        return self._time > self.limit

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        """Counts a warp instruction; raises RecordingFull after the last."""
        self._time += 1
        if self.full:
            raise RecordingFull

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        """Records the lanes' accesses to global or shared memory."""
        if access.space not in SHARED_BY_ALL:
            return
        block = warp.block.number
        block_or_global = block if access.space is Space.SHARED else -1
        for lane, address, data in zip(
            access.lanes, access.addresses, access.bytes_before, strict=True
        ):
            thread = block, warp.number * warp.size + lane
            words = range(address // WORD, (address + access.size - 1) // WORD + 1)
            self._record(thread, access, data, [(block_or_global, word) for word in words])

    def _record(self, thread: Thread, access: WarpAccess, data: bytes, words: list[Place]) -> None:
        """Records one lane's access to the memory words `words`."""
        number = self._accesses[thread] = self._accesses.get(thread, 0) + 1
        if access.op != "store":
            before = tuple(self.writers.get(word) for word in words)
            read = ReadValue(self._time, access.instruction, data, before)
            self.findings.setdefault(thread, []).append(read)
        if access.op != "load":
            for word in words:
                # A store overwrites what was there, so its history begins anew; an atomic depends
                # on the old value.
                previous = self.writers.get(word) if access.op == "atomic" else None
                history = hash((thread, number, previous.history if previous else 0))
                self.writers[word] = Writer(access.instruction, thread, history)


@dataclass(frozen=True, slots=True)
class AccessSource:
    """A line, as `file:line`, and a thread that executed it: its block's number in the grid and its
    own in the block, x fastest."""

    line: str
    block: int
    thread: int

    def __str__(self) -> str:
        return f"{self.line} (thread {self.thread} of block {self.block})"


@dataclass(frozen=True, slots=True)
class Cause:
    """Accesses whose order makes a difference: `reader` read what `first` wrote in one run and what
    `second` wrote in the other. A writer of None is the state before the launch; a reader of None
    means that only the final contents differ."""

    reader: AccessSource | None
    first: AccessSource | None
    second: AccessSource | None

    @property
    def lines(self) -> tuple[str, ...]:
        """Returns the lines of the three accesses, empty for None."""
        return tuple(s.line if s else "" for s in (self.reader, self.first, self.second))


def causes(program: Program, run: Origins, other_run: Origins, limit: int = 3) -> tuple[Cause, ...]:
    """Returns the earliest causes of the difference between two runs, at most `limit`, each with
    different lines."""
    differences = sorted(
        _first_differences(run, other_run), key=lambda difference: difference[1].time
    )
    by_lines: dict[tuple[str, ...], Cause] = {}
    for thread, in_one, in_other in differences:
        for a, b in zip(in_one.writers, in_other.writers, strict=False):
            if _history(a) != _history(b):
                reader = AccessSource(program.line(in_one.instruction), *thread)
                cause = Cause(reader, _source(program, a), _source(program, b))
                by_lines.setdefault(cause.lines, cause)
    return tuple(by_lines.values())[:limit]


def cause_at(program: Program, run: Origins, other_run: Origins, address: int) -> tuple[Cause, ...]:
    """Returns the last writers of a global address as a cause, if they differ between two runs."""
    slot = -1, address // WORD
    a, b = run.writers.get(slot), other_run.writers.get(slot)
    if _history(a) == _history(b):
        return ()
    return (Cause(None, _source(program, a), _source(program, b)),)


def _first_differences(
    run: Origins, other_run: Origins
) -> Iterator[tuple[Thread, ReadValue, ReadValue]]:
    """Yields the first read of each thread that differs between the runs, with that of the other
    run."""
    for thread, findings in run.findings.items():
        for in_one, in_other in zip(findings, other_run.findings.get(thread, ()), strict=False):
            if (in_one.instruction, in_one.data) != (in_other.instruction, in_other.data):
                yield thread, in_one, in_other
                break


def _history(writer: Writer | None) -> int:
    return writer.history if writer else 0


def _source(program: Program, writer: Writer | None) -> AccessSource | None:
    return AccessSource(program.line(writer.instruction), *writer.thread) if writer else None
