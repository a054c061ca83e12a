"""Checks observers that users write in Python: the arguments and the order of their calls, on both
machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import outcome
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import kernels
from random_schedules import schedules

import warploom as wl
from warploom.abi.environment import Slot
from warploom.core.errors import LaunchError, OptionTypeError, WarploomError
from warploom.host.kernel import Kernel
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.outcome import error_of
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.observation import Observation
from warploom.machine.reference.machine import ReferenceEngine
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.simt.schedule_layout import ENDED

CAPACITY, WORDS = 20_000, 42
"""Events of which a log has room, and the words of one: its kind, what it says, addresses."""


@wl.observer
class Log:
    """Writes every event into a row of the state; row 0 holds the number of events, and the base
    address."""

    @staticmethod
    def on_access(block, warp, instruction, line, mask, space, kind, size, addresses, state):  # type: ignore[no-untyped-def]
        state[0, 0] += 1
        row = state[state[0, 0]]
        row[:9] = (0, block, warp, instruction, line, mask, space, kind, size)
        for lane in range(addresses.shape[0]):
            if mask >> lane & 1:
                outside = space == wl.MemorySpace.GLOBAL or space == wl.MemorySpace.CONSTANT
                row[9 + lane] = addresses[lane] - (state[0, 1] if outside else 0)
            else:
                row[9 + lane] = addresses[lane]

    @staticmethod
    def on_branch(block, warp, instruction, line, mask, taken, state):  # type: ignore[no-untyped-def]
        state[0, 0] += 1
        state[state[0, 0], :7] = (1, block, warp, instruction, line, mask, taken)

    @staticmethod
    def on_barrier(block, warp, instruction, line, mask, number, threads, state):  # type: ignore[no-untyped-def]
        state[0, 0] += 1
        state[state[0, 0], :8] = (2, block, warp, instruction, line, mask, number, threads)

    @staticmethod
    def on_block_begin(block, state):  # type: ignore[no-untyped-def]
        state[0, 0] += 1
        state[state[0, 0], :2] = (3, block)

    @staticmethod
    def on_block_end(block, state):  # type: ignore[no-untyped-def]
        state[0, 0] += 1
        state[state[0, 0], :2] = (4, block)


ACCESS, BRANCH, BARRIER, BEGIN, END = range(5)


def new_log(base: int = 0) -> np.ndarray:
    state = np.zeros((CAPACITY, WORDS), np.int64)
    state[0, 1] = base
    return state


def events(state: np.ndarray) -> list[list[int]]:
    return state[1 : 1 + state[0, 0]].tolist()


class Observed:
    """An engine whose launches are observed; `events` are those of the last launch."""

    def __init__(self, engine: CompiledEngine | ReferenceEngine) -> None:
        self._engine = engine
        self.events: list[list[int]] = []

    def launch(self, program: Program, launch: Launch, memory: DeviceMemory) -> Tally:
        state = new_log(memory.base)
        observer = Log(state).begin(program)
        try:
            if isinstance(self._engine, ReferenceEngine):
                return self._engine.launch(program, launch, memory, observer=observer)
            work, status = self._engine.record(program, launch, memory, None, observer=observer)
            if status != ENDED:
                raise error_of(work, status)
            from warploom.machine.compiled.counted import Counted

            return Counted.of(work)()
        finally:
            observer.check()
            self.events = events(state)


def test_both_machines_make_the_same_calls_in_the_same_order(random_examples: int) -> None:
    @settings(max_examples=random_examples // 2)
    @given(
        text=kernels(),
        shape=st.sampled_from([(1, 32), (3, 20), (2, 70)]),
        seed=st.integers(0, 1 << 32),
        schedule=schedules(),
    )
    def agree(text: str, shape: tuple[int, int], seed: int, schedule: Schedule) -> None:
        machines = Observed(ReferenceEngine()), Observed(CompiledEngine())
        expected, found = (outcome(text, shape, seed, schedule, one) for one in machines)
        if isinstance(expected, tuple):  # how far a launch came that went wrong is not promised
            assert found == expected
            assert machines[1].events == machines[0].events

    agree()


# ---- kernels whose events are known by hand ------------------------------------------------------

SOURCE = """extern "C" __global__ void tail(int n, int *x) {
    __shared__ int kept[64];
    kept[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < n)
        x[2 * threadIdx.x] = kept[63 - threadIdx.x];
}
extern "C" __global__ void bins(int *x) {
    atomicAdd(x + threadIdx.x % 2, 1);
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) pair(int *x) {
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    x[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
"""
ENGINES = "reference", "compiled"


def observed(engine: str, name: str, threads: int, *args: Any, blocks: int = 1) -> list[list[int]]:
    """Returns the events of a launch; addresses are relative to the buffer, which is the last
    argument."""
    gpu = wl.Device("h100", engine=engine)
    buffer = gpu.zeros(256, np.int32)
    state = new_log(buffer.address)
    kernel(gpu, name)[blocks, threads](*args, buffer, observe=Log(state))
    return events(state)


def kernel(gpu: wl.Device, name: str) -> Kernel:
    return gpu.compile(SOURCE)[name]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_launch_reports_its_accesses_branches_barriers_and_blocks(engine: str) -> None:
    """Has 40 of 64 threads store what the thread at the other end of the block has written: 8 lanes
    of the second warp. Lines are those of SOURCE."""
    events = observed(engine, "tail", 64, 40)
    assert (events[0][:2], events[-1][:2]) == ([BEGIN, 0], [END, 0])
    rest = events[1:-1]
    everyone, eight = (1 << 32) - 1, (1 << 8) - 1
    stores = [row for row in rest if row[0] == ACCESS and row[7] == wl.AccessKind.STORE]
    kept, written = stores[:2], stores[2:]
    for warp, row in enumerate(kept):
        assert row[1:3] == [0, warp]
        assert row[4:9] == [3, everyone, wl.MemorySpace.SHARED, wl.AccessKind.STORE, 4]
        assert row[9:41] == [4 * (32 * warp + lane) for lane in range(32)]
    for warp, (row, mask) in enumerate(zip(written, (everyone, eight), strict=True)):
        assert row[4:9] == [6, mask, wl.MemorySpace.GLOBAL, wl.AccessKind.STORE, 4]
        lanes = [8 * (32 * warp + lane) for lane in range(32)]
        assert row[9:41] == [at if mask >> lane & 1 else 0 for lane, at in enumerate(lanes)]
    loads = [row for row in rest if row[0] == ACCESS and row[7] == wl.AccessKind.LOAD]
    assert [row[9] for row in loads if row[6] == wl.MemorySpace.SHARED] == [252, 124]
    barriers = [row for row in rest if row[0] == BARRIER]
    assert [(row[2], *row[4:8]) for row in barriers] == [(w, 4, everyone, 0, 0) for w in range(2)]
    branches = [row for row in rest if row[0] == BRANCH and row[4] == 5]
    assert [(row[2], row[5], row[6]) for row in branches] == [
        (0, everyone, 0),
        (1, everyone, everyone ^ eight),
    ]
    kinds = [row[0] for row in rest if row[0] != BRANCH or row[4] == 5]
    assert kinds.index(BARRIER) > kinds.index(ACCESS)


@pytest.mark.parametrize("engine", ENGINES)
def test_atomics_are_accesses_and_blocks_come_in_order(engine: str) -> None:
    events = observed(engine, "bins", 32, blocks=3)
    kinds = [(row[0], row[1]) for row in events if row[0] in (BEGIN, END)]
    assert kinds == [(kind, block) for block in range(3) for kind in (BEGIN, END)]
    atomics = [row for row in events if row[0] == ACCESS and row[7] == wl.AccessKind.ATOMIC]
    assert [row[9:41] for row in atomics] == 3 * [16 * [0, 4]]


@pytest.mark.parametrize("engine", ENGINES)
def test_barriers_of_clusters_have_the_number_24(engine: str) -> None:
    events = observed(engine, "pair", 32, blocks=2)
    arrivals = [row[1] for row in events if row[0] == BARRIER and row[6] == 24]
    assert sorted(arrivals) == [0, 0, 1, 1]  # each arrives, then waits
    assert [row[1] for row in events if row[0] == END] == [1, 0]  # the last to come goes on


def test_a_state_can_be_a_structure_and_is_the_users_own() -> None:
    @wl.observer
    class Sums:
        @staticmethod
        def on_access(block, warp, instruction, line, mask, space, kind, size, addresses, state):  # type: ignore[no-untyped-def]
            state[0].bytes += size
            state[0].mean += 0.5

    kind = np.dtype([("bytes", np.int64), ("mean", np.float64)])
    for engine in ENGINES:
        state = np.zeros(1, kind)
        gpu = wl.Device("h100", engine=engine)
        launcher = kernel(gpu, "bins")[1, 32]
        for _ in range(2):
            launcher(np.zeros(2, np.int32), observe=Sums(state))
        assert state.tolist() == [(8, 1.0)]


def test_a_launch_that_is_recorded_for_timing_is_observed_too() -> None:
    state = new_log()
    gpu = wl.Device("h100", record=True)
    run = kernel(gpu, "bins")[40, 32](np.zeros(2, np.int32), observe=Log(state))
    assert [row[1] for row in events(state) if row[0] == BEGIN] == list(range(40))
    assert run.time().cycles > 0


# ---- code, errors --------------------------------------------------------------------------------


def test_code_without_an_observer_contains_no_calls() -> None:
    text = kernel(wl.Device("h100"), "tail")[1, 64].llvm_ir()
    assert f", i64 {int(Slot.PLAN_AT)}\n" in text
    assert f", i64 {int(Slot.OBSERVER_AT)}\n" not in text
    assert "has_block_ended" not in text


def test_an_exception_in_an_observer_is_an_error_that_names_it() -> None:
    @wl.observer
    class Beyond:
        @staticmethod
        def on_block_end(block, state):  # type: ignore[no-untyped-def]
            state[block] += 1

    for engine in ENGINES:
        state = np.zeros(2, np.int64)
        launcher = kernel(wl.Device("h100", engine=engine), "bins")[4, 32]
        with pytest.raises(WarploomError, match="observer Beyond: on_block_end raised"):
            launcher(np.zeros(2, np.int32), observe=Beyond(state))
        assert state.tolist() == [1, 1]


def test_wrong_observers_are_refused_where_they_are_written() -> None:
    with pytest.raises(WarploomError, match=r"takes 1 arguments. It must take 2: \(block, state\)"):

        @wl.observer
        class Short:
            @staticmethod
            def on_block_end(block):  # type: ignore[no-untyped-def]
                pass

    with pytest.raises(WarploomError, match="on_store is not an observer function"):

        @wl.observer
        class Unknown:
            @staticmethod
            def on_store(block, state):  # type: ignore[no-untyped-def]
                pass

    with pytest.raises(WarploomError, match="has no observer function"):

        @wl.observer
        class Empty:
            pass

    with pytest.raises(OptionTypeError, match="NumPy array in C order"):
        Log(np.zeros((4, 4))[:, ::2])


def test_an_observed_launch_is_not_sanitized() -> None:
    launcher = kernel(wl.Device("h100"), "bins")[1, 32]
    given: Observation = Log(new_log())
    with pytest.raises(LaunchError, match="cannot be observed and sanitized"):
        launcher(np.zeros(2, np.int32), sanitize=("mem",), observe=given)
