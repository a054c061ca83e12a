"""Describes one launch of a kernel for both machines: grid, block, arguments, schedule and limits.

Both the compiled engine and the reference machine execute a `Launch`, and derive from it the sizes
of shared memory and the values of launch-wide special registers. Converting what the user passes
into parameter bytes is left to `host`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from warploom.asynchronous.tensor_memory.layout import BLOCK_BYTES
from warploom.core.errors import Dim3
from warploom.core.lazy import cached_property
from warploom.isa.kinds import Needs
from warploom.isa.special import ND_RANGE
from warploom.machine.placement import SlotPlacement
from warploom.machine.turn import Cancellation
from warploom.program.program import Program
from warploom.simt.placement import sm_of
from warploom.simt.schedule_layout import Plan, Words
from warploom.simt.warp_table import table_words

WARP_SIZE = 32
"""Lanes of a warp, where a device does not say otherwise."""

INDEPENDENT_SINCE = (7, 0)
"""The compute capability from which each thread has its own program counter (CUDA C++ Programming
Guide, "Independent Thread Scheduling")."""

ORDERS = ("blocks", "any")
"""What several workers may leave: what blocks leave that run in the order of their numbers, or
what blocks leave in any order, side by side."""

POLICIES = ("converge", "fair", "random", "adversarial")
"""The names of the scheduling policies, in the order of their numbers in `simt.split_policy`."""


WarpId = tuple[int, int]
"""Identifies a warp of a launch: (linear thread block number, warp number in the block)."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The execution order where the architecture leaves it open: `policy`, one of POLICIES, with
    its `seed`.

    `independent` is true if each thread has its own program counter (compute capability 7.0 and
    later); `resident_blocks` is how many thread blocks the device holds at once, `sms` its number
    of SMs. On the reference machine a warp yields each time before it executes one of the
    instructions `interrupts` (indices in the program), and the first turns of the launch go to the
    warps `turns`, one turn for each entry. `any_order`: on the compiled engine several workers run
    thread blocks whether or not they may conflict, and so leave any result that the architecture
    allows.
    """

    policy: str = "converge"
    seed: int = 0
    independent: bool = True
    resident_blocks: int = 1024
    interrupts: frozenset[int] = frozenset()
    turns: tuple[WarpId, ...] = ()
    sms: int = 1
    any_order: bool = False

    @property
    def needs_reference(self) -> bool:
        """Returns true if only the reference machine can run this order: it has `interrupts` or
        `turns`."""
        return bool(self.interrupts or self.turns)

    @property
    def shuffles(self) -> bool:
        """Returns true if a policy other than the default, `converge`, chooses the order of warps,
        thread blocks and lanes."""
        return self.policy != "converge"

    @property
    def interleaves_paths(self) -> bool:
        """Returns true if the paths of a divergent branch interleave: with independent threads
        under a policy other than `converge`; else one path runs to the reconvergence point before
        the other starts."""
        return self.independent and self.policy != "converge"

    def plan(self, launch: Launch, program: Program) -> Plan:
        """Returns a new array of the scheduler's state before a launch, which both machines read
        and change (`simt.scheduling`), indexed by `simt.schedule_layout`. It has policy and seed;
        whether threads are independent; sizes of grid, block, cluster and warp; the exit block;
        registers; the words of a warp's state table; whether the program cancels launches of
        blocks; and the number of slots for resident blocks (`slots`). Other words are 0."""
        plan, size = Plan(np.zeros(Plan.WORDS, np.int64), 0), launch.cluster_blocks
        plan.policy, plan.seed = POLICIES.index(self.policy), self.seed
        plan.independent, plan.exit = self.independent, program.exit
        plan.warps, plan.threads = launch.warps_per_block, launch.threads_per_block
        plan.blocks, plan.warp_size = launch.blocks, launch.warp_size
        plan.slots = plan.available = self.slots(launch)
        plan.by_multiprocessor = program.shows_multiprocessor
        plan.cancels = Needs.LAUNCH_CANCELLATION in program.needs
        plan.launch_registers, plan.table_stride = launch.registers, table_words(launch.warp_size)
        plan.cluster, (plan.cluster_x, plan.cluster_y, _) = size, launch.cluster
        plan.grid_x, plan.grid_y, _ = launch.grid
        return plan

    def slots(self, launch: Launch) -> int:
        """Returns the number of slots for resident blocks: as many as the device holds or the
        launch has. A cluster is resident as a whole or not at all, on neighboring SMs: in whole
        clusters, at least one, and none on SMs at the end that are too few for a cluster."""
        size = launch.cluster_blocks
        held = self.resident_blocks
        if size <= self.sms:
            held = held // self.sms * (self.sms // size * size) or held
        return max(size, min(held, launch.blocks) // size * size)


NdRange = tuple[int, int, int, int]
"""The global offset of an OpenCL launch along x, y and z, and its number of dimensions (0: not
stated)."""

NO_ND_RANGE: NdRange = (0, 0, 0, 0)


class LaunchConfiguration(tuple[object, ...]):
    """The key of launches of a kernel that share code and launch template: a tuple whose hash is
    computed once."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        """Returns the hash of the tuple."""
        return self._hash


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: everything that a machine needs beside the program and the memory.

    `parameters` is the kernel's parameter block, laid out as `Program.slots` states. `globals` are
    the addresses of `Program.globals`, in that order, followed, if the program has a slot for
    `PARAMETERS`, by the address of the parameters in device memory. `dynamic_shared_bytes` are
    added to the program's own shared memory. `max_instructions` limits the warp instructions; None
    means no limit. `output` receives the text that the kernel prints; None means standard output.
    `grid_workspace` is the address of the memory in which the thread blocks of a cooperative launch
    synchronize. Only the reference machine runs warps of a `warp_size` other than 32.
    `cancellation` lets another thread stop the launch. `cluster` is the cluster size in blocks
    along each axis; `explicit_cluster` is true if the launch or the kernel sets it. `registers` are
    those that the kernel's directives give a thread, 0 if they give none. `nd_range` is what an
    OpenCL launch has beside its sizes. `placement` has the slots of a launch that begins beside
    others; None if it has all.
    """

    grid: Dim3
    block: Dim3
    parameters: bytes
    globals: tuple[int, ...] = ()
    dynamic_shared_bytes: int = 0
    max_instructions: int | None = None
    schedule: Schedule = Schedule()
    output: Callable[[str], object] | None = None
    cooperative: bool = False
    grid_workspace: int = 0
    warp_size: int = WARP_SIZE
    cancellation: Cancellation = field(default_factory=Cancellation, compare=False)
    cluster: Dim3 = (1, 1, 1)
    explicit_cluster: bool = False
    registers: int = 0
    nd_range: NdRange = NO_ND_RANGE
    placement: SlotPlacement | None = field(default=None, compare=False)

    def filled(
        self,
        parameters: bytes,
        globals: tuple[int, ...],
        grid_workspace: int = 0,
        cancellation: Cancellation | None = None,
    ) -> Launch:
        """Returns a copy of this launch with these four fields, where they are not passed 0 and a
        cancellation of its own; the other fields are retained."""
        own: dict[str, Any] = {"parameters": parameters, "globals": globals}
        own["cancellation"] = cancellation or Cancellation()
        if grid_workspace:
            return replace(self, grid_workspace=grid_workspace, **own)
        # `dataclasses.replace` is slow, and every launch makes a copy.
        filled = object.__new__(Launch)
        filled.__dict__.update(self.__dict__, configuration=self.configuration, **own)
        return filled

    @cached_property
    def configuration(self) -> LaunchConfiguration:
        """Returns a key of grid, block, dynamic shared memory, instruction limit, schedule, grid
        workspace, cluster, registers and ND-range; launches of a kernel with equal keys share code
        and launch template. Arguments, output and cancellation are not in it."""
        return LaunchConfiguration(
            (
                self.grid,
                self.block,
                self.dynamic_shared_bytes,
                self.max_instructions,
                self.schedule,
                self.grid_workspace,
                self.cluster,
                self.explicit_cluster,
                self.registers,
                self.nd_range,
            )
        )

    @property
    def cluster_blocks(self) -> int:
        """Returns the number of thread blocks in a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    def rank_of(self, block: int) -> int:
        """Returns the rank (linear index, x fastest) that a thread block, by its linear number in
        the grid, has in its cluster (`%cluster_ctarank`)."""
        (x, y, z), (wide, high, deep) = self.block_index(block), self.cluster
        return x % wide + wide * (y % high + high * (z % deep))

    def sm_of(self, block: int) -> int:
        """Returns the number of the SM that runs a thread block, by its linear number in the grid,
        if blocks begin and end in order (`simt.placement`)."""
        (x, y, z), (wide, high, deep) = self.block_index(block), self.cluster
        across, down = self.grid[0] // wide, self.grid[1] // high
        cluster = x // wide + across * (y // high + down * (z // deep))
        position = cluster * self.cluster_blocks + self.rank_of(block)
        return self.sm_of_slot(position % self.available_slots)

    @property
    def available_slots(self) -> int:
        """Returns the number of slots for resident blocks that other kernels leave to the launch
        (`Schedule.slots`)."""
        slots = self.schedule.slots(self)
        return slots if self.placement is None else min(slots, len(self.placement.sms))

    def sms_of_slots(self) -> Words:
        """Returns the SM to which each available slot belongs."""
        return np.array([self.sm_of_slot(slot) for slot in range(self.available_slots)], np.int64)

    def sm_of_slot(self, slot: int) -> int:
        """Returns the SM to which an available slot belongs."""
        if self.placement is not None:
            return self.placement.sms[slot]
        return sm_of(slot, self.cluster_blocks, self.schedule.sms)

    @property
    def threads_per_block(self) -> int:
        """Returns the number of threads in a thread block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        """Returns the number of warps in a thread block, of which the last may be partly filled."""
        return -(-self.threads_per_block // self.warp_size)

    @property
    def blocks(self) -> int:
        """Returns the number of thread blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def block_index(self, linear: int) -> Dim3:
        """Returns the index (x, y, z) of thread block `linear` of the grid, x fastest."""
        return unravel(linear, self.grid)

    def thread_index(self, warp: int, lane: int) -> Dim3:
        """Returns the index (x, y, z) of a lane's thread in its block, x fastest (CUDA guide,
        "Thread Hierarchy")."""
        return unravel(warp * self.warp_size + lane, self.block)


def shared_bytes(program: Program, launch: Launch) -> int:
    """Returns the bytes of shared memory of a thread block: the program's static ones and, if the
    launch has any, its dynamic ones, which begin at the program's `dynamic_shared_offset` (static
    bytes plus an alignment gap)."""
    if launch.dynamic_shared_bytes == 0:
        return program.shared_bytes
    return program.dynamic_shared_offset + launch.dynamic_shared_bytes


def all_shared_bytes(program: Program, launch: Launch) -> int:
    """Returns the bytes of shared memory that a thread block can address: its own, then, if the
    program uses it, from the next multiple of 128 on the part that the system reserves."""
    block_bytes = shared_bytes(program, launch)
    if not program.reserved_shared_bytes:
        return block_bytes
    return _reserved_start(block_bytes) + program.reserved_shared_bytes


def shared_stride(program: Program, launch: Launch) -> int:
    """Returns the distance in bytes between the shared memories of consecutive thread blocks: all
    addressable bytes, rounded up to 128, plus the block's tensor memory if the program uses it."""
    block_bytes = -(-all_shared_bytes(program, launch) // 128) * 128
    return block_bytes + (BLOCK_BYTES if program.has_tensor_memory else 0)


def _reserved_start(block_bytes: int) -> int:
    """Returns the offset of the system's part of shared memory, the end of a block's own bytes
    rounded up to 128."""
    return -(-block_bytes // 128) * 128


def launch_values(program: Program, launch: Launch) -> dict[str, int]:
    """Returns, by name, the values of the special registers of `isa.special.LAUNCH_WIDE`: those
    that are equal in all threads of a launch, without the dimensions of grid and block. The two
    words of `%envreg1` and `%envreg2` are the address of the workspace of grid-wide barriers; the
    second reserved range of shared memory begins in the middle of the reserved bytes."""
    block_bytes, size = shared_bytes(program, launch), program.reserved_shared_bytes
    start = _reserved_start(block_bytes)
    return {
        "%nsmid": launch.schedule.sms,
        "%nwarpid": launch.warps_per_block,
        "%dynamic_smem_size": launch.dynamic_shared_bytes,
        "%total_smem_size": block_bytes,
        "%aggr_smem_size": block_bytes + size,
        "%reserved_smem_offset_begin": start,
        "%reserved_smem_offset_end": start + size,
        "%reserved_smem_offset_cap": size,
        "%reserved_smem_offset_0": start,
        "%reserved_smem_offset_1": start + size // 2,
        "%is_explicit_cluster": int(launch.explicit_cluster),
        "%cluster_nctarank": launch.cluster_blocks,
        **{f"%cluster_nctaid.{p}": n for p, n in zip("xyz", launch.cluster, strict=True)},
        **{
            f"%nclusterid.{p}": n // size
            for p, n, size in zip("xyz", launch.grid, launch.cluster, strict=True)
        },
        "%envreg1": launch.grid_workspace >> 32,
        "%envreg2": launch.grid_workspace & 0xFFFFFFFF,
        **{f"%envreg{i}": n for i, n in zip(ND_RANGE, launch.nd_range, strict=True)},
    }


def unravel(linear: int, shape: Dim3) -> Dim3:
    """Returns the (x, y, z) of a linear index in a grid or block of extents `shape`, x fastest."""
    x, rest = linear % shape[0], linear // shape[0]
    return x, rest % shape[1], rest // shape[1]
