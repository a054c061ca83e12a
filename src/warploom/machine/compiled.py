"""The compiled engine: gives a kernel's machine code its memory, lets it run, reads the counts.

The code runs in a thread of its own while this one waits, so that an interrupt from the keyboard
reaches it: it looks at its environment's STOP every few million instructions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.analysis.program import Program
from warploom.codegen.environment import FULL, ROW_WIDTH, CountLayout, Slot, Status
from warploom.codegen.jit import CompiledKernel, compile_kernel
from warploom.codegen.memory import SPACE_CODES, local_stride
from warploom.core.errors import Allocation
from warploom.devices.catalog import find_device
from warploom.devices.spec import DeviceSpec
from warploom.machine.caches import empty_caches
from warploom.machine.common import STARTS, common_cost
from warploom.machine.deadlock import deadlock_error, waiting_lanes
from warploom.machine.desk import Desk
from warploom.machine.faults import Fault, FaultKind, fault_error, limit_error
from warploom.machine.launch import WARP_SIZE, Launch, Schedule, shared_bytes
from warploom.machine.memory import DeviceMemory
from warploom.machine.services import Services
from warploom.machine.tally import Tally
from warploom.ptx.ir import Space
from warploom.rules import scheduling
from warploom.rules.choice import MemoryOptions, access_rules
from warploom.rules.fields import EXAMPLE_COST, RECORD_WIDTH, TRANSACTIONS
from warploom.rules.patterns import settle_pattern

Words = npt.NDArray[np.int64]

Progress = Callable[[int, int], None]
"""Called now and then while a kernel runs: blocks done, blocks in all."""

NO_LIMIT = 1 << 62
NO_ADDRESSES = np.zeros(32, np.uint64)
POLL_SECONDS = 0.1


class CompiledEngine:
    """Runs programs as machine code; keeps what it compiled."""

    def __init__(
        self, spec: DeviceSpec | None = None, options: MemoryOptions | None = None
    ) -> None:
        self._spec = spec or find_device()
        self._rules = access_rules(self._spec, options)
        self._kernels: dict[tuple[int, bool, bool], CompiledKernel] = {}

    def kernel(self, program: Program, schedule: Schedule) -> CompiledKernel:
        """The machine code of a program, compiled when it is first asked for."""
        key = (id(program), schedule.independent, schedule.shuffles)
        if key not in self._kernels:
            self._kernels[key] = compile_kernel(
                program,
                self._rules,
                independent=schedule.independent,
                mixes=schedule.mixes,
                shuffles=schedule.shuffles,
            )
        return self._kernels[key]

    def launch(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        progress: Progress | None = None,
    ) -> Tally:
        """Run a launch to its end. Raises KernelFault, DeadlockError or InstructionLimit."""
        kernel = self.kernel(program, launch.schedule)
        caches = empty_caches(self._spec, self._rules, program, launch, memory)
        work = _Work.prepare(kernel, launch, memory, caches)
        status = _run(work, progress)
        if status is Status.ENDED:
            return work.tally()
        raise work.error(status)


def _run(work: _Work, progress: Progress | None) -> Status:
    """Run in a thread, waiting for it so that an interrupt can stop it."""
    result: list[int] = []
    thread = threading.Thread(target=lambda: result.append(work.call()), daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            if progress is not None:
                progress(int(work.environment[Slot.BLOCKS_DONE]), work.launch.blocks)
    except BaseException:
        work.environment[Slot.STOP] = 1
        thread.join()
        raise
    return Status(result[0])


@dataclass(frozen=True)
class _Work:
    """One launch's arrays; `kept` holds what only the environment points to."""

    kernel: CompiledKernel
    launch: Launch
    memory: DeviceMemory
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
        cls, kernel: CompiledKernel, launch: Launch, memory: DeviceMemory, caches: Words
    ) -> _Work:
        """What a launch starts from; `caches` are the counted ones (`rules.caches`)."""
        program, warps = kernel.program, launch.warps_per_block
        shared = shared_bytes(program, launch)
        table = memory.table()
        plan = launch.schedule.plan(launch, program.exit)
        slots = int(plan[scheduling.SLOTS]) if kernel.suspends else 1
        shared_stride = (shared + 127) // 128 * 128
        states = _aligned(8 * slots * warps * scheduling.STATE_WORDS).view(np.int64)
        blocks = np.full(slots, -1, np.int64)
        contexts = _aligned(slots * kernel.context_bytes * warps)
        arrays = {
            Slot.PARAMETERS_AT: _copied(launch.parameters),
            Slot.GLOBALS_AT: np.array(launch.globals, np.uint64),
            Slot.SHARED_BASE: _aligned(slots * shared_stride),
            Slot.LOCAL_BASE: _aligned(slots * local_stride(program.local_bytes) * warps),
            Slot.CONTEXTS_BASE: contexts,
            Slot.STATES_BASE: states,
            Slot.PLAN_AT: plan,
            Slot.SLOTS_AT: blocks,
            Slot.TIDS_AT: thread_indices(launch),
            Slot.CACHE_AT: np.zeros(2 * max(1, len(kernel.layout.rows)), np.uint64),
            Slot.STARTS_AT: table.starts,
            Slot.ENDS_AT: table.ends,
            Slot.FLAGS_AT: table.flags,
            Slot.HIERARCHY_AT: caches,
        }
        desk = Desk(Services(program, launch, memory), arrays[Slot.CACHE_AT])
        limit = NO_LIMIT if launch.max_instructions is None else launch.max_instructions
        values = {
            Slot.BUDGET: limit,
            Slot.BLOCK: -1,
            Slot.SHARED_STRIDE: shared_stride,
            Slot.SHARED_BYTES: shared,
            Slot.DYNAMIC_SHARED_BYTES: launch.dynamic_shared_bytes,
            Slot.CONTEXT_BYTES: kernel.context_bytes,
            Slot.ALLOCATIONS: table.count,
            Slot.THREADS: launch.threads_per_block,
            Slot.WARPS: warps,
            Slot.SERVICE_AT: desk.address,
            Slot.LOCAL_BYTES: local_stride(program.local_bytes) * warps,
            **dict(zip((Slot.NTID_X, Slot.NTID_Y, Slot.NTID_Z), launch.block, strict=True)),
            **dict(zip((Slot.NCTAID_X, Slot.NCTAID_Y, Slot.NCTAID_Z), launch.grid, strict=True)),
            **{slot: int(array.ctypes.data) for slot, array in arrays.items()},
        }
        environment = np.zeros(len(Slot), np.int64)
        for slot, value in values.items():
            environment[slot] = value
        for slot in (Slot.SHARED_AT, Slot.LOCAL_AT, Slot.CONTEXTS_AT, Slot.STATES_AT):
            environment[slot] = environment[Slot[slot.name.replace("_AT", "_BASE")]]
        desk.environment = environment
        return cls(
            kernel,
            launch,
            memory,
            environment,
            counts=np.zeros(max(1, kernel.layout.size), np.int64),
            rows=_access_rows(kernel.layout),
            states=states.reshape(-1, scheduling.STATE_WORDS),
            tables=contexts.view(np.int64).reshape(slots * warps, -1),
            plan=plan,
            slots=blocks,
            desk=desk,
            kept=(*arrays.values(), table),
        )

    def call(self) -> int:
        """Run all blocks in this thread; gives a Status."""
        arrays = (self.environment, self.counts, self.rows)
        return self.kernel.run(*(int(a.ctypes.data) for a in arrays), 0, self.launch.blocks)

    def tally(self) -> Tally:
        """The counts, instruction by instruction.

        Raises InstructionLimit where the last instructions passed it.
        """
        program, layout = self.kernel.program, self.kernel.layout
        launched = self.launch.blocks * self.launch.warps_per_block
        tally = Tally.empty(program, launched)
        for block in program.blocks:
            inside = slice(block.start, block.stop)
            tally.warps[inside], tally.threads[inside] = self.counts[
                2 * block.index : 2 * block.index + 2
            ]
        tally.threads_on[:] = tally.threads
        for instruction, at in layout.guarded.items():
            tally.threads_on[instruction] = self.counts[at]
        for instruction, at in layout.branches.items():
            tally.divergent[instruction], tally.reconvergences[instruction] = self.counts[
                at : at + 2
            ]
        for number, row in enumerate(layout.rows):
            settle_pattern(NO_ADDRESSES, 0, 0, self.rows[number])
            tally.records[number] = self.rows[number, :RECORD_WIDTH]
            for start, times in zip(STARTS, self.rows[number, FULL:].tolist(), strict=True):
                if times:
                    cost = common_cost(program, row, layout.rules, start)
                    tally.accesses[number] += times * cost
        limit = self.launch.max_instructions
        if limit is not None and tally.warps.sum() > limit:
            raise self.error(Status.LIMIT)
        return tally

    def error(self, status: Status) -> BaseException:
        """What to raise for a run that did not end."""
        if self.desk.error is not None:
            return self.desk.error
        if status is Status.FAULT:
            return self._fault()
        if status is Status.DEADLOCK:
            return self._deadlock()
        return limit_error(self.kernel.program, self.launch)

    def _fault(self) -> Exception:
        at = {slot: int(self.environment[slot]) for slot in Slot}
        space = {code: space for space, code in SPACE_CODES.items()}[at[Slot.FAULT_SPACE]]
        fault = Fault(
            FaultKind(at[Slot.FAULT_KIND]),
            at[Slot.FAULT_INSTRUCTION],
            at[Slot.BLOCK],
            at[Slot.FAULT_WARP],
            at[Slot.FAULT_LANE],
            at[Slot.FAULT_ADDRESS],
            at[Slot.FAULT_SIZE],
            space,
        )
        nearest = self._own(space) or self.memory.nearest(fault.address)
        return fault_error(fault, self.kernel.program, self.launch, nearest)

    def _own(self, space: Space) -> Allocation | None:
        """The stretch that a space is, where it is the block's or the thread's own."""
        program = self.kernel.program
        shared = shared_bytes(program, self.launch)
        return {
            Space.SHARED: Allocation(0, shared, "the block's shared memory"),
            Space.LOCAL: Allocation(0, program.local_bytes, "the thread's local memory"),
            Space.PARAM: Allocation(0, program.parameter_bytes, "the kernel's parameters"),
        }.get(space)

    def _deadlock(self) -> Exception:
        """Everything that waits in the resident blocks."""
        program, warps = self.kernel.program, self.launch.warps_per_block
        waiting = [
            found
            for slot, block in enumerate(self.slots.tolist())
            if block >= 0
            for warp in range(warps)
            for found in waiting_lanes(
                program,
                block,
                warp,
                self.states[slot * warps + warp],
                self.tables[slot * warps + warp],
            )
        ]
        started = int(self.plan[scheduling.NEXT_BLOCK])
        return deadlock_error(program, self.launch, waiting, started)


def _access_rows(layout: CountLayout) -> Words:
    """The rows in which accesses are counted, before the first."""
    rows = np.zeros((max(1, len(layout.rows)), ROW_WIDTH), np.int64)
    for number, row in enumerate(layout.rows):
        cost = common_cost(layout.program, row, layout.rules)
        rows[number, EXAMPLE_COST] = cost[TRANSACTIONS]
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
