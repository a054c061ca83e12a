"""Replays the record of a launch on a modelled device, quantum by quantum.

In each quantum every SM runs on its own, distributed over workers where that saves time; then the
requests of all SMs are served in order. So results do not depend on the number of workers. Once all
blocks have begun, quanta of few SMs run in one call of machine code, up to MOST_QUANTA.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from warploom.core.errors import WarploomError
from warploom.core.host_cores import usable_cores
from warploom.timing import layout as w
from warploom.timing.engine.blocks import BlockDispatcher
from warploom.timing.engine.compiled import functions
from warploom.timing.engine.messages import deliver_messages
from warploom.timing.engine.state import EngineSetting, Words, empty_sms, initial_memory
from warploom.timing.engine.warm import warm_memory, warm_sms
from warploom.timing.record.record import Record
from warploom.timing.records import MemorySystem, SchedulerState, SmState
from warploom.timing.saved import ReplayState
from warploom.timing.work.operations import MachineWork

HANDOVER_SECONDS = 0.0002
"""What a quantum on several workers has to save: handing it over to another thread and waiting for
that one take 0.05 to 0.15 ms on two cores of an AMD EPYC."""

MOST_QUANTA = 256
"""Quanta that run in one call at most: Ctrl-C takes effect, and workers are chosen anew, after
it."""


@dataclass(frozen=True)
class ReplayOutcome:
    """Holds the result of a replay: the cycle at which it ended, and the state of its SMs and of
    the memory system. It has as well the cycles of warps by operation and state, shape (operations,
    REASONS); the issues of each operation; `ends`, pairs of a cycle and how many blocks had ended
    at it; and whether the caches were warm when it began."""

    setting: EngineSetting
    cycles: int
    sms: Words
    memory: Words
    states: Words
    issues: Words
    ends: Words
    warm: bool


class Replay:
    """Runs a replay, which can be stopped, saved and resumed (`state`, `restore`). `now` is the
    next cycle; `sms` and `memory` are the engine's state (`timing.records`); `totals` counts, for
    each worker, the cycles of warps by operation and state, and then the issues of each
    operation."""

    def __init__(
        self,
        setting: EngineSetting,
        work: MachineWork,
        record: Record,
        blocks: int,
        workers: int | None = None,
        earlier: ReplayOutcome | None = None,
    ) -> None:
        """Prepares a replay of the first `blocks` blocks of `record` with `work`, from the cycle 0
        on, by at most `workers` threads of the host, None for one on each core. Their number
        changes no result. The caches are as `earlier` left them, an outcome of the same replay, or
        empty."""
        self.setting, self.now, self._warm = setting, 0, earlier is not None
        if earlier is None:
            self.sms, self.memory = empty_sms(setting), initial_memory(setting)
        else:
            self.sms = warm_sms(setting, earlier.sms)
            left = record.launch.blocks / blocks - 1
            self.memory = warm_memory(setting, earlier.memory, left)
        size = len(work.operations) * (w.REASON_COUNT + 1)
        self._workers = workers or usable_cores()
        self._seconds_of_sm = 0.0
        self.totals = np.zeros((self._workers, size), np.int64)
        self._dispatcher = BlockDispatcher(
            setting, self.sms, blocks, record.launch, record.placement
        )
        self._ends: list[tuple[int, int]] = []
        fixed = (
            *(setting.parameters.words, work.operations, work.registers, work.blocks),
            *(record.streams, record.entries, record.accesses),
            *(record.patterns.rows, record.patterns.lines, record.warps),
        )
        # Stores the arrays alive: the engine gets only their addresses.
        self._arrays = [np.ascontiguousarray(_non_empty(array)) for array in fixed]
        self._array_addresses = [array.ctypes.data for array in self._arrays]
        # Of arrays whose addresses the engine gets, and of warm caches; `restore` refuses the state
        # of others.
        checksums = [crc32(array.data) for array in self._arrays]
        self._fingerprint = np.array([blocks, *checksums, *[1] * self._warm], np.int64)

    def advance(self, cycle: int | None = None) -> bool:
        """Runs up to this cycle or, as quanta end, a little further; without one, to the end.
        Returns True if it stopped there; False if nothing was left to run before that, or no cycle
        is given."""
        with ThreadPoolExecutor(max(1, self._workers - 1)) as pool:
            while cycle is None or self.now < cycle:
                left = None if cycle is None else -(-(cycle - self.now) // self.setting.quantum)
                if not self._quanta(pool, min(left or MOST_QUANTA, MOST_QUANTA)):
                    return False
        return True

    def state(self) -> ReplayState:
        """Returns all that is needed to resume the replay: copies of the state, the sum of the
        workers' totals, and the fingerprint of the arrays and blocks that it was made from."""
        totals, ends = self.totals.sum(axis=0), np.array(self._ends, np.int64).reshape(-1, 2)
        sms, memory, dispatcher_state = (
            self.sms.copy(),
            self.memory.copy(),
            self._dispatcher.state(),
        )
        parameters = self.setting.parameters.words
        return ReplayState(
            self.now, parameters, self._fingerprint, sms, memory, totals, ends, dispatcher_state
        )

    def restore(self, state: ReplayState) -> None:
        """Resumes from a state that `state` returned, in this process or another, replacing the own
        one. Raises WarploomError for the state of another replay (other parameters, blocks or
        arrays)."""
        own = self.setting.parameters.words
        # States of older versions lack the newest parameters, which are 0 where nothing uses them.
        # Word 1 of a fingerprint is the checksum of the parameters, which are compared themselves.
        newer = np.zeros(max(0, len(own) - len(state.parameters)), np.int64)
        pairs = (
            (own, np.concatenate([state.parameters, newer])),
            (np.delete(self._fingerprint, 1), np.delete(state.fingerprint, 1)),
        )
        if not all(np.array_equal(mine, theirs) for mine, theirs in pairs):
            raise WarploomError(
                "this state belongs to another replay: the launch, the device and its timing "
                "parameters, the scheduler, the sample, the caches and the timeline must be the "
                "same in both"
            )
        self.now = state.now
        self.sms[:], self.memory[:] = state.sms, state.memory
        # The sum of the workers' totals becomes that of the first worker.
        self.totals[:] = 0
        self.totals[0] = state.totals
        self._ends = [(int(cycle), int(count)) for cycle, count in state.ends]
        self._dispatcher.restore(state.dispatcher_state)

    def run(self) -> ReplayOutcome:
        """Runs the replay to its end and returns the result. The end is that of the last block,
        issue or answer of the memory, whichever is latest, and all cycles before it are charged to
        states. Raises WarploomError if a function of the user's raised an exception."""
        self.advance()
        last = int(self.sms[:, SmState.last_done].max(initial=0))
        issued = int(
            self._scheduler_words(SchedulerState.accounted).max(initial=0)
        )  # the last issue is over
        cycles = max(last, issued, int(self.memory[MemorySystem.last_answer]))
        # Charges the cycles up to the end to the last states.
        self._run(0, np.arange(len(self.sms)), cycles, ends=True)
        self._check_policies()
        total = self.totals.sum(axis=0)
        states, issues = np.split(total, [len(total) // (w.REASON_COUNT + 1) * w.REASON_COUNT])
        ends = np.array(self._ends, np.int64).reshape(-1, 2)
        by_state = states.reshape(-1, w.REASON_COUNT)
        return ReplayOutcome(
            self.setting, cycles, self.sms, self.memory, by_state, issues, ends, self._warm
        )

    def _check_policies(self) -> None:
        """Raises WarploomError if a function of the user's (scheduler, prefetcher, mapping,
        replacement policy) raised an exception, by the flag word after the memory of each; names
        the first such."""
        p = self.setting.parameters
        flag_offset = int(p.at_user) + w.USER_WORDS
        failed = {
            name: self.sms[:, flag_offset + index * w.USER_STRIDE].any()
            for index, name in enumerate(w.USER_FUNCTIONS)
        }
        failed["mapping of DRAM"] = self.memory[p.at_dram_user + w.USER_WORDS] != 0
        in_l1 = self._set_words(self.sms, p.at_l1_user, p.l1_sets * int(p.l1_replacement != 0))
        in_l2 = self._set_words(self.memory, p.at_l2_user, p.l2_sets * int(p.l2_replacement != 0))
        for name, words in (("L1", in_l1), ("L2", in_l2)):
            failed[f"replacement policy of {name}"] = words[..., w.SET_WORDS :: w.SET_STRIDE].any()
        for name in (name for name, policy_failed in failed.items() if policy_failed):
            count = w.SET_WORDS if name.startswith("replacement") else w.USER_WORDS
            raise WarploomError(
                f"the {name} raised an exception, perhaps because of a division by zero, or an "
                f"index beyond the end of its {count} words of state; call it as a Python function "
                "to find the cause"
            )

    def _set_words(self, words: Words, at: int, sets: int) -> Words:
        """Returns a view of the memory that a cache's replacement policy has for `sets` sets, from
        offset `at` in the last dimension of `words` on, SET_STRIDE words a set."""
        return words[..., at : at + sets * w.SET_STRIDE]

    def _quanta(self, pool: ThreadPoolExecutor, most: int) -> bool:
        """Runs a quantum, or up to `most` where nothing can happen between them: reserves blocks,
        releases stalled warps, runs the busy SMs (those with blocks, reserved ones or requests) on
        the workers, serves their requests, and delivers messages between SMs; then advances `now`,
        and appends to `_ends` how many blocks have ended by then. Stores the time of an SM in this
        thread, from which the next quantum's workers follow (`_workers_for`). Returns True; False,
        at the same `now`, if no SM is busy, so nothing is left to run."""
        self._dispatcher.reserve_blocks()
        self._release_stalled()
        state = self.sms[:, [SmState.live_blocks, SmState.reserved_count, SmState.request_count]]
        busy = np.flatnonzero(state.any(axis=1))
        if not len(busy):
            return False
        self.sms[busy, SmState.now] = self.now
        workers = self._workers_for(len(busy))
        p = self.setting.parameters
        alone = workers == 1 and not p.messages and not p.phases
        if alone and self._dispatcher.has_reserved_all:
            self._run_several(busy, most)
        else:
            self._run_one(pool, np.array_split(busy, workers))
        self._ends.append((self.now, self._blocks_done()))
        return True

    def _run_one(self, pool: ThreadPoolExecutor, parts: list[Words]) -> None:
        """Runs a quantum of the SMs in `parts`, the first of them on this thread and the others on
        the pool, and advances `now`."""
        stop = self.now + self.setting.quantum
        futures = [
            pool.submit(self._run, worker, part, stop) for worker, part in enumerate(parts[1:], 1)
        ]
        began = time.perf_counter()
        self._run(0, parts[0], stop)
        self._seconds_of_sm = (time.perf_counter() - began) / len(parts[0])
        for future in futures:
            future.result()
        p, sms, memory = self._array_addresses[0], self.sms.ctypes.data, self.memory.ctypes.data
        # Requests can be one cycle older than the quantum (`start` in `engine.loads`).
        functions()["serve_all"](p, sms, memory, self.now - 1, stop)
        # Only clusters with mbarriers exchange messages.
        if self.setting.parameters.messages:
            deliver_messages(self.setting.parameters, self.sms, self._dispatcher.launched_blocks())
        self.now = stop

    def _run_several(self, busy: Words, most: int) -> None:
        """Runs up to `most` quanta of these SMs in this thread, up to the first in which a block
        ends, a warp polls memory, or an SM has nothing left; advances `now`. All blocks have been
        reserved and launched."""
        quantum, done = self.setting.quantum, self._blocks_done()
        began = time.perf_counter()
        own = self.totals[0].ctypes.data, self.sms.ctypes.data, busy.ctypes.data
        words = len(busy), self.now, quantum, most
        number = functions()["run_quanta"](
            *self._array_addresses, *own, self.memory.ctypes.data, *words
        )
        self._seconds_of_sm = (time.perf_counter() - began) / (number * len(busy))
        self.now += number * quantum
        if number > 1:
            self._ends.append((self.now - quantum, done))

    def _blocks_done(self) -> int:
        """Returns how many blocks have ended."""
        return int(self.sms[:, SmState.blocks_done].sum())

    def _workers_for(self, sms: int) -> int:
        """Returns how many workers run the next quantum of `sms` SMs: one, if several would not
        save the time to hand it over, by the time of the last quantum."""
        workers = min(self._workers, sms)
        saved = self._seconds_of_sm * (sms - -(-sms // workers))
        return workers if saved > HANDOVER_SECONDS else 1

    def _release_stalled(self) -> None:
        """Has all SMs release their warps that poll memory, and those that wait for a phase of an
        mbarrier (sets `polling_done` and clears `polling_warps`). Does so once as many warps poll
        as wait for each other (`poll_barrier`; at least one); or once no SM can go on while warps
        poll or blocks have phases, as in the functional run these warps went on. Otherwise does
        nothing."""
        polling, p = self.sms[:, SmState.polling_warps].sum(), self.setting.parameters
        all_polling = polling and polling >= p.poll_barrier
        if all_polling or ((polling or p.phases) and self._is_stalled()):
            self.sms[:, SmState.polling_done] = 1
            self.sms[:, SmState.polling_warps] = 0

    def _is_stalled(self) -> bool:
        """Returns whether no SM has anything to do at any later cycle: no scheduler will change
        (`next` is NEVER), and no access in a queue, request, reserved block or received message is
        left."""
        columns = [
            SmState.queue_count,
            SmState.tma_count,
            SmState.request_count,
            SmState.reserved_count,
            SmState.received_count,
        ]
        todo = self.sms[:, columns]
        return (
            bool((self._scheduler_words(SchedulerState.next) >= w.NEVER).all()) and not todo.any()
        )

    def _scheduler_words(self, word: int) -> Words:
        """Returns a view of the word `word` (`next`, ...) of every scheduler, shape (SMs,
        schedulers)."""
        p = self.setting.parameters
        first = int(p.at_schedulers)
        return self.sms[
            :,
            first + word : first + int(p.schedulers) * SchedulerState.WORDS : SchedulerState.WORDS,
        ]

    def _run(self, worker: int, sms: Words, stop: int, *, ends: bool = False) -> None:
        """Runs the SMs with the numbers `sms` up to the cycle `stop` in machine code, with the
        totals of `worker`; with `ends`, runs nothing but charges their cycles before `stop` to
        states."""
        chosen = np.ascontiguousarray(sms)
        own_addresses = self.totals[worker].ctypes.data, self.sms.ctypes.data, chosen.ctypes.data
        functions()["run_sms"](*self._array_addresses, *own_addresses, len(chosen), stop, ends)


def _non_empty(array: Words) -> Words:
    """Returns the array, or one word if it is empty, so that it has an address."""
    return array if array.size else np.zeros(1, np.int64)
