"""Performs the updates of a launch whose order shows in the order of its thread blocks, while
several workers run these in any order.

    red.global.add.f32 [sum], %f1       blocks 0 to 99: at once; 100 to 199: logged meanwhile,
                                        performed when block 99 has ended

The blocks of a launch are divided into parts. The first part that has not ended has its turn: it
performs updates at once. Parts after it log theirs (`abi.update_log`), which are performed when
their turn comes. A part whose log is full waits for its turn.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from warploom.abi.update_log import LoggedUpdate, UpdateLog
from warploom.core.errors import LaunchError
from warploom.core.interrupts import let_interrupts_through
from warploom.isa.instruction import Instruction, flatten_operands
from warploom.machine.launch import WARP_SIZE, Launch
from warploom.program.program import Program
from warploom.simt.scheduling import WHOLE_TURN

PAUSING = 1 << 19
"""Entries with which a part waits for its turn: 12 MiB."""

WAIT_SECONDS = 0.0001
"""How long a part waits before it looks again whether its turn has come."""

_APPLY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class LogSizes:
    """States how many thread blocks of a kernel without loops may run until the host looks at a log
    (`blocks`), and how many entries code may append beyond PAUSING until then (`spare`)."""

    blocks: int
    spare: int

    @classmethod
    def of(cls, program: Program, launch: Launch, updates: Iterable[int]) -> LogSizes:
        """Returns the sizes for a launch, the updates of whose program are these instructions.
        Without a loop, a thread executes each once. With loops, code returns after a turn, which
        ends at the first back edge after its last instruction."""
        elements = [_elements(program.instructions[index]) for index in updates]
        of_block = launch.warps_per_block * WARP_SIZE * sum(elements)
        blocks = max(1, PAUSING // of_block)
        return cls(blocks, max(blocks, 2) * of_block + WHOLE_TURN * WARP_SIZE * max(elements))


class PartLog:
    """The log of one part: space for PAUSING entries, and for the spare ones."""

    def __init__(self, sizes: LogSizes) -> None:
        """Makes an empty log; the system commits its pages as they are written."""
        self.sizes = sizes
        entries = np.empty((PAUSING + sizes.spare) * LoggedUpdate.WORDS, np.int64)
        words = np.zeros(UpdateLog.WORDS, np.int64)
        self.head, self.entries = UpdateLog(words, 0), entries
        self.head.entries_at = int(entries.ctypes.data)
        self.head.pausing, self.head.capacity = PAUSING, PAUSING + sizes.spare
        self.address = int(words.ctypes.data)

    @property
    def is_full(self) -> bool:
        """Returns whether the part has to wait for its turn before it goes on."""
        return bool(self.head.count >= PAUSING)

    def perform(self) -> None:
        """Performs the updates that are logged, and empties the log. Raises LaunchError if some
        were lost."""
        if self.head.has_overflown:
            raise LaunchError("internal error: a log of atomics has overflown; use workers=1")
        count, at = int(self.head.count), int(self.head.entries_at)
        if count:
            first = LoggedUpdate(self.entries, 0)
            _APPLY(first.apply)(at, at + count * 8 * LoggedUpdate.WORDS)
        self.head.count = 0


@dataclass(eq=False)
class _Ended:
    """A part that has ended, before block `stop`; `log` is None if it has performed its updates.
    `is_complete`: all its blocks have ended, so that the part after it may follow."""

    stop: int
    log: PartLog | None
    is_complete: bool


@dataclass(eq=False)
class LateUpdates:
    """The updates of one launch. `turn` is the first block of the part that has its turn; `sizes`
    those of logs. Workers may call the methods at once."""

    turn: int
    sizes: LogSizes
    _ended: dict[int, _Ended] = field(default_factory=dict[int, _Ended])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_performing: bool = False

    def begin(self, part: range) -> PartLog | None:
        """Returns the log of a part that is to run; None if it has its turn."""
        if part.start == self.turn:
            return None
        return _borrow(self.sizes)

    def has_turn(self, part: range, log: PartLog, is_stopped: Callable[[], bool]) -> bool:
        """Returns whether a part that runs has its turn; if so, performs what it has logged, and
        gives its log back. If the log is full, waits for that, or until `is_stopped` returns
        true."""
        while self.turn != part.start:
            if not log.is_full or is_stopped():
                return False
            let_interrupts_through()
            time.sleep(WAIT_SECONDS)
        log.perform()
        _give_back(log)
        return True

    def end(self, part: range, log: PartLog | None, *, is_complete: bool) -> None:
        """Notes that a part has ended, all its blocks or not. If it has its turn, performs its
        updates, and those of parts after it that have ended, up to one that is not complete."""
        with self._lock:
            self._ended[part.start] = _Ended(part.stop, log, is_complete)
        while (ended := self._next_ended()) is not None:
            if ended.log is not None:
                ended.log.perform()
                _give_back(ended.log)
            with self._lock:
                self._is_performing = False
                if ended.is_complete:
                    self.turn = ended.stop

    def _next_ended(self) -> _Ended | None:
        """Returns the part that has its turn, if it has ended and no worker performs its
        updates."""
        with self._lock:
            if self._is_performing or self.turn not in self._ended:
                return None
            self._is_performing = True
            return self._ended.pop(self.turn)


def _elements(update: Instruction) -> int:
    """Returns how many elements of memory an atomic updates in a lane."""
    operand = update.operands[len(update.operation.spec.destinations) + 1]
    return len(list(flatten_operands([operand])))


_free: list[PartLog] = []
"""Logs that no part uses, whose pages the system has committed as far as they were written."""

MOST_FREE = 16
"""Logs that are stored for other parts, at most, of some 12 MiB each where they have been full."""


def _borrow(sizes: LogSizes) -> PartLog:
    """Returns an empty log of these sizes."""
    try:
        log = _free.pop()
    except IndexError:
        return PartLog(sizes)
    return log if log.sizes == sizes else PartLog(sizes)


def _give_back(log: PartLog) -> None:
    """Stores an empty log for another part."""
    if len(_free) < MOST_FREE:
        _free.append(log)
