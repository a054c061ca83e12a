"""States why the thread blocks of a launch have to run on one worker, if several would change
results or counters, and merges the tallies of parts.

Blocks run in parallel if an analysis proves that their accesses to global memory are disjoint
(`analysis.linear.footprints`), or can be performed in order later, and no policy orders them; any
other launch has one worker, and its tally states why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warploom.abi.environment import Interleaving
from warploom.analysis.linear.affine import NOT_SHARED
from warploom.analysis.linear.footprints import BlockConflicts, block_conflicts
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.analysis.linear.thread_order import are_threads_independent
from warploom.cost.fields import CostRecord
from warploom.isa.kinds import Needs
from warploom.machine.compiled.block_times import BlockTimes
from warploom.machine.compiled.proofs import cached_proof, expected_seconds
from warploom.machine.late_updates import LateUpdates, LogSizes
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.polling import may_wait_for_memory
from warploom.machine.tally import COLUMNS, Tally
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.program.services import is_assert, service_of
from warploom.program.tracking import Tracking

CALLS_HOST = "the kernel calls printf or malloc"


@dataclass(frozen=True, slots=True)
class BlockDependences:
    """Decides for one launch how its blocks depend on each other, from proofs that the program
    caches. `caches`: the contents of caches are simulated (`cost.caches`)."""

    program: Program
    launch: Launch
    memory: DeviceMemory
    caches: bool

    def serial_reason(self) -> str:
        """Returns the reason, as text for the tally, why one worker has to run all blocks: a
        policy, an instruction limit, clusters, cancelled launches, simulated caches, a read of
        `%smid`, or accesses of blocks that may conflict; empty if several can."""
        in_order = self.order_reason()
        if not in_order and self.program.shows_multiprocessor:
            return "the kernel reads %smid, which depends on the order in which blocks end"
        return in_order or self._conflicts().reason

    def tracking(self) -> Tracking | None:
        """Returns the accesses by which several workers that run the blocks find whether they
        conflict; None if one worker has to run them whatever they access, or if those accesses
        cannot be tracked. Blocks of a cooperative launch wait for each other, so that they do."""
        if self.launch.cooperative or self.order_reason() or self.program.shows_multiprocessor:
            return None
        return self._conflicts().tracking

    def late_updates(self) -> LateUpdates | None:
        """Returns the object that performs updates in the order of blocks; None if the order of
        none shows. Its first part begins with block 0."""
        late = self._conflicts().late_updates
        return LateUpdates(0, LogSizes.of(self.program, self.launch, late)) if late else None

    def order_reason(self) -> str:
        """Returns the reason why the blocks have to run in order on one worker, whatever memory
        they access; empty if there is none."""
        launch, program = self.launch, self.program
        if launch.schedule.policy != "converge":
            return "the schedule interleaves the blocks"
        # Parallel workers could not stop at the same instruction as one worker.
        if launch.max_instructions is not None:
            return "the instruction limit applies to all blocks together"
        if launch.cluster_blocks > 1:
            return "the blocks form clusters"
        if Needs.LAUNCH_CANCELLATION in program.needs:
            return "blocks can take over the work of other blocks"
        # Only a part that is the whole launch lets other launches run, and looks again.
        if launch.cancellation.lock is not None and may_wait_for_memory(program):
            return "the kernel may wait for data from other launches"
        if self.caches:
            return "the cache model needs the accesses of all blocks in order"
        return ""

    def proof_seconds(self) -> float:
        """Returns the expected time of `serial_reason`."""
        return self._expected_seconds(block_conflicts)

    def interleaving(self, times: BlockTimes) -> Interleaving:
        """Returns which warps may be interleaved: those of a block if no policy orders them and a
        proof shows that the order of threads is not observable (`analysis.linear.thread_order`),
        those of several blocks if these could run on several workers, too, in any order. The proofs
        are made only once launches would have saved the expected time of each (`times`)."""
        expected = max(map(self._expected_seconds, (are_threads_independent, block_conflicts)))
        if expected and not times.interleaving_pays(expected):
            return Interleaving.UNKNOWN
        arguments = self.program, self.launch, self.memory
        if self.order_reason() or not cached_proof(*arguments, are_threads_independent):
            return Interleaving.UNKNOWN
        has_order = self._conflicts().late_updates or calls_host(self.program)
        if has_order or self.serial_reason():
            return Interleaving.WITHIN_BLOCKS
        return Interleaving.ACROSS_BLOCKS

    def _conflicts(self) -> BlockConflicts:
        """Returns the result of the analysis of accesses."""
        return cached_proof(self.program, self.launch, self.memory, block_conflicts)

    def _expected_seconds(self, analysis: Callable[[Program, LaunchInputs], object]) -> float:
        """Returns the expected time of an analysis."""
        return expected_seconds(self.program, self.launch, self.memory, analysis)


def calls_host(program: Program) -> bool:
    """Returns whether a program calls functions of the host (`program.services`)."""
    return any(service_of(instruction) for instruction in program.instructions)


def calls_host_in_order(program: Program) -> bool:
    """Returns whether a program calls functions of the host that have to be called in the order of
    blocks: all but failed assertions. The program caches it."""
    if calls_host_in_order not in program.cache:
        program.cache[calls_host_in_order] = any(
            service_of(instruction) and not is_assert(instruction)
            for instruction in program.instructions
        )
    return bool(program.cache[calls_host_in_order])


def updates_memory(program: Program) -> bool:
    """Returns whether a program has atomics on memory that blocks share; the program caches it."""
    if updates_memory not in program.cache:
        program.cache[updates_memory] = any(
            op == "atomic" and space not in NOT_SHARED
            for instruction in program.instructions
            for space, op in accesses(instruction)
        )
    return bool(program.cache[updates_memory])


_SUMS = (*COLUMNS, "accesses")
"""The fields of a tally that are added up."""


def merge_tallies(tallies: Sequence[Tally]) -> Tally:
    """Returns the tally of a launch from those of its parts, which are in the order of their
    blocks: sums of counts, and for each access record the costliest example; other fields are the
    first's. Overwrites counts and records of the first one."""
    total = tallies[0]
    for tally in tallies[1:]:
        for name in _SUMS:
            getattr(total, name)[...] += getattr(tally, name)
        # Of equally costly ones the first stays, as if one worker had seen them all.
        example_at = CostRecord.example_cost
        costlier = tally.records[:, example_at] > total.records[:, example_at]
        total.records[costlier, example_at:] = tally.records[costlier, example_at:]
    return total
