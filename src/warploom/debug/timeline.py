"""All positions of a launch: goes to any of them, and finds those where something happens.

A position is a number of warp instructions, in the order in which the schedule has them executed;
the same launch always has the same. Compiled code runs the launch in intervals and leaves a
checkpoint between any two: memory, what the engine needs to go on, and how often each basic block
was executed. A search looks at these counts first: only intervals in which they say that something
may happen are run again, in smaller intervals, and in the end by the reference machine.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import CountLayout
from warploom.core.lazy import cached_property
from warploom.cost.device_rules import access_rules
from warploom.debug.checkpoints import Checkpoint, Interval
from warploom.debug.engines import SLICE, BetweenBlocks, BlockEngine, Engine, TurnEngine
from warploom.debug.search import Search
from warploom.debug.stepper import Edit, Events, Stepper
from warploom.debug.target import Target
from warploom.debug.transfer import grid_at
from warploom.machine.memory.snapshots import MemorySnapshot, MemorySnapshots

Words = npt.NDArray[np.int64]

LEAF = 8 * SLICE
"""Warp instructions that the reference machine runs where compiled code could go no closer."""

LONGEST = 1 << 24
"""Warp instructions that compiled code runs before it is looked up whether the user interrupts."""

NEAR = 400
"""Warp instructions that a search first looks at from where it begins, without compiled code."""

PARTS = 4
"""The parts of an interval that is looked into."""

SECONDS = 0.05
"""The least time that an interval takes."""

SHARE = 20
"""An interval takes at least so many times as long as its checkpoint."""

LIMIT_BYTES = 256 << 20
"""Memory for checkpoints."""

FILE_BYTES = 8 << 30
"""Bytes for checkpoints in a file."""

MOST = 256
"""The most coarse intervals."""


class Interrupted(Exception):
    """The user wants a search to end."""


class Timeline:
    """The positions of one launch, from its begin, at which memory is now. `interrupted` has a
    search end as soon as it can."""

    def __init__(self, target: Target, limit_bytes: int = LIMIT_BYTES) -> None:
        self.target, self._limit_bytes = target, limit_bytes
        self.interrupted = False
        self._images = MemorySnapshots(target.memory, allocates=target.allocates)
        self._memory: MemorySnapshot | None = None
        """The image that memory is like now, if nothing has run since."""
        self._by_block = target.goes_block_by_block
        self._complete = not target.compiles
        """True where the coarse intervals extend to the point at which the launch stops."""
        self._failed = False
        self._quantum = 1 << 16
        self._edits: dict[int, list[Edit]] = {}
        rules = access_rules(target.spec, target.options)
        counts: Words = np.zeros(CountLayout(target.program, rules).size + 1, np.int64)
        begin = Checkpoint(0, 0, self._images.capture(), counts, BetweenBlocks(0))
        self._coarse, self._fine = [begin], list[Checkpoint]()

    # ---- where to go ----------------------------------------------------------------------------

    def at(self, position: int) -> Stepper:
        """Returns the launch at a position, or at its end if that comes before."""
        limit = self.target.limit
        position = position if limit is None else min(position, limit + 1)
        nearest = self._nearest(position)
        distance = position - nearest.position
        if distance > LEAF and self.target.compiles and not self._edited(position):
            engine = self._engine(None)
            self._stand(engine, nearest)
            while (left := distance - engine.executed) > LEAF:
                self._look_up()
                if not engine.advance(min(left - left // 8, LONGEST)):
                    break
            if not engine.failed and engine.executed <= distance:
                nearest = self._after(nearest, engine)
                self._fine = [*self._fine[-7:], nearest]
        stepper = self._stepper(nearest)
        while stepper.position < position and not stepper.ended:
            self._look_up()
            stepper.step()
        return stepper

    def forward(self, search: Search, stepper: Stepper) -> tuple[Stepper, bool]:
        """Returns the launch at the next position after this one that a search finds, and True; or
        at its end, and False. Raises Interrupted."""
        position = stepper.position
        if self._scan(stepper, search, position + NEAR, position):
            return stepper, True
        if stepper.ended:
            return stepper, False
        position = stepper.position
        for leaf in self._leaves_from(position, search):
            stepper = self._stepper(leaf.start)
            while stepper.position < position:
                stepper.step()
            stop = None if leaf.end is None else leaf.end.position
            if self._scan(stepper, search, stop, None):
                return stepper, True
            if stop is None:
                return stepper, False
        return self._stepper(self._coarse[-1]), False

    def backward(self, search: Search, position: int) -> int | None:
        """Returns the last position before a given one that a search finds. Raises Interrupted."""
        while not (self._complete or self._edits) and self._coarse[-1].position < position:
            self._extend()
        for interval in reversed([*self._known()]):
            if interval.start.position < position and self._may(interval, search):
                for leaf in self._leaves(interval, search, 0, backward=True):
                    if leaf.start.position < position:
                        found = self._last(leaf, search, position)
                        if found is not None:
                            return found
        return None

    def edit(self, stepper: Stepper, edit: Edit) -> None:
        """Changes the state at a position; what comes after it is run anew."""
        position = stepper.position
        edit(stepper)
        for later in [p for p in self._edits if p > position]:
            del self._edits[later]
        self._edits.setdefault(position, []).append(edit)
        self._coarse = [c for c in self._coarse if c.position <= position]
        self._fine = [c for c in self._fine if c.position <= position]
        self._complete = self._failed = False

    @property
    def checkpoints(self) -> int:
        """Returns the checkpoints that are stored."""
        return len(self._coarse) + len(self._fine)

    def rewind(self) -> None:
        """Sets memory to what it was before the launch."""
        self._remember(self._coarse[0])

    @contextmanager
    def at_begin(self) -> Generator[None]:
        """Sets memory to what it was before the launch; the caller may change it."""
        self.rewind()
        try:
            yield
        finally:
            self._memory = None

    @property
    def furthest(self) -> int:
        """Returns the last position up to which intervals are known."""
        return self._coarse[-1].position

    @property
    def edited(self) -> bool:
        """Returns whether the state was changed anywhere."""
        return bool(self._edits)

    @property
    def bytes(self) -> int:
        """Returns the memory that checkpoints take up, without pages in a file."""
        every = (*self._coarse, *self._fine)
        return self._images.bytes + sum(c.state.bytes + c.counts.nbytes for c in every)

    @property
    def file_bytes(self) -> int:
        """Returns the bytes of checkpoints that are in a file."""
        return self._images.file_bytes

    # ---- intervals ------------------------------------------------------------------------------

    def _known(self) -> Iterator[Interval]:
        """Yields the coarse intervals as far as they are known, in order."""
        yield from (Interval(*pair) for pair in pairwise(self._coarse))
        if self._failed or self._edits or not self.target.compiles:
            yield Interval(self._coarse[-1], None)

    def _leaves_from(self, position: int, search: Search) -> Iterator[Interval]:
        """Yields the intervals from a position on in which a search may find something, as small as
        they can be, and the last one if it stops with an error; runs on where nothing is known."""
        number = 0
        while True:
            known = [*self._known()]
            for interval in known[number:]:
                end = interval.end
                if (end is None or end.position > position) and self._may(interval, search):
                    yield from self._leaves(interval, search, position, backward=False)
            number = len(known)
            if self._complete or self._edits:
                return
            self._extend()

    def _may(self, interval: Interval, search: Search, *, watched: bool = False) -> bool:
        if not interval.may_run(search.blocks):
            return False
        counts = interval.counts
        return counts is None or search.may_hit(counts, watched=watched)

    def _leaves(
        self, interval: Interval, search: Search, position: int, *, backward: bool, quantum: int = 0
    ) -> Iterator[Interval]:
        """Yields the parts of an interval that end after a position and in which a search may find
        something."""
        length = interval.length
        quantum = (length or quantum or LEAF * PARTS * PARTS) // PARTS
        whole = LEAF if length is None else length
        if not self.target.compiles or self._edits or (length is None and quantum < LEAF):
            yield interval
            return
        if length is not None and whole <= LEAF and search.watch is None:
            yield interval
            return
        parts = self._parts(interval, search, max(quantum, LEAF // 2))
        for part in reversed([*parts]) if backward else parts:
            if part.end is not None and part.end.position <= position:
                continue
            if not self._may(part, search, watched=True):
                continue
            if length is not None and part.length == length:
                yield part
            else:
                yield from self._leaves(part, search, position, backward=backward, quantum=quantum)

    def _parts(self, interval: Interval, search: Search, quantum: int) -> Iterator[Interval]:
        """Yields parts of an interval of about so many warp instructions."""
        engine, start, end = self._finer(interval, search), interval.start, interval.end
        while True:
            self._look_up()
            self._stand(engine, start)
            left = quantum if end is None else end.position - start.position
            more = self._advance(engine, start, min(quantum, left))
            if engine.failed:
                yield Interval(start, None)
                return
            following = self._after(start, engine)
            yield Interval(start, following)
            if not more or (end is not None and following.position >= end.position):
                return
            start = following

    def _extend(self) -> None:
        """Adds an interval to the coarse ones."""
        self._look_up()
        start = self._coarse[-1]
        self._blocks.last = self.target.launch.blocks
        engine = self._blocks if self._by_block else self._engine(None)
        self._stand(engine, start)
        began = time.perf_counter()
        more = self._advance(engine, start, self._quantum)
        took = time.perf_counter() - began
        if engine is self._blocks and self._blocks.interleaved:
            self._by_block = False
            return
        if engine.failed:
            self._complete = self._failed = True
            return
        following = self._after(start, engine)
        self._coarse.append(following)
        self._complete = not more
        least = max(SECONDS, SHARE * (time.perf_counter() - began - took))
        if took < least:
            self._quantum *= 2
        elif took > 4 * least:
            self._quantum = max(self._quantum // 2, LEAF)
        full = self.bytes > self._limit_bytes or self.file_bytes > FILE_BYTES
        if full or len(self._coarse) > MOST:
            self._coarse = [*self._coarse[:-1:2], self._coarse[-1]]
            self._fine.clear()

    # ---- engines --------------------------------------------------------------------------------

    def _advance(self, engine: Engine, start: Checkpoint, instructions: int) -> bool:
        """Runs about so many warp instructions from a checkpoint on, as `Engine.advance` does. A
        launch that exceeds its limit has failed; the reference machine finds where."""
        more = engine.advance(instructions)
        limit = self.target.limit
        if limit is not None and start.position + engine.executed > limit:
            engine.failed = True
        return more

    @cached_property
    def _blocks(self) -> BlockEngine:
        return BlockEngine(self.target, self._look_up)

    @cached_property
    def _plain(self) -> TurnEngine:
        return TurnEngine(self.target)

    def _engine(self, search: Search | None) -> TurnEngine:
        """Returns what runs turn by turn, and counts what a search watches."""
        if search is None or search.watch is None:
            return self._plain
        if self._watching is None or self._watching[0] is not search.watch:
            self._watching = search.watch, TurnEngine(self.target, search.watch)
        return self._watching[1]

    _watching: tuple[Words, TurnEngine] | None = None

    def _finer(self, interval: Interval, search: Search) -> Engine:
        """Returns what runs parts of an interval: whole blocks, if it has several."""
        start, end = interval.start.state, interval.end.state if interval.end else None
        blocks = self.target.launch.blocks
        last = end.following if isinstance(end, BetweenBlocks) else blocks if end is None else 0
        several = isinstance(start, BetweenBlocks) and last - start.following > 1
        if not (several and self._by_block):
            return self._engine(search)
        engine = self._blocks
        if search.watch is not None:
            if self._watched is None or self._watched[0] is not search.watch:
                made = BlockEngine(self.target, self._look_up, search.watch)
                self._watched = search.watch, made
            engine = self._watched[1]
        engine.last = last
        return engine

    _watched: tuple[Words, BlockEngine] | None = None

    def _stand(self, engine: Engine, checkpoint: Checkpoint) -> None:
        """Sets an engine and memory to a checkpoint; the engine is about to run."""
        self._remember(checkpoint)
        engine.load(checkpoint.state)
        self._memory = None

    def _remember(self, checkpoint: Checkpoint) -> None:
        """Sets memory to what it was at a checkpoint."""
        if self._memory is not checkpoint.memory:
            self._images.restore(checkpoint.memory)
        self.target.output.count = checkpoint.prints

    def _after(self, start: Checkpoint, engine: Engine) -> Checkpoint:
        """Returns a checkpoint of where an engine stands that began at another."""
        self._memory = self._images.capture()
        return Checkpoint(
            start.position + engine.executed,
            self.target.output.count,
            self._memory,
            start.counts + engine.counts,
            engine.save(),
        )

    def _stepper(self, checkpoint: Checkpoint) -> Stepper:
        """Returns the reference machine at a checkpoint."""
        self._remember(checkpoint)
        self._memory = None
        events = Events()
        grid = grid_at(self.target, lambda: self._plain, checkpoint, events)
        return Stepper(grid, events, self._edits)

    def _nearest(self, position: int) -> Checkpoint:
        """Returns the last checkpoint that is not after a position."""
        near = (c for c in (*self._coarse, *self._fine) if c.position <= position)
        return max(near, key=lambda c: c.position)

    def _edited(self, position: int) -> bool:
        """Returns whether the state was changed before a position."""
        return any(p < position for p in self._edits)

    # ---- scanning -------------------------------------------------------------------------------

    def _scan(self, stepper: Stepper, search: Search, stop: int | None, skip: int | None) -> bool:
        """Steps up to a position until a search finds something; not where it is to be skipped."""
        while not stepper.ended and (stop is None or stepper.position < stop):
            if stepper.position != skip and search.before(stepper):
                return True
            self._look_up()
            stepper.step()
            if search.after(stepper):
                return True
        return False

    def _last(self, leaf: Interval, search: Search, position: int) -> int | None:
        """Returns the last position in an interval, before a given one, that a search finds."""
        stepper, found = self._stepper(leaf.start), None
        stop = position if leaf.end is None else min(position, leaf.end.position)
        while not stepper.ended and stepper.position < stop:
            here = stepper.position
            hit = search.before(stepper)
            self._look_up()
            stepper.step()
            if hit or search.after(stepper):
                found = here
        return found

    def _look_up(self) -> None:
        """Ends where the user wants it."""
        if self.interrupted:
            self.interrupted = False
            raise Interrupted
