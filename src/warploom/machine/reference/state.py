"""The state of a launch on the reference machine, while it runs: the run, a block, a warp."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.late_copies.entries import LIST_WORDS
from warploom.asynchronous.tensor_memory.layout import LANE_BYTES, LANES
from warploom.core.errors import Dim3
from warploom.core.types import PRED, U32, U64
from warploom.cost.device_rules import AccessRules
from warploom.machine.faults.fault_errors import limit_error
from warploom.machine.launch import (
    Launch,
    WarpId,
    all_shared_bytes,
    launch_values,
    shared_stride,
    unravel,
)
from warploom.machine.memory.device_memory import AllocationTable, DeviceMemory
from warploom.machine.reference.lanes import Values, collect, splat
from warploom.machine.reference.observing import ObserverCalls
from warploom.machine.reference.splits import Splits
from warploom.machine.services import Services
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.program.requests.tensor_memory import queue_words
from warploom.ptx.ir import Space
from warploom.simt.schedule_layout import ISSUED, Words
from warploom.simt.warp_table import Table

Bytes = npt.NDArray[np.uint8]


class Listener(Protocol):
    """Is told what happens, as it happens."""

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        """Hear that a warp executes an instruction, in the lanes of `mask`; nothing of it is done
        yet."""
        ...

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        """Hear that a warp's instruction reaches into memory; the access is legal and not done
        yet."""
        ...


@runtime_checkable
class Chooser(Listener, Protocol):
    """Is told what happens, and chooses who has each turn."""

    def choose(self, able: Sequence[WarpId]) -> WarpId | None:
        """Return which of the warps that can run has the next turn; None leaves it to the
        schedule. Where that has to decide, it has done so: `able` is its choice alone."""
        ...


class Sanitizer(Protocol):
    """Checks what happens, and may keep lanes from memory that they must not reach."""

    def admitted(self, warp: Warp, wanted: AttemptedAccess) -> int:
        """Hear that a warp's instruction is about to reach into memory; returns the lanes that
        may."""
        ...

    def arrives(self, warp: Warp, instruction: int, mask: int, number: int, threads: int) -> None:
        """Lanes come to barrier `number`, which awaits so many threads (0: all)."""
        ...

    def passes(self, warp: Warp, instruction: int, mask: int) -> None:
        """Lanes execute an instruction that is neither of these."""
        ...

    def copies(self, warp: Warp, instruction: int, mask: int, copies: TensorCopies) -> None:
        """Lanes begin copies of tensors."""
        ...

    def tensor_memory(self, warp: Warp, instruction: int, mask: int, work: TensorWork) -> None:
        """Lanes begin a `tcgen05`."""
        ...

    def texels(self, warp: Warp, instruction: int, mask: int, work: TexelWork) -> None:
        """Lanes are about to access a texture or a surface."""
        ...


@dataclass(frozen=True, slots=True)
class TensorCopies:
    """The operands of `asynchronous.issue.tensor_copies`: a request, the operands of the lanes in
    rows, the words that it works with, and the allocations."""

    request: int
    rows: Words
    scratch: Words
    table: AllocationTable


@dataclass(frozen=True, slots=True)
class TensorWork:
    """The operands of `asynchronous.issue.tensor_memory`: a request, the operands of the lanes in
    rows, and the words that it works with."""

    request: int
    rows: Words
    scratch: Words


@dataclass(frozen=True, slots=True)
class TexelWork:
    """The operands of `texture.requests`: a request, the operands of the lanes in rows, and
    the words that it works with."""

    request: int
    rows: npt.NDArray[np.uint64]
    scratch: Words


@dataclass(frozen=True, slots=True)
class AttemptedAccess:
    """Lanes that want to reach into one space, each at its address there; `data` are the bytes of
    their operands: all lanes' of one element, then those of the next."""

    instruction: int
    space: Space
    op: str
    size: int
    addresses: Mapping[int, int]
    data: bytes


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """Lanes of a warp that reach into one space: `op` (load, store, atomic) on `size` bytes each.

    `addresses` and `found` hold, for each of `lanes`, where in the space, and the bytes there
    before the access.
    """

    instruction: int
    space: Space
    op: str
    size: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    found: tuple[bytes, ...]


@dataclass
class LaunchState:
    """One launch: what runs, on what memory, and what has been counted."""

    program: Program
    launch: Launch
    memory: DeviceMemory
    tally: Tally
    rows: dict[tuple[int, Space], int]
    rules: AccessRules
    plan: Words
    slots: Words
    caches: Words
    states: Words
    tables: Words
    listener: Listener | None = None
    sanitizer: Sanitizer | None = None
    observer: ObserverCalls | None = None
    issued: int = 0

    @cached_property
    def queue(self) -> npt.NDArray[np.int64]:
        """Asynchronous copies that are not complete (`asynchronous.issue.queue`)."""
        return np.zeros(queue_words(self.program.has_tensor_memory), np.int64)

    @cached_property
    def held(self) -> npt.NDArray[np.int64]:
        """Copies of lanes that are not complete (`asynchronous.late_copies`)."""
        return np.zeros(LIST_WORDS, np.int64)

    @cached_property
    def services(self) -> Services:
        """Returns what the host does for the kernel."""
        return Services(self.program, self.launch, self.memory)

    def issue(self, instruction: int, active: int, on: int) -> None:
        """Count a warp instruction; raises InstructionLimit where the launch may have no more, and
        LaunchCancelled where it should stop."""
        if self.launch.cancellation is not None:
            self.launch.cancellation.check()
        if instruction in self.program.hidden:
            return
        limit = self.launch.max_instructions
        if limit is not None and self.issued >= limit:
            raise limit_error(self.program, self.launch)
        self.issued += 1
        self.tally.warps[instruction] += 1
        self.tally.threads[instruction] += active.bit_count()
        self.tally.threads_on[instruction] += on.bit_count()


@dataclass
class ThreadBlock:
    """One block: its number in the grid, its shared memory, and that of all blocks of its cluster,
    in which it is the one at `rank`."""

    run: LaunchState
    number: int
    shared: Bytes
    cluster: Bytes
    rank: int


@dataclass
class Warp:
    """One warp: its place in the block, its control state, its registers and private memory.

    `next` is the instruction that it executes next, `used` how many it has in this turn; `local`
    and `frame` have a row for each lane. `state` is its row of the schedule.
    """

    block: ThreadBlock
    number: int
    splits: Splits
    state: Words
    registers: dict[str, Values]
    specials: dict[str, Values]
    local: Bytes
    frame: Bytes
    next: int = 0
    used: int = 0
    failed_wait: bool = False
    """Whether lanes have waited in vain for a phase of an mbarrier in this turn."""
    in_flight: deque[Any] = field(default_factory=deque[Any])
    """Products of its warp group that are not complete (`machine.reference.warp_group`)."""
    group: int = 0
    """The number of the group that such products join."""
    interrupted: dict[int, int] = field(default_factory=dict[int, int])
    """Where lanes go on that were interrupted, by their mask."""

    @property
    def run(self) -> LaunchState:
        return self.block.run

    @property
    def size(self) -> int:
        """Returns how many lanes it has."""
        return self.run.launch.warp_size

    @property
    def clock(self) -> int:
        """Returns how many instructions it had issued before this one."""
        return int(self.state[ISSUED]) + self.used - 1

    @property
    def existing(self) -> int:
        """Return the lanes that have a thread; in a block's last warp they may be few."""
        left = self.run.launch.threads_per_block - self.number * self.size
        return (1 << min(left, self.size)) - 1

    @property
    def level(self) -> int:
        """Returns how many calls deep the running lanes are (`program.calls`)."""
        depth = self.run.program.depth
        if depth is None:
            return 0
        mask = self.splits.active
        return int(self.registers[depth.name][(mask & -mask).bit_length() - 1])


def new_block(run: LaunchState, number: int, cluster: Bytes) -> ThreadBlock:
    """Return a block at its start: shared memory, its part of the cluster's, is zero."""
    launch, size = run.launch, all_shared_bytes(run.program, run.launch)
    rank = launch.rank_of(number)
    first = rank * shared_stride(run.program, launch)
    end = first + shared_stride(run.program, launch)
    if run.program.has_tensor_memory:
        # Columns of tensor memory are cleared when they are allocated.
        end -= LANES * LANE_BYTES
    cluster[first:end] = 0
    return ThreadBlock(run, number, cluster[first : first + size], cluster, rank)


def new_cluster(run: LaunchState) -> Bytes:
    """Return the shared memory of the blocks of a cluster."""
    size = run.launch.cluster_blocks * shared_stride(run.program, run.launch)
    return np.zeros(max(size, 1), np.uint8)


def new_warp(block: ThreadBlock, number: int, state: Words, table: Table) -> Warp:
    """Return a warp at its start: registers and private memory are zero."""
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
    """Return the special registers of a warp (PTX ISA, "Special Registers")."""
    launch = block.run.launch
    lanes = range(launch.warp_size)

    def same(value: int) -> Values:
        return splat(value, U32, launch.warp_size)

    threads = [launch.thread_index(warp, lane) for lane in lanes]
    values = {f"%tid.{p}": collect((t[i] for t in threads), U32) for i, p in enumerate("xyz")}
    for name, shape in (
        ("%ntid", launch.block),
        ("%ctaid", unravel(block.number, launch.grid)),
        ("%nctaid", launch.grid),
        ("%clusterid", _quotients(unravel(block.number, launch.grid), launch.cluster)),
        ("%cluster_ctaid", _rests(unravel(block.number, launch.grid), launch.cluster)),
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
        "%smid": same(launch.sm_of(block.number)),
        "%gridid": splat(0, U64, launch.warp_size),
    }


def _quotients(index: Dim3, sizes: Dim3) -> list[int]:
    return [n // size for n, size in zip(index, sizes, strict=True)]


def _rests(index: Dim3, sizes: Dim3) -> list[int]:
    return [n % size for n, size in zip(index, sizes, strict=True)]
