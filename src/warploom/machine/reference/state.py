"""Holds the state of a launch on the reference machine while it runs: the launch, its thread
blocks, its warps.

The protocols `Listener`, `Observer` and `Sanitizer` are what recorders, debuggers and race
detectors implement to receive events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.late_copies.entries import LIST_WORDS
from warploom.asynchronous.records import WarpIssue
from warploom.asynchronous.tensor_memory.layout import LANE_BYTES, LANES
from warploom.core.errors import Dim3
from warploom.core.interrupts import let_interrupts_through
from warploom.core.lazy import cached_property
from warploom.core.types import PRED, U32, U64
from warploom.cost.address_pattern import AddressPattern
from warploom.cost.device_rules import AccessRules
from warploom.isa.instruction import Instruction, Space
from warploom.machine.faults.endless import limit_error
from warploom.machine.launch import (
    Launch,
    WarpId,
    all_shared_bytes,
    launch_values,
    shared_stride,
    unravel,
)
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.reference.lanes import Values, collect, splat
from warploom.machine.reference.splits import Splits
from warploom.machine.services import Services
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.program.requests.tensor_memory import queue_words
from warploom.simt.schedule_layout import Plan, WarpState, Words
from warploom.simt.warp_table import WarpTable
from warploom.texture.descriptors import TexelIssue

Bytes = npt.NDArray[np.uint8]


class Listener(Protocol):
    """Receives events of a launch as they happen: a recorder, debugger or `Chooser`."""

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        """Called before a warp executes an instruction, any one, in the lanes of `mask`: the active
        ones whose guard holds, which may be none."""
        ...

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        """Called before a warp's instruction accesses memory; the access has passed all checks."""
        ...


@runtime_checkable
class Chooser(Listener, Protocol):
    """A listener that selects which warp runs next."""

    def choose(self, able: Sequence[WarpId]) -> WarpId | None:
        """Returns which of the runnable warps `able` runs next, or None for the schedule's choice.
        Where only the schedule can decide, `able` holds its choice alone; the result is ignored."""
        ...


class Observer(Protocol):
    """Receives the events of a launch for which its users have registered functions."""

    def access(self, warp: Warp, access: WarpAccess) -> None:
        """Called before an access of a warp to one space is done, after all checks; reports it to
        the registered function."""
        ...

    def branch(self, warp: Warp, index: int, instruction: Instruction, mask: int) -> None:
        """Called before any instruction, with its number `index`; reports a branch, which the lanes
        of `mask` follow, and ignores other instructions."""
        ...

    def barrier(self, warp: Warp, index: int, mask: int, number: int, threads: int) -> None:
        """Reports lanes that arrive at barrier `number` of the thread block, which awaits `threads`
        threads (0: all), or execute an arrival or a wait at the cluster's (CLUSTER_BARRIER)."""
        ...

    def block_begins(self, block: int) -> None:
        """Reports a thread block that begins, by its linear number in the grid."""
        ...

    def block_ends(self, block: int) -> None:
        """Reports a thread block whose warps have all ended, by its linear number in the grid."""
        ...


class Sanitizer(Protocol):
    """Checks events of a launch. Only `admitted` suppresses accesses of lanes."""

    def admitted(self, warp: Warp, wanted: AttemptedAccess) -> int:
        """Called before a warp's instruction accesses one space (parameters excepted), before
        bounds are checked; returns the mask of the lanes whose accesses are executed: those of
        other lanes are suppressed."""
        ...

    def arrives(self, warp: Warp, instruction: int, mask: int, number: int, threads: int) -> None:
        """Called when lanes arrive at barrier `number` of the thread block, which awaits `threads`
        threads (0: all), or execute an arrival or a wait at the cluster's barrier
        (CLUSTER_BARRIER)."""
        ...

    def passes(self, warp: Warp, instruction: int, mask: int) -> None:
        """Called before lanes execute any instruction, with the mask of active lanes whose guard
        holds; not called if it holds in none."""
        ...

    def copies(self, warp: Warp, instruction: int, issue: WarpIssue) -> None:
        """Called before lanes issue an operation of the TMA (a tensor or bulk copy, say), once for
        each 32 lanes of a warp."""
        ...

    def tensor_memory(self, warp: Warp, instruction: int, issue: WarpIssue) -> None:
        """Called before lanes issue a `tcgen05` that has an effect; not called for an empty
        mask."""
        ...

    def texels(
        self, warp: Warp, instruction: int, rows: npt.NDArray[np.uint64], issue: TexelIssue
    ) -> None:
        """Called before lanes access a texture or a surface, once for each 32 lanes of a warp, with
        one row of lane values for each operand."""
        ...


@dataclass(frozen=True, slots=True)
class AttemptedAccess:
    """An access to one space that has not been checked: `addresses` by lane; `data` are the operand
    bytes, all lanes' of the first element, then those of the next."""

    instruction: int
    space: Space
    op: str
    size: int
    addresses: Mapping[int, int]
    data: bytes


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """A legal access of lanes of a warp to one space: `op` (load, store, atomic) on `size` bytes
    each.

    `addresses` and `bytes_before` hold, for each of `lanes`, the address in the space, and the
    bytes there before the access.
    """

    instruction: int
    space: Space
    op: str
    size: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    bytes_before: tuple[bytes, ...]

    def pattern(self, unit: int) -> tuple[AddressPattern, int]:
        """Returns the address pattern of the access (lanes, and their offsets from its base) and
        the base: the first lane's address, rounded down to a multiple of `unit` bytes, the device's
        access unit (`AccessRules.unit`). Addresses in local memory are those of the interleaved
        layout."""
        mask = sum(1 << lane for lane in self.lanes)
        if self.space is Space.LOCAL:
            return AddressPattern(mask, self.addresses).in_local(unit)
        return AddressPattern.of(mask, self.addresses, unit)


@dataclass
class LaunchState:
    """One launch in execution: program, memory, schedule and counts.

    `record_numbers` maps (instruction, space) to the number of the access record. `plan`, `slots`,
    `states` and `tables` are the arrays of `simt.scheduling`, `caches` that of `cost.caches`;
    `issued` counts the warp instructions that are not hidden.
    """

    program: Program
    launch: Launch
    memory: DeviceMemory
    tally: Tally
    record_numbers: dict[tuple[int, Space], int]
    rules: AccessRules
    plan: Plan
    slots: Words
    caches: Words
    states: Words
    tables: Words
    listener: Listener | None = None
    sanitizer: Sanitizer | None = None
    observer: Observer | None = None
    issued: int = 0

    @cached_property
    def queue(self) -> npt.NDArray[np.int64]:
        """Returns the words of the launch's queue of incomplete asynchronous copies
        (`asynchronous.issue.queue`), which is made, empty, at the first use."""
        return np.zeros(queue_words(self.program.has_tensor_memory), np.int64)

    @cached_property
    def held(self) -> npt.NDArray[np.int64]:
        """Returns the words of the launch's list of incomplete copies that lanes issued
        (`asynchronous.late_copies`), which is made, empty, at the first use."""
        return np.zeros(LIST_WORDS, np.int64)

    @cached_property
    def services(self) -> Services:
        """Returns the implementation of printf, assert, malloc and free for the kernel."""
        return Services(self.program, self.launch, self.memory)

    def count_issue(self, instruction: int, active_mask: int, guarded_mask: int) -> None:
        """Counts a warp instruction that is about to execute, with its active lanes and those whose
        guard holds (masks); hidden instructions are not counted. Raises InstructionLimit if the
        launch has used up `max_instructions`, and LaunchCancelled if it should stop."""
        let_interrupts_through()
        self.launch.cancellation.check()
        if instruction in self.program.hidden:
            return
        limit = self.launch.max_instructions
        if limit is not None and self.issued >= limit:
            raise limit_error(self.program, self.launch)
        self.issued += 1
        self.tally.warps[instruction] += 1
        self.tally.threads[instruction] += active_mask.bit_count()
        self.tally.threads_on[instruction] += guarded_mask.bit_count()


@dataclass
class ThreadBlock:
    """One thread block: its number in the grid, its shared memory, and the shared memory of its
    cluster, in which it has rank `rank`."""

    run: LaunchState
    number: int
    shared: Bytes
    cluster: Bytes
    rank: int


@dataclass
class Warp:
    """One warp: its number in the block, its control state, registers and private memory.

    `next` is the instruction that it executes next, `used` the number executed in this turn;
    `local` and `frame` have a row for each lane. `state` is its scheduler state
    (`simt.schedule_layout`).
    """

    block: ThreadBlock
    number: int
    splits: Splits
    state: WarpState
    registers: dict[str, Values]
    specials: dict[str, Values]
    local: Bytes
    frame: Bytes
    next: int = 0
    used: int = 0
    failed_wait: bool = False
    """True if a test of an mbarrier's phase has failed in this turn."""
    in_flight: deque[Any] = field(default_factory=deque[Any])
    """Incomplete products of its warp group (`machine.reference.warp_group`), or loads of tensor
    memory."""
    group: int = 0
    """The number of the group that issued products join."""
    interrupted: dict[int, int] = field(default_factory=dict[int, int])
    """The instruction at which interrupted lanes resume, by their mask."""

    @property
    def run(self) -> LaunchState:
        """Returns the launch that the warp's thread block belongs to."""
        return self.block.run

    @property
    def size(self) -> int:
        """Returns the warp size of the launch: lanes without a thread count, too."""
        return self.run.launch.warp_size

    @property
    def clock(self) -> int:
        """Returns the number of instructions that the warp has issued before the current one,
        hidden ones left out: the value of `%clock`."""
        return self.state.issued + self.used - 1

    @property
    def existing(self) -> int:
        """Returns the mask of lanes that have a thread; the last warp of a block may have few."""
        remaining = self.run.launch.threads_per_block - self.number * self.size
        return (1 << min(remaining, self.size)) - 1

    @property
    def level(self) -> int:
        """Returns the call depth of the active lanes, which the lowest one has in the program's
        register of call depths, as the others do; 0 if all calls of the program are inlined."""
        depth = self.run.program.depth
        if depth is None:
            return 0
        mask = self.splits.active
        return int(self.registers[depth.name][(mask & -mask).bit_length() - 1])


def new_block(run: LaunchState, number: int, cluster: Bytes) -> ThreadBlock:
    """Returns a thread block in its initial state, and zeroes its part of the cluster's shared
    memory, but for tensor memory."""
    launch, size = run.launch, all_shared_bytes(run.program, run.launch)
    rank = launch.rank_of(number)
    start = rank * shared_stride(run.program, launch)
    end = start + shared_stride(run.program, launch)
    if run.program.has_tensor_memory:
        # Columns of tensor memory are cleared when they are allocated.
        end -= LANES * LANE_BYTES
    # Blocks reuse slots, so the memory may hold another block's data.
    cluster[start:end] = 0
    return ThreadBlock(run, number, cluster[start : start + size], cluster, rank)


def new_cluster(run: LaunchState) -> Bytes:
    """Returns the shared memory of all thread blocks of a cluster, zero; at least one byte, so that
    it has an address."""
    size = run.launch.cluster_blocks * shared_stride(run.program, run.launch)
    return np.zeros(max(size, 1), np.uint8)


def new_warp(block: ThreadBlock, number: int, state: WarpState, table: WarpTable) -> Warp:
    """Returns a warp whose registers and private memory are zero; `state` and `table`, its rows of
    the launch's arrays, stay as the schedule has initialized them."""
    run, size = block.run, block.run.launch.warp_size
    return Warp(
        block,
        number,
        Splits(table, run.program.exit),
        state,
        {r.name: splat(0, r.type, size) for r in run.program.registers},
        special_values(block, number),
        np.zeros((size, run.program.local_bytes), np.uint8),
        np.zeros((size, run.program.frame_bytes), np.uint8),
    )


def special_values(block: ThreadBlock, warp: int) -> dict[str, Values]:
    """Returns, by name, the special registers of a warp that do not change while it runs (PTX ISA,
    "Special Registers")."""
    launch = block.run.launch
    lanes = range(launch.warp_size)

    def same(value: int) -> Values:
        """Returns a 32-bit value in all lanes."""
        return splat(value, U32, launch.warp_size)

    threads = [launch.thread_index(warp, lane) for lane in lanes]
    values = {f"%tid.{p}": collect((t[i] for t in threads), U32) for i, p in enumerate("xyz")}
    for name, shape in (
        ("%ntid", launch.block),
        ("%ctaid", unravel(block.number, launch.grid)),
        ("%nctaid", launch.grid),
        ("%clusterid", _cluster_index(unravel(block.number, launch.grid), launch.cluster)),
        ("%cluster_ctaid", _index_in_cluster(unravel(block.number, launch.grid), launch.cluster)),
    ):
        values |= {f"{name}.{part}": same(n) for part, n in zip("xyz", shape, strict=True)}
    return values | {
        "%laneid": collect(lanes, U32),
        "%warpid": same(warp),
        "%lanemask_eq": collect((1 << i for i in lanes), U32),
        "%lanemask_lt": collect(((1 << i) - 1 for i in lanes), U32),
        "%lanemask_le": collect(((2 << i) - 1 for i in lanes), U32),
        "%lanemask_gt": collect((-(2 << i) for i in lanes), U32),
        "%lanemask_ge": collect((-(1 << i) for i in lanes), U32),
        **{name: same(n) for name, n in launch_values(block.run.program, launch).items()},
        "%is_explicit_cluster": splat(int(launch.explicit_cluster), PRED, launch.warp_size),
        "%cluster_ctarank": same(block.rank),
        "%smid": same(launch.sm_of_slot(block.run.plan.slot)),
        "%gridid": splat(0, U64, launch.warp_size),
    }


def _cluster_index(index: Dim3, sizes: Dim3) -> list[int]:
    """Returns the index of the cluster that contains block `index`, for a cluster size."""
    return [n // size for n, size in zip(index, sizes, strict=True)]


def _index_in_cluster(index: Dim3, sizes: Dim3) -> list[int]:
    """Returns the index that block `index` has in its cluster, for a cluster size."""
    return [n % size for n, size in zip(index, sizes, strict=True)]
