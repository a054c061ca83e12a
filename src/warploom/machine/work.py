"""What a launch of compiled code works with: its arrays, and the environment that names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.codegen.environment import MEMO_STEP, NO_STEP, ROW_WIDTH, CountLayout, Slot
from warploom.codegen.jit import CompiledKernel
from warploom.codegen.places import local_stride
from warploom.isa.special import LAUNCH_WIDE
from warploom.machine.common import common_cost
from warploom.machine.desk import Desk
from warploom.machine.launch import (
    WARP_SIZE,
    Launch,
    all_shared_bytes,
    launch_values,
)
from warploom.machine.memory import DeviceMemory
from warploom.machine.services import Services
from warploom.rules import plan_words
from warploom.rules.fields import EXAMPLE_COST, TRANSACTIONS

Words = npt.NDArray[np.int64]

NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Work:
    """The arrays of a launch, or of the part of it that one worker has: the blocks from the first
    of `blocks` up to but not including its last. `kept` holds what only the environment points to.
    """

    kernel: CompiledKernel
    launch: Launch
    memory: DeviceMemory
    blocks: range
    environment: Words
    counts: Words
    rows: Words
    states: Words
    tables: Words
    plan: Words
    slots: Words
    desk: Desk
    kept: tuple[object, ...]

    @classmethod
    def prepare(
        cls,
        kernel: CompiledKernel,
        launch: Launch,
        memory: DeviceMemory,
        caches: Words,
        blocks: range,
    ) -> Work:
        """What a launch starts from; `caches` are the counted ones (`rules.caches`)."""
        plan = launch.schedule.plan(launch, kernel.program.exit)
        plan[plan_words.NEXT_BLOCK], plan[plan_words.BLOCKS] = blocks.start, blocks.stop
        arrays = _arrays(kernel, launch, plan)
        table = memory.table()
        shared = {
            Slot.STARTS_AT: table.starts,
            Slot.ENDS_AT: table.ends,
            Slot.FLAGS_AT: table.flags,
            Slot.HIERARCHY_AT: caches,
            Slot.TEXTURES_AT: memory.textures.table(),
        }
        desk = Desk(Services(kernel.program, launch, memory), arrays[Slot.CACHE_AT])
        environment = np.zeros(len(Slot), np.int64)
        for slot, value in _values(kernel, launch).items():
            environment[slot] = value
        environment[Slot.ALLOCATIONS], environment[Slot.SERVICE_AT] = table.count, desk.address
        environment[Slot.BLOCKS_DONE] = blocks.start
        for slot, array in (*arrays.items(), *shared.items()):
            environment[slot] = int(array.ctypes.data)
        for slot in (Slot.SHARED_AT, Slot.LOCAL_AT, Slot.CONTEXTS_AT, Slot.STATES_AT):
            environment[slot] = environment[Slot[slot.name.replace("_AT", "_BASE")]]
        desk.environment = environment
        contexts = arrays[Slot.CONTEXTS_BASE].view(np.int64)
        return cls(
            kernel,
            launch,
            memory,
            blocks,
            environment,
            counts=np.zeros(max(1, kernel.layout.size), np.int64),
            rows=_access_rows(kernel.layout),
            states=arrays[Slot.STATES_BASE].reshape(-1, plan_words.STATE_WORDS),
            tables=contexts.reshape(-1, kernel.context_bytes // 8),
            plan=plan,
            slots=arrays[Slot.SLOTS_AT],
            desk=desk,
            kept=(*arrays.values(), *shared.values(), table),
        )

    def call(self) -> int:
        """Run the blocks in this thread; gives a Status."""
        arrays = (self.environment, self.counts, self.rows)
        places = (int(a.ctypes.data) for a in arrays)
        return self.kernel.run(*places, self.blocks.start, self.blocks.stop)

    @property
    def faulted(self) -> int:
        """The instruction at which a fault was found."""
        return int(self.environment[Slot.FAULT_INSTRUCTION])

    def unfinished(self) -> dict[int, Words]:
        """The tables of the warps that have not ended, by their number in the launch."""
        warps = self.launch.warps_per_block
        return {
            block * warps + warp: self.tables[slot * warps + warp]
            for slot, block in enumerate(self.slots.tolist())
            if block >= 0
            for warp in range(warps)
            if self.states[slot * warps + warp][plan_words.STATUS] != plan_words.ENDED
        }


def _arrays(kernel: CompiledKernel, launch: Launch, plan: Words) -> Mapping[Slot, npt.NDArray[Any]]:
    """What the environment points to, of this worker's own."""
    program, warps = kernel.program, launch.warps_per_block
    slots = int(plan[plan_words.SLOTS]) if kernel.suspends else 1
    specials = launch_values(program, launch)
    return {
        Slot.PARAMETERS_AT: _copied(launch.parameters),
        Slot.GLOBALS_AT: np.array(launch.globals, np.uint64),
        Slot.SHARED_BASE: _aligned(slots * _shared_stride(kernel, launch)),
        Slot.LOCAL_BASE: _aligned(slots * local_stride(program.local_bytes) * warps),
        Slot.CONTEXTS_BASE: _aligned(slots * kernel.context_bytes * warps),
        Slot.STATES_BASE: _aligned(8 * slots * warps * plan_words.STATE_WORDS).view(np.int64),
        Slot.PLAN_AT: plan,
        Slot.SLOTS_AT: np.full(slots, -1, np.int64),
        Slot.SPECIALS_AT: np.array([specials[name] for name in LAUNCH_WIDE], np.uint32),
        Slot.TIDS_AT: thread_indices(launch),
        Slot.CACHE_AT: np.zeros(2 * max(1, len(kernel.layout.rows)), np.uint64),
    }


def _values(kernel: CompiledKernel, launch: Launch) -> Mapping[Slot, int]:
    """The numbers of an environment that are no addresses."""
    warps = launch.warps_per_block
    return {
        Slot.BUDGET: NO_LIMIT if launch.max_instructions is None else launch.max_instructions,
        Slot.BLOCK: -1,
        Slot.SHARED_STRIDE: _shared_stride(kernel, launch),
        Slot.SHARED_BYTES: all_shared_bytes(kernel.program, launch),
        Slot.CONTEXT_BYTES: kernel.context_bytes,
        Slot.THREADS: launch.threads_per_block,
        Slot.WARPS: warps,
        Slot.LOCAL_BYTES: local_stride(kernel.program.local_bytes) * warps,
        **dict(zip((Slot.NTID_X, Slot.NTID_Y, Slot.NTID_Z), launch.block, strict=True)),
        **dict(zip((Slot.NCTAID_X, Slot.NCTAID_Y, Slot.NCTAID_Z), launch.grid, strict=True)),
    }


def _shared_stride(kernel: CompiledKernel, launch: Launch) -> int:
    """Bytes from one block's shared memory to the next one's."""
    return -(-all_shared_bytes(kernel.program, launch) // 128) * 128


def _access_rows(layout: CountLayout) -> Words:
    """The rows in which accesses are counted, before the first."""
    rows = np.zeros((max(1, len(layout.rows)), ROW_WIDTH), np.int64)
    for number, row in enumerate(layout.rows):
        cost = common_cost(layout.program, row, layout.rules)
        rows[number, EXAMPLE_COST] = cost[TRANSACTIONS]
        rows[number, MEMO_STEP] = NO_STEP
    return rows


def thread_indices(launch: Launch) -> npt.NDArray[np.uint32]:
    """x, y and z of every thread of a block, shape (3, warps * 32), x fastest."""
    x, y, z = launch.block
    table = _aligned(3 * launch.warps_per_block * WARP_SIZE * 4).view(np.uint32).reshape(3, -1)
    linear = np.arange(table.shape[1], dtype=np.uint32)
    table[0], table[1], table[2] = linear % x, linear // x % y, linear // (x * y) % max(1, z)
    return table


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    """Zeros at an address that 128 divides."""
    raw = np.zeros(size + 128, np.uint8)
    start = -int(raw.ctypes.data) % 128
    return raw[start : start + size]


def _copied(data: bytes) -> npt.NDArray[np.uint8]:
    array = _aligned(len(data))
    array[:] = np.frombuffer(data, np.uint8)
    return array
