"""Replays a record on a modelled device, quantum by quantum."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from warploom.core.errors import WarploomError
from warploom.timing import layout as w
from warploom.timing.engine.blocks import Dealer
from warploom.timing.engine.compiled import functions
from warploom.timing.engine.notes import deliver
from warploom.timing.engine.state import Setting, Words, empty_sms, first_memory
from warploom.timing.record.records import Record
from warploom.timing.saved import State
from warploom.timing.work.operations import Work


@dataclass(frozen=True)
class Outcome:
    """The outcome of a replay: the cycle at which it was over, its SMs, the memory behind them, and
    by operation the cycles of warps in each state, shape (operations, REASONS), and its issues.
    `ends` are pairs of a cycle and how many blocks had ended then."""

    setting: Setting
    cycles: int
    sms: Words
    memory: Words
    states: Words
    issues: Words
    ends: Words


class Replay:
    """A replay on its way. Its state is plain data (`state`, `restore`); the same is left whatever
    the number of `workers`."""

    def __init__(
        self, setting: Setting, work: Work, record: Record, blocks: int, workers: int = 1
    ) -> None:
        self.setting, self.now = setting, 0
        self.sms, self.memory = empty_sms(setting), first_memory(setting)
        size = len(work.operations) * (w.REASON_COUNT + 1)
        self.totals = np.zeros((workers, size), np.int64)
        self._dealer = Dealer(setting, self.sms, blocks, record.launch)
        self._workers = workers
        self._ends: list[tuple[int, int]] = []
        fixed = (
            *(setting.parameters, work.operations, work.registers, work.blocks),
            *(record.streams, record.entries, record.accesses),
            *(record.patterns.rows, record.patterns.lines, record.warps),
        )
        self._kept = [np.ascontiguousarray(_some(array)) for array in fixed]
        self._fixed = [array.ctypes.data for array in self._kept]
        self._of_what = np.array([blocks, *(crc32(array.data) for array in self._kept)], np.int64)

    def advance(self, cycle: int | None = None) -> bool:
        """Run it up to this cycle or, as quanta end, not much further; to its end where there is
        none. Whether something is left to run."""
        with ThreadPoolExecutor(max(1, self._workers - 1)) as pool:
            while cycle is None or self.now < cycle:
                if not self._quantum(pool):
                    return False
        return True

    def state(self) -> State:
        """Return all that it needs to go on, as it is now."""
        totals, ends = self.totals.sum(axis=0), np.array(self._ends, np.int64).reshape(-1, 2)
        sms, memory, dealt = self.sms.copy(), self.memory.copy(), self._dealer.state()
        parameters = self.setting.parameters
        return State(self.now, parameters, self._of_what, sms, memory, totals, ends, dealt)

    def restore(self, state: State) -> None:
        """Go on from a state. Raises WarploomError where it is one of another replay."""
        own = self.setting.parameters, self._of_what
        theirs = state.parameters, state.of_what
        if not all(np.array_equal(a, b) for a, b in zip(own, theirs, strict=True)):
            raise WarploomError(
                "this state is of another replay: the launch, the device and its figures, the"
                " scheduler, sample and timeline have to be the same"
            )
        self.now = state.now
        self.sms[:], self.memory[:] = state.sms, state.memory
        self.totals[:] = 0
        self.totals[0] = state.totals
        self._ends = [(int(cycle), int(count)) for cycle, count in state.ends]
        self._dealer.restore(state.dealt)

    def run(self) -> Outcome:
        """Run it to its end."""
        self.advance()
        last = int(self.sms[:, w.LAST_DONE].max(initial=0))
        issued = int(self._of_schedulers(w.S_FROM).max(initial=0))  # the last issue is over
        cycles = max(last, issued, int(self.memory[w.LAST_ANSWER]))
        self._run(0, np.arange(len(self.sms)), cycles, ends=True)
        self._check_policies()
        total = self.totals.sum(axis=0)
        states, issues = np.split(total, [len(total) // (w.REASON_COUNT + 1) * w.REASON_COUNT])
        ends = np.array(self._ends, np.int64).reshape(-1, 2)
        shaped = states.reshape(-1, w.REASON_COUNT)
        return Outcome(self.setting, cycles, self.sms, self.memory, shaped, issues, ends)

    def _check_policies(self) -> None:
        """Raise WarploomError where a function of the user's raised an exception."""
        p = self.setting.parameters
        first = int(p[w.AT_OWN]) + w.OWN_WORDS
        failed = {
            name: self.sms[:, first + place * w.OWN_STRIDE].any()
            for place, name in enumerate(w.OWN_FUNCTIONS)
        }
        failed["mapping of DRAM"] = self.memory[p[w.AT_DRAM_OWN] + w.OWN_WORDS] != 0
        for name, words in (
            ("L1", self._of_sets(self.sms, w.L1_REPLACES, w.AT_L1_OWN, w.L1_SETS)),
            ("L2", self._of_sets(self.memory, w.L2_REPLACES, w.AT_L2_OWN, w.L2_SETS)),
        ):
            failed[f"replacement policy of {name}"] = words[..., w.SET_WORDS :: w.SET_STRIDE].any()
        for name in (name for name, one in failed.items() if one):
            count = w.SET_WORDS if name.startswith("replacement") else w.OWN_WORDS
            raise WarploomError(
                f"the {name} raised an exception: an index beyond its {count} words, or"
                " what else Numba's functions raise; call it as a Python function to see which"
            )

    def _of_sets(self, words: Words, policy: int, at: int, sets: int) -> Words:
        """Return the words of a replacement policy, if there is one, of all sets of a cache."""
        p = self.setting.parameters
        count = int(p[sets]) * w.SET_STRIDE if p[policy] else 0
        return words[..., p[at] : p[at] + count]

    def _quantum(self, pool: ThreadPoolExecutor) -> bool:
        """Run one quantum; False where nothing is left to run."""
        self._dealer.deal()
        self._part()
        state = self.sms[:, [w.LIVE_BLOCKS, w.RESERVED_COUNT, w.REQUEST_COUNT]]
        busy = np.flatnonzero(state.any(axis=1))
        if not len(busy):
            return False
        stop = self.now + self.setting.quantum
        self.sms[busy, w.NOW] = self.now
        parts = np.array_split(busy, self._workers)
        others = [
            pool.submit(self._run, worker, part, stop)
            for worker, part in enumerate(parts[1:], 1)
            if len(part)
        ]
        self._run(0, parts[0], stop)
        for other in others:
            other.result()
        p, sms, memory = self._fixed[0], self.sms.ctypes.data, self.memory.ctypes.data
        functions()["serve_all"](p, sms, memory, self.now - 1, stop)
        if self.setting.parameters[w.NOTES]:
            deliver(self.setting.parameters, self.sms, self._dealer.begun())
        self.now = stop
        self._ends.append((stop, int(self.sms[:, w.BLOCKS_DONE].sum())))
        return True

    def _part(self) -> None:
        """Let warps go on that have met in memory, once all have come; or, with those that wait for
        a phase of an mbarrier, where nothing else can go on: the functional run says that they
        did."""
        come, p = self.sms[:, w.COME].sum(), self.setting.parameters
        all_come = come and come >= p[w.POLL_BARRIER]
        if all_come or ((come or p[w.PHASES]) and self._stands_still()):
            self.sms[:, w.MET] = 1
            self.sms[:, w.COME] = 0

    def _stands_still(self) -> bool:
        """Returns whether no SM has anything to do at any time."""
        columns = [w.QUEUE_COUNT, w.TMA_COUNT, w.REQUEST_COUNT, w.RESERVED_COUNT, w.TOLD_COUNT]
        todo = self.sms[:, columns]
        return bool((self._of_schedulers(w.S_NEXT) >= w.NEVER).all()) and not todo.any()

    def _of_schedulers(self, word: int) -> Words:
        """Return a word of every scheduler, shape (SMs, schedulers)."""
        p = self.setting.parameters
        first = int(p[w.AT_SCHEDULERS])
        return self.sms[:, first + word : first + int(p[w.SCHEDULERS]) * w.S_WORDS : w.S_WORDS]

    def _run(self, worker: int, sms: Words, stop: int, *, ends: bool = False) -> None:
        """Let a worker run some of the SMs up to a cycle, or account for what was before it."""
        chosen = np.ascontiguousarray(sms)
        own = self.totals[worker].ctypes.data, self.sms.ctypes.data, chosen.ctypes.data
        functions()["run_sms"](*self._fixed, *own, len(chosen), stop, ends)


def _some(array: Words) -> Words:
    """Return the array, or a word where there is nothing: it has an address."""
    return array if array.size else np.zeros(1, np.int64)
