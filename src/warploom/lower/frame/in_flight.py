"""Emits a ring buffer of asynchronous operations of a warp that are in flight: products of a warp
group (`wgmma`), or loads of tensor memory (`tcgen05.ld`).

The ring is in the warp's context: a head of three words, then CAPACITY entries, which complete in
the order of issue. It exists only under schedules that delay completion; otherwise operations
complete at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

from warploom.abi.context_layout import RING_AT
from warploom.abi.environment import Slot
from warploom.llvm.lanes import I8, I32, I64, LANES, Value, vector
from warploom.lower.frame.frame import Frame
from warploom.simt.product_groups import CAPACITY
from warploom.simt.schedule_layout import Plan
from warploom.simt.split_policy import ADVERSARIAL, RANDOM


class RingWord(IntEnum):
    """Names the words of the head. ISSUED and COMPLETED: the numbers of operations since the warp
    began. GROUP: the number of the group that the next operation joins."""

    ISSUED = 0
    COMPLETED = 1
    GROUP = 2


HEAD_BYTES = 64
METADATA_BYTES = 4 * LANES
ENTRY_BYTES = 64 + METADATA_BYTES
"""An entry: i64 words 0 to 3 (instruction, group, two descriptors), i32 words 8 and 9 (`on`,
`scaled`), and from byte 64 on 32 i32 of metadata. The head fills a line of 64 bytes, which aligns
metadata."""
RING_BYTES = HEAD_BYTES + CAPACITY * ENTRY_BYTES


@dataclass(frozen=True)
class InFlightOperation:
    """Holds the values of an operation in flight.

    `instruction`: its number; `group`: its group. `on`: the lanes that issued it, `scaled`: the
    lanes in which D is accumulated (i32). `descriptors`: those of A and B; of a load, its address
    and the distance of its columns' second half. `metadata`: that of a sparse A, in 32 lanes.
    """

    instruction: Value
    group: Value
    on: Value
    scaled: Value
    descriptors: tuple[Value, Value]
    metadata: Value | None


class InFlightCode:
    """Emits accesses to the ring buffer of asynchronous operations that the running warp has in
    flight (`wgmma` products, `tcgen05.ld`). Operations are numbered from 0; number n is in entry n
    modulo CAPACITY, and those from COMPLETED up to ISSUED are in flight."""

    def __init__(self, frame: Frame) -> None:
        """Shares the frame and its IR builder; emits nothing."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b

    def clear(self) -> None:
        """Sets ISSUED, COMPLETED and GROUP to 0, when a warp begins."""
        for word in RingWord:
            self.put(word, I64(0))

    def get(self, word: RingWord) -> Value:
        """Loads a word of the ring's head, an i64."""
        return self.frame.get(self.frame.context.at(RING_AT + 8 * word))

    def put(self, word: RingWord, value: Value) -> None:
        """Stores a word of the ring's head, an i64."""
        self.b.store(value, self.frame.context.at(RING_AT + 8 * word))

    def add(self, word: RingWord) -> None:
        """Adds 1 to a word of the ring's head."""
        self.put(word, self.b.add(self.get(word), I64(1)))

    def is_late(self) -> Value:
        """Returns whether operations of the running warp complete late, an i1: under the
        adversarial schedule, or under the random one if seed + block + warp is odd
        (`simt.product_groups.completes_late`).
        """
        b, frame = self.b, self.frame
        seed = frame.get(frame.plan(Plan.seed))
        number = b.add(b.add(seed, frame.slot(Slot.BLOCK)), frame.warp)
        odd = b.icmp_unsigned("!=", b.and_(number, I64(1)), I64(0))
        drawn = b.and_(frame.has_policy(RANDOM), odd)
        return b.or_(frame.has_policy(ADVERSARIAL), drawn)

    def is_full(self) -> Value:
        """Returns whether CAPACITY operations are in flight, an i1."""
        in_flight = self.b.sub(self.get(RingWord.ISSUED), self.get(RingWord.COMPLETED))
        return self.b.icmp_unsigned("==", in_flight, I64(CAPACITY))

    def append(self, entry: InFlightOperation) -> None:
        """Stores an entry (its `metadata` only if not None) at the ring's end and counts it in
        ISSUED. The ring must not be full (`is_full`)."""
        b, at = self.b, self._entry(self.get(RingWord.ISSUED))
        words = (entry.instruction, entry.group, *entry.descriptors)
        for number, value in enumerate(words):
            b.store(value, self.lanes.slot(at, number))
        for number, value in enumerate((entry.on, entry.scaled)):
            b.store(value, self.lanes.slot(at, 2 * len(words) + number, I32))
        if entry.metadata is not None:
            b.store(entry.metadata, self._metadata(at), align=64)
        self.add(RingWord.ISSUED)

    def oldest(self) -> InFlightOperation:
        """Loads the oldest entry; its values are undefined if none is in flight. `metadata` is
        always loaded.
        """
        b, at = self.b, self._entry(self.get(RingWord.COMPLETED))
        instruction, group, first_word, second_word = (
            self.frame.get(self.lanes.slot(at, number)) for number in range(4)
        )
        on, scaled = (b.load(self.lanes.slot(at, 8 + n, I32), typ=I32) for n in range(2))
        metadata = b.load(self._metadata(at), typ=vector(I32), align=64)
        return InFlightOperation(
            instruction, group, on, scaled, (first_word, second_word), metadata
        )

    def complete(
        self,
        is_due: Callable[[InFlightOperation], Value],
        sites: Iterable[int],
        complete: Callable[[InFlightOperation, int], None],
    ) -> None:
        """Emits a loop that completes operations in flight, oldest first, until one is not due or
        none is left, and counts them in COMPLETED.

        `is_due` reads the oldest and returns an i1; `complete(entry, index)` emits the completion
        of an operation of instruction `index`, once for each of `sites`, all instructions that
        issue operations, among which a switch selects at run time."""
        b = self.b
        head, matched, done = (b.append_basic_block(n) for n in ("pending", "landing", "landed"))
        b.branch(head)
        b.position_at_end(head)
        # The entry is read and tested even where none is in flight: the conjunction discards it.
        waits = b.icmp_unsigned("!=", self.get(RingWord.COMPLETED), self.get(RingWord.ISSUED))
        entry = self.oldest()
        b.cbranch(b.and_(waits, is_due(entry)), matched, done)
        b.position_at_end(matched)
        after, no_site = b.append_basic_block("completed"), b.append_basic_block("unknown")
        chosen = b.switch(entry.instruction, no_site)
        for index in sites:
            case = b.append_basic_block(f"issued.{index}")
            chosen.add_case(I64(index), case)
            b.position_at_end(case)
            complete(entry, index)
            b.branch(after)
        # Only instructions of `sites` append entries, so no other number can be found.
        b.position_at_end(no_site)
        b.unreachable()
        b.position_at_end(after)
        self.add(RingWord.COMPLETED)
        b.branch(head)
        b.position_at_end(done)

    def _entry(self, number: Value) -> Value:
        """Returns the address of the entry of an operation, by its number modulo CAPACITY, a power
        of two."""
        inside = self.b.and_(number, I64(CAPACITY - 1))
        offset = self.b.mul(inside, I64(ENTRY_BYTES))
        start = self.frame.context.at(RING_AT + HEAD_BYTES)
        return self.b.gep(start, [offset], source_etype=I8)

    def _metadata(self, entry: Value) -> Value:
        """Returns the address of an entry's metadata, its last 128 bytes."""
        return self.b.gep(entry, [I64(ENTRY_BYTES - METADATA_BYTES)], source_etype=I8)
