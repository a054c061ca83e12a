"""Finds work of several streams that accesses the same bytes unordered, by one word for each four
bytes that a work has touched (`layout.T_READ_AT`).

A copy on stream 1 writes bytes 0 to 16 of a buffer, a launch on stream 2 reads bytes 12 to 20, and
neither waits for the other: one finding, at byte 12. Works that may have synchronized by a flag in
memory are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from warploom.core.errors import Allocation
from warploom.core.mutex import Mutex
from warploom.core.wording import in_words_of_source
from warploom.detector import layout as words
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.sanitize.findings import ERROR, Finding
from warploom.sanitize.stream_order import HOST, Clock, IssuedWork, StreamOrder, Trigger, join

Words = npt.NDArray[np.int64]

MOST_BYTES = 1 << 30
"""Bytes of records of work that the host has not waited for; the oldest are dropped first."""

NIBBLE = 15
READS = (words.T_READ_AT, words.T_STRONG_READ_AT)
WRITES = (words.T_WRITTEN_AT, words.T_STRONG_WRITTEN_AT)
WEAK = (words.T_READ_AT, words.T_WRITTEN_AT)

STREAMS = (
    "streams",
    "streams",
    "Nothing orders the two operations. Record an event after the first operation, and make the "
    "second operation's stream wait for the event (cudaEventRecord, cudaStreamWaitEvent). "
    "Alternatively, use one stream for both operations, or synchronize the first stream before "
    "the second operation starts.",
)
DEPENDENT = (
    "dependent launch",
    "dependent launches",
    "The second launch uses programmatic dependent launch: it may start while the first launch "
    "is still running, because the first launch called cudaTriggerProgrammaticLaunchCompletion() "
    "(griddepcontrol.launch_dependents). Call cudaGridDependencySynchronize() "
    "(griddepcontrol.wait) before this access. Kernels launched between the two launches must also "
    "call cudaGridDependencySynchronize() before they trigger the next launch.",
)
"""For each kind of finding: its name, what the works are, and the remedy."""


@dataclass(frozen=True)
class TouchedBytes:
    """Holds the bytes of an allocation that some work accesses: a word for each aligned four of
    them from the `first` on (`layout.T_READ_AT` and so on)."""

    allocation: Allocation
    first: int
    touched_words: Words


@dataclass(frozen=True)
class StreamWork:
    """Describes a launch or a copy that has ended: `what` it was, the bytes that it touched, and
    the source line of an instruction of it. `verb`: what it does with the bytes that it writes.
    `early`: the part of a launch before it has waited for the previous one."""

    issued: IssuedWork
    what: str
    touched: tuple[TouchedBytes, ...]
    line: Callable[[int], str]
    verb: str = "writes"
    early: bool = False

    @property
    def size(self) -> int:
        """Returns the bytes of its records."""
        return sum(part.touched_words.nbytes for part in self.touched)


@dataclass(frozen=True)
class EndedLaunch:
    """Describes a launch that has ended: `what` it was, the bytes that it touched ordered after the
    previous launch, the source line of an instruction of it, and when it let the next launch
    begin."""

    what: str
    touched: Iterable[tuple[Allocation, Words]]
    line: Callable[[int], str]
    trigger: Trigger | None = None


@dataclass(frozen=True)
class Copied:
    """Describes a range of device memory that the host or a copy reads or `writes`."""

    address: int
    size: int
    writes: bool


@dataclass
class Streams:
    """Holds the streams of a device, and their work that the host has not waited for. `findings`
    are those of copies; those of launches are returned with the launch."""

    memory: DeviceMemory
    order: StreamOrder = field(default_factory=StreamOrder)
    findings: list[Finding] = field(default_factory=list[Finding])
    _done: list[StreamWork] = field(default_factory=list[StreamWork])
    _running: WeakSet[IssuedWork] = field(default_factory=WeakSet[IssuedWork])
    _lock: Mutex = field(default_factory=partial(Mutex, "order streams"))
    _triggers: dict[Hashable, IssuedWork] = field(default_factory=dict[Hashable, IssuedWork])
    """The last launch of each stream that lets the next begin, with what that knows then."""

    def begin(self, issued: IssuedWork) -> None:
        """Records that work has been issued which ends later: no work that may overlap it is
        dropped until then."""
        with self._lock:
            self._running.add(issued)

    def begin_of(self, issued: IssuedWork) -> Mapping[Hashable, int] | None:
        """Returns the clock with which a launch begins, if it may begin before the previous one in
        its stream has ended, which has been recorded; else None."""
        ahead = self._triggers.get(issued.stream)
        if issued.begin is None or ahead is None or ahead.number != issued.number - 1:
            return None
        known: Clock = dict(issued.begin)
        join(known, ahead.clock)
        return known

    def end(
        self, issued: IssuedWork, ended: EndedLaunch, early: Iterable[tuple[Allocation, Words]] = ()
    ) -> list[Finding]:
        """Returns a finding for each earlier work that conflicts with a launch that has ended, and
        is not ordered with it; `early` is what it touched before it waited for the previous
        launch."""
        found: list[Finding] = []
        begin = self.begin_of(issued)
        work = StreamWork(issued, ended.what, _parts(ended.touched), ended.line)
        if begin is not None:
            issued_early = replace(issued, clock=begin)
            part = replace(work, issued=issued_early, touched=_parts(early), early=True)
            found += self._add(part)
        self._triggers.pop(issued.stream, None)
        if ended.trigger is not None:
            if begin is None or ended.trigger is Trigger.AFTER_WAIT:
                begin = {**issued.clock, issued.stream: issued.number - 1}
            self._triggers[issued.stream] = replace(issued, clock=begin, begin=None)
        return found + self._add(work)

    def copied(
        self,
        issued: IssuedWork,
        what: str,
        ranges: Iterable[Copied],
        line: Callable[[int], str] = lambda _: "",
        verb: str = "writes",
    ) -> None:
        """Records a copy, or another operation of the host on memory, and adds its findings."""
        parts = tuple(part for one in ranges if (part := self._part(one)) is not None)
        self.findings += self._add(StreamWork(issued, what, parts, line, verb))

    def copied_by_host(self, address: int, size: int, writes: bool) -> None:
        """Records a copy to the host that waits for no stream. What the host `writes` it writes to
        buffers that no launch has yet."""
        if self.order.several and not writes:
            issued = self.order.issue(HOST)
            self.copied(issued, "a copy to the host", [Copied(address, size, writes=False)])

    def _part(self, one: Copied) -> TouchedBytes | None:
        """Returns the bytes of a range; None if it is in no allocation."""
        found = self.memory.find(one.address)
        if found is None or not one.size:
            return None
        base = found.address & ~3
        first, end = (one.address & ~3) - base >> 2, one.address + one.size
        last = -(-(end - base) // 4)
        bits = np.full(last - first, NIBBLE, np.int64)
        bits[0] &= NIBBLE << (one.address & 3)
        bits[-1] &= NIBBLE >> (-end & 3)
        at = words.T_WRITTEN_AT if one.writes else words.T_READ_AT
        return TouchedBytes(found, first, bits << at)

    def _add(self, work: StreamWork) -> list[Finding]:
        with self._lock:
            self._running.discard(work.issued)
            found = [
                finding
                for other in self._done
                if not other.issued.precedes(work.issued) and not work.issued.precedes(other.issued)
                for finding in _conflicts(other, work)
            ]
            self._done.append(work)
            if not self._running:
                self._done = [one for one in self._done if not self.order.is_known(one.issued)]
            retained_bytes = sum(one.size for one in self._done)
            # Races with the oldest work are then missed, none is reported wrongly.
            while retained_bytes > MOST_BYTES:
                retained_bytes -= self._done.pop(0).size
        return found


def _parts(touched: Iterable[tuple[Allocation, Words]]) -> tuple[TouchedBytes, ...]:
    return tuple(
        TouchedBytes(allocation, 0, touched_words) for allocation, touched_words in touched
    )


def _conflicts(earlier: StreamWork, later: StreamWork) -> list[Finding]:
    """Returns a finding for the first bytes of each allocation that both works access, one of them
    writing; none if one may have waited for a flag of the other."""
    found: list[Finding] = []
    if _share_flags(earlier, later):
        return found
    for mine in later.touched:
        for theirs in earlier.touched:
            if theirs.allocation is mine.allocation:
                found += _conflict(earlier, theirs, later, mine)
    return found


def _flags(writer: Words, reader: Words) -> Words:
    """Returns, for each four bytes, those that one work writes by strong accesses, and the other
    only reads by such."""
    return writer >> WRITES[1] & reader >> READS[1] & ~(reader >> WRITES[1]) & NIBBLE


def _share_flags(one: StreamWork, other: StreamWork) -> bool:
    """Returns whether one work writes by a strong access what the other only reads by one: the
    order that such a flag makes between launches is not computed."""
    for mine in one.touched:
        for theirs in other.touched:
            first = max(mine.first, theirs.first)
            end = min(
                mine.first + len(mine.touched_words), theirs.first + len(theirs.touched_words)
            )
            if theirs.allocation is mine.allocation and first < end:
                a = mine.touched_words[first - mine.first : end - mine.first]
                b = theirs.touched_words[first - theirs.first : end - theirs.first]
                if (_flags(a, b) | _flags(b, a)).any():
                    return True
    return False


def _conflict(
    earlier: StreamWork, theirs: TouchedBytes, later: StreamWork, mine: TouchedBytes
) -> list[Finding]:
    """Returns the finding of the first conflicting bytes of two works in an allocation, if any."""
    first = max(mine.first, theirs.first)
    end = min(mine.first + len(mine.touched_words), theirs.first + len(theirs.touched_words))
    if end <= first:
        return []
    one = mine.touched_words[first - mine.first : end - mine.first]
    other = theirs.touched_words[first - theirs.first : end - theirs.first]
    both = _conflicting(one, other)
    if not both.any():
        return []
    at = int(np.flatnonzero(both)[0])
    lowest = int(both[at]) & -int(both[at])
    word, other_word = int(one[at]), int(other[at])
    allocation = mine.allocation
    offset = 4 * (first + at) + lowest.bit_length() - 1 - allocation.address % 4
    line, other_line = later.line(_number(word, lowest)), earlier.line(_number(other_word, lowest))
    depends = later.early and later.issued.stream == earlier.issued.stream
    kind, where, remedy = DEPENDENT if depends else STREAMS
    message = (
        f"Race between {where}: {later.what} {_verb(later, word, lowest)}\n{_at(line)}    data "
        f"that {earlier.what} {_verb(earlier, other_word, lowest)}\n{_at(other_line)}    in "
        f"__global__ memory: {allocation.name}, byte {offset} of {allocation.size}\n    {remedy}"
    )
    return [
        Finding(
            "race", kind, ERROR, "global", line, other_line, (), allocation.name,
            in_words_of_source(message),
            offset=offset,
        )
    ]  # fmt: skip


def _conflicting(one: Words, other: Words) -> Words:
    """Returns, for each four bytes, those that both access, at least one of them writing, and not
    both by strong accesses."""
    read, written, strong_read, strong_written = (one >> at for at in (*WEAK, READS[1], WRITES[1]))
    their_read, their_written, their_strong_read, their_strong_written = (
        other >> at for at in (*WEAK, READS[1], WRITES[1])
    )
    theirs_all = their_read | their_written | their_strong_read | their_strong_written
    mine_all = read | written | strong_read | strong_written
    both = written & theirs_all | their_written & mine_all
    both |= read & their_strong_written | their_read & strong_written
    return both & NIBBLE


def _writes(word: int, byte: int) -> bool:
    """Returns whether a byte (one bit of four) is written."""
    return any(word >> at & byte for at in WRITES)


def _verb(work: StreamWork, word: int, byte: int) -> str:
    return work.verb if _writes(word, byte) else "reads"


def _number(word: int, byte: int) -> int:
    """Returns the number of the instruction that writes a byte, or reads it if none does; -1 if
    that is no instruction."""
    at = words.T_WRITER_AT if _writes(word, byte) else words.T_READER_AT
    return (word >> at & words.T_NUMBER_BITS) - 1


def _at(line: str) -> str:
    return f"    at {line}\n" if line else ""
