"""One launch of a kernel, as both machines receive it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.tensor_memory.layout import BLOCK_BYTES
from warploom.core.errors import Dim3
from warploom.machine.cancellation import Cancellation
from warploom.program.effects.clusters import cancels_launches
from warploom.program.program import Program
from warploom.simt import schedule_layout
from warploom.simt.placement import sm_of

WARP_SIZE = 32
"""Lanes of a warp, where a device does not say otherwise."""

INDEPENDENT_SINCE = (7, 0)
"""The compute capability from which each thread has its own program counter (CUDA C++ Programming
Guide, "Independent Thread Scheduling")."""

POLICIES = ("converge", "fair", "random", "adversarial")
"""The names of the policies, in the order of their numbers in `simt.split_policy`."""


Who = tuple[int, int]
"""A warp of a launch: its block and its number in it."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order that the architecture leaves open: who goes first (`policy`, one of POLICIES, with
    `seed`).

    `independent` says whether each thread has its own program counter (compute capability 7.0 and
    later); `resident_blocks` how many blocks the device holds at once, `sms` how many SMs it has.
    On the reference machine a warp gives up its turn each time before it executes one of the
    instructions `interrupts`, and `turns` name the warps that have the first turns.
    """

    policy: str = "converge"
    seed: int = 0
    independent: bool = True
    resident_blocks: int = 1024
    interrupts: frozenset[int] = frozenset()
    turns: tuple[Who, ...] = ()
    sms: int = 1

    @property
    def needs_reference(self) -> bool:
        """Returns whether only the reference machine has such an order."""
        return bool(self.interrupts or self.turns)

    @property
    def shuffles(self) -> bool:
        """Returns whether warps and blocks go in another order than that of their numbers."""
        return self.policy != "converge"

    @property
    def mixes(self) -> bool:
        """Returns whether lanes that part take turns, instead of one side after the other."""
        return self.independent and self.policy != "converge"

    def plan(self, launch: Launch, program: Program) -> npt.NDArray[np.int64]:
        """Return the plan from which both machines schedule (`simt.scheduling`)."""
        plan, size = np.zeros(schedule_layout.LAYOUT_WORDS, np.int64), launch.cluster_blocks
        values = {
            schedule_layout.POLICY: POLICIES.index(self.policy),
            schedule_layout.SEED: self.seed,
            schedule_layout.INDEPENDENT: self.independent,
            schedule_layout.WARPS: launch.warps_per_block,
            schedule_layout.THREADS: launch.threads_per_block,
            schedule_layout.BLOCKS: launch.blocks,
            schedule_layout.SLOTS: max(
                size, min(self.resident_blocks, launch.blocks) // size * size
            ),
            schedule_layout.EXIT: program.exit,
            schedule_layout.CANCELS: cancels_launches(program),
            schedule_layout.LAUNCH_REGISTERS: launch.registers,
            schedule_layout.WARP_SIZE: launch.warp_size,
            schedule_layout.CLUSTER: launch.cluster_blocks,
            schedule_layout.CLUSTER_X: launch.cluster[0],
            schedule_layout.CLUSTER_Y: launch.cluster[1],
            schedule_layout.GRID_X: launch.grid[0],
            schedule_layout.GRID_Y: launch.grid[1],
        }
        for word, value in values.items():
            plan[word] = value
        return plan


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch: all that a machine needs beside the program and the memory.

    `parameters` is the kernel's parameter block, laid out as `Program.slots` says. `globals` are
    the addresses of `Program.globals`, in that order, and behind them, where the program has a
    place for `PARAMETERS`, that of the parameters in device memory. `dynamic_shared_bytes` come on
    top of the program's own. `max_instructions` bounds warp instructions; None means no bound.
    `output` takes what the kernel prints; None means the standard output. `grid_workspace` is the
    address of the memory in which the blocks of a cooperative launch wait for each other. Only the
    reference machine runs warps of another `warp_size` than 32. `cancellation` is what stops the
    launch from another thread, where something can. `cluster` is how many blocks a cluster has
    along each axis; `explicit_cluster`: the launch or the kernel has named it. `registers` are
    those of a thread that the kernel's directives give it, 0 where they give none.
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
    cancellation: Cancellation | None = None
    cluster: Dim3 = (1, 1, 1)
    explicit_cluster: bool = False
    registers: int = 0

    def filled(
        self,
        parameters: bytes,
        globals: tuple[int, ...],
        grid_workspace: int = 0,
        cancellation: Cancellation | None = None,
    ) -> Launch:
        """Returns this launch with its arguments; every launch needs it, and `replace` is slow."""
        return Launch(
            self.grid,
            self.block,
            parameters,
            globals,
            self.dynamic_shared_bytes,
            self.max_instructions,
            self.schedule,
            self.output,
            self.cooperative,
            grid_workspace,
            self.warp_size,
            cancellation,
            self.cluster,
            self.explicit_cluster,
            self.registers,
        )

    @property
    def configuration(self) -> tuple[object, ...]:
        """Returns all in which a launch may differ from another one of its kernel, beside its
        arguments, its output and what may stop it."""
        return (
            self.grid,
            self.block,
            self.dynamic_shared_bytes,
            self.max_instructions,
            self.schedule,
            self.grid_workspace,
            self.cluster,
            self.explicit_cluster,
            self.registers,
        )

    @property
    def cluster_blocks(self) -> int:
        """Return the blocks of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    def rank_of(self, block: int) -> int:
        """Return the rank in its cluster of a block of the grid."""
        (x, y, z), (wide, high, deep) = self.block_index(block), self.cluster
        return x % wide + wide * (y % high + high * (z % deep))

    def sm_of(self, block: int) -> int:
        """Return the SM of a block of the grid (`simt.placement`)."""
        (x, y, z), (wide, high, deep) = self.block_index(block), self.cluster
        across, down = self.grid[0] // wide, self.grid[1] // high
        cluster = x // wide + across * (y // high + down * (z // deep))
        return sm_of(cluster, self.rank_of(block), self.cluster_blocks, self.schedule.sms)

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        return -(-self.threads_per_block // self.warp_size)

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def block_index(self, linear: int) -> Dim3:
        """Block number `linear` of the grid as (x, y, z), x fastest."""
        return unravel(linear, self.grid)

    def thread_index(self, warp: int, lane: int) -> Dim3:
        """Return a lane's thread in the block as (x, y, z), x fastest (CUDA guide, "Thread
        Hierarchy")."""
        return unravel(warp * self.warp_size + lane, self.block)


def shared_bytes(program: Program, launch: Launch) -> int:
    """Bytes of shared memory that a block has; dynamic memory may begin after a gap."""
    if launch.dynamic_shared_bytes == 0:
        return program.shared_bytes
    return program.dynamic_shared_offset + launch.dynamic_shared_bytes


def all_shared_bytes(program: Program, launch: Launch) -> int:
    """Bytes of shared memory that a block can reach: its own, then the system's."""
    own = shared_bytes(program, launch)
    if not program.reserved_shared_bytes:
        return own
    return _reserved_start(own) + program.reserved_shared_bytes


def shared_stride(program: Program, launch: Launch) -> int:
    """Bytes from the shared memory of one block to that of the next; tensor memory is between
    them."""
    own = -(-all_shared_bytes(program, launch) // 128) * 128
    return own + (BLOCK_BYTES if program.has_tensor_memory else 0)


def _reserved_start(own: int) -> int:
    """Returns where the system's part of shared memory begins, behind a block's own."""
    return -(-own // 128) * 128


def launch_values(program: Program, launch: Launch) -> dict[str, int]:
    """Return the special registers of `LAUNCH_WIDE`."""
    own, size = shared_bytes(program, launch), program.reserved_shared_bytes
    start = _reserved_start(own)
    return {
        "%nsmid": launch.schedule.sms,
        "%nwarpid": launch.warps_per_block,
        "%dynamic_smem_size": launch.dynamic_shared_bytes,
        "%total_smem_size": own,
        "%aggr_smem_size": own + size,
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
    }


def unravel(linear: int, shape: Dim3) -> Dim3:
    """Return the (x, y, z) of a linear index, x fastest."""
    x, rest = linear % shape[0], linear // shape[0]
    return x, rest % shape[1], rest // shape[1]
