"""Decides by measured times whether a launch is long enough to be shared by several workers.

A launch begins on one worker. When that has run SHORTEST_SECONDS, and the blocks that have not
begun will probably run as long again, others join (`machine.compiled.sharing`). Later launches of
the same configuration know from that one how long a block runs, and are shared from the start.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.compilation.jit import CompiledKernel

WORKER_SECONDS = 0.0005
"""The least time that a worker has to run of a launch. Waking a thread, preparing its buffers,
filling its range caches and adding up its counts last 0.1 to 0.5 ms on two cores of an AMD EPYC."""

SHORTEST_SECONDS = 2 * WORKER_SECONDS
"""The least time that the blocks of a launch, or those that are left of it, have to run on one
worker for others to share them. Shared launches of 1 to 3 ms were 1.2 to 1.8 times as fast as on
one worker (`benchmarks/workers.py`)."""

LEAST_GAIN = 0.95
"""Blocks that update the same memory by atomics are shared only if that lasts less than this part
of the time of one worker: cores that update one place wait for each other."""

SAMPLES = 3
"""The shared launches that decide whether workers contend, and about as many of the last ones that
count, of both kinds: times of single launches vary by half."""

REST = 64
"""The launches on one worker after which it is measured again whether workers contend; twice as
many each time."""


@dataclass
class BlockTimes:
    """The seconds that a worker spends on a thread block in launches of one configuration, 0 before
    they are measured. `is_long`: launches are shared from the start. `missed`: the seconds that
    sharing would have saved since the last proof that blocks are independent.

    `wants_interleaving`: code has recorded that interleaving warps would pay. `missed_interleaving`
    are the seconds that it would have saved since the last proof that it is allowed.

    Of kernels with atomics, `alone` is the time of a block on one worker in the code `kernel`,
    `ratio` the mean of the last `samples` times on several, over that. `is_contended`: sharing
    saved nothing in that code; `rest` launches from now, `next_rest` if it is found again."""

    seconds: float = 0.0
    is_long: bool = False
    missed: float = 0.0
    wants_interleaving: bool = False
    missed_interleaving: float = 0.0
    alone: float = 0.0
    kernel: CompiledKernel | None = None
    is_contended: bool = False
    samples: int = 0
    ratio: float = 0.0
    rest: int = 0
    next_rest: int = REST

    def record(self, seconds: float, blocks: int) -> None:
        """Stores the time of a block (`seconds`), given the time that all workers together spent on
        some blocks. Sets `is_long`, so that later launches are shared from the start, if that time
        is at least SHORTEST_SECONDS and workers do not contend."""
        self.seconds = seconds / blocks
        self.is_long = seconds >= SHORTEST_SECONDS and not self.is_contended

    def miss_interleaving(self, seconds: float) -> None:
        """Records that code which ran for some seconds would have interleaved the warps of blocks
        if that had been allowed: then it would have run about half as long."""
        self.wants_interleaving = True
        self.missed_interleaving += seconds / 2

    def interleaving_pays(self, proof: float) -> bool:
        """Returns whether to spend `proof` seconds on the proof that warps may be interleaved: once
        as much has been missed, as for `pays`."""
        if self.missed_interleaving < proof:
            return False
        self.missed_interleaving = 0.0
        return True

    def pays(self, saved: float, proof: float) -> bool:
        """Adds the `saved` seconds that sharing a launch would save to `missed`, and returns
        whether to spend `proof` seconds on the proof that its blocks are independent: once `missed`
        is as much. So launches whose arguments stay the same, for which one proof is enough, are
        shared after some; and where each needs another, proofs cost no more than has been saved."""
        self.missed += saved
        if self.missed < proof:
            return False
        self.missed = 0.0
        return True

    def record_alone(self, kernel: CompiledKernel, seconds: float) -> None:
        """Stores the time of a block on one worker, before others joined, in `alone`. For code
        other than `kernel`, first makes it that, and forgets whether workers contended in the old
        one; they are also to try again after `rest` such launches."""
        if kernel is not self.kernel:
            self.kernel, self.alone, self.next_rest = kernel, seconds, REST
            self._forget()
        self.alone += (seconds - self.alone) / SAMPLES
        self.rest -= self.is_contended
        if self.is_contended and self.rest <= 0:
            self._forget()

    def _forget(self) -> None:
        """Forgets whether workers contended."""
        self.is_contended, self.samples = False, 0

    def record_contention(self, kernel: CompiledKernel, seconds: float) -> None:
        """Sets `is_contended` if sharing saves no time, by the wall time of a block while several
        workers ran, in the same code: if that is more than LEAST_GAIN of the time on one worker, in
        the mean of SAMPLES launches or more."""
        if kernel is not self.kernel:
            return
        self.samples += 1
        self.ratio += (seconds / self.alone - self.ratio) / min(self.samples, SAMPLES)
        self.is_contended = self.samples >= SAMPLES and self.ratio > LEAST_GAIN
        if self.is_contended:
            self.rest, self.next_rest = self.next_rest, 2 * self.next_rest
