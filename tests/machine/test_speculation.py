"""Checks that workers which run blocks that may conflict leave what one worker leaves, and that
they find each conflict."""

from __future__ import annotations

import mmap
import threading
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from block_programs import BlockLaunch, block_kernels, block_launches, with_workers
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import NEEDS_NVRTC

import warploom as wl
from warploom.abi.access_sets import PAGE_BYTES
from warploom.abi.environment import Slot, Status
from warploom.machine.caches import NO_CACHES
from warploom.machine.compiled import (
    access_sets,
    block_times,
    distribution,
    parts,
    speculation,
)
from warploom.machine.compiled.access_sets import AccessSets, recorded_pages
from warploom.machine.compiled.block_times import BlockTimes
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.launch_template import LaunchTemplate
from warploom.machine.compiled.parts import LaunchParts
from warploom.machine.compiled.speculation import CONFLICTED, OVERDUE, Speculation, failure_of
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.compiled.workers import BlockDependences
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse

SCATTER = """
extern "C" __global__ void scatter(const int* at, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[at[i]] += i + 1;
}
"""


@pytest.fixture
def speculate(share_every_launch: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has several workers run each launch whose blocks may conflict, whatever that saves, until
    one fails."""
    monkeypatch.setattr(Speculation, "pays", lambda _, program, *__: not failure_of(program))


@pytest.mark.usefixtures("speculate")
def test_workers_that_speculate_leave_what_one_leaves(random_examples: int) -> None:
    """Memory, counts and faults of drawn kernels, of which most conflict. Some launches have to be
    shared, and some undone, for the test to say something."""
    reasons = Counter[str]()

    @settings(max_examples=random_examples)
    @given(block_kernels(), block_launches(), st.sampled_from((2, 3, 8)))
    def same(text: str, launch: BlockLaunch, workers: int) -> None:
        expected, *_ = with_workers(text, launch, 1)
        found, threads, reason = with_workers(text, launch, workers)
        assert found == expected
        reasons["shared" if threads > 1 else reason] += 1

    same()
    if reasons.total() >= 40:
        assert 10 * reasons["shared"] >= reasons.total()
        assert reasons[CONFLICTED]


# ---- conflicts that are planted -----------------------------------------------------------------

WORDS = 4 * PAGE_BYTES

ACCESS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 at)
{{
  .reg .b32 %r<4>; .reg .b64 %d<8>; .reg .b{bits} %v<8>;
  ld.param.u64 %d0, [x];
  ld.param.u64 %d1, [at];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
  mad.lo.u32 %r0, %r0, %r1, %r2;
  mul.wide.u32 %d2, %r0, 8; add.s64 %d2, %d1, %d2; ld.global.u64 %d3, [%d2];
  add.s64 %d4, %d0, %d3;
  {access}
  ret;
}}
"""

FORMS = {
    "bytes": (16, 1, "ld.global.u8 {v}, [%d4];", "st.global.u8 [%d4], {v};"),
    "halves": (16, 2, "ld.global.u16 {v}, [%d4];", "st.global.u16 [%d4], {v};"),
    "words": (32, 4, "ld.global.u32 {v}, [%d4];", "st.global.u32 [%d4], {v};"),
    "doubles": (64, 8, "ld.global.u64 {v}, [%d4];", "st.global.u64 [%d4], {v};"),
    "vectors": (32, 16, "ld.global.v4.u32 {{{v}, %v1, %v2, %v3}}, [%d4];",
                "st.global.v4.u32 [%d4], {{{v}, %v1, %v2, %v3}};"),
}  # fmt: skip


def prepared(form: str, does: str, at: list[int]) -> tuple[Program, Launch, DeviceMemory, int]:
    """Returns a launch whose thread i loads, stores, or does both, at byte at[i] of an array."""
    bits, _, load, store = FORMS[form]
    odd = "and.b32 %r3, %r0, 32; setp.ne.u32 %p1, %r3, 0;"
    either = f"{odd} @%p1 {load} @!%p1 {store}"
    parts = {"load": load, "store": store, "both": load + store, "either": either}
    value = "mov.b64 %v0, 5;" if bits == 64 else f"mov.b{bits} %v0, 5;"
    # A store of a thread that never runs makes the array one that the launch writes to.
    never = "setp.eq.u32 %p0, %r1, 7; @%p0 " + store.format(v="%v0")
    text = ACCESS.format(bits=bits, access=f"{value} {parts[does].format(v='%v0')} {never}")
    text = text.replace(".reg .b32 %r<4>;", ".reg .b32 %r<4>; .reg .pred %p<2>;")
    memory = DeviceMemory(1 << 24)
    array, places = memory.allocate(4 * WORDS).address, memory.allocate(8 * len(at)).address
    memory.write(array, np.random.default_rng(1).bytes(4 * WORDS))
    memory.write(places, np.array(at, np.uint64).tobytes())
    parameters = np.array([array, places], np.uint64).tobytes()
    blocks = len(at) // 32
    return build(parse(text), "k"), Launch((blocks, 1, 1), (32, 1, 1), parameters), memory, array


def run_blocks(
    program: Program, launch: Launch, memory: DeviceMemory, workers: dict[int, range]
) -> AccessSets:
    """Runs blocks of a launch in code that records accesses, each range as a worker of that
    number; returns the access sets."""
    dependences = BlockDependences(program, launch, memory, caches=False)
    tracking, recorded = dependences.tracking(), recorded_pages(memory)
    assert tracking is not None
    assert recorded is not None
    sets = AccessSets(recorded, tracking.unit, max(workers) + 1)
    code = CompiledEngine()._template(program, launch, tracks=tracking).tiers.optimised()
    template = LaunchTemplate.of(code, launch)
    for worker, blocks in workers.items():
        part = WorkerLaunch.prepare(template, launch, memory, NO_CACHES, blocks)
        part.environment[Slot.ACCESS_SET_AT] = sets.address(worker)
        assert part.run() == Status.ENDED
    return sets


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, list[int], int, int]:
    """Draws a form of access, the bytes at which the threads of four blocks access an array, all
    different, and two threads of different blocks."""
    form = draw(st.sampled_from([*FORMS]))
    size = FORMS[form][1]
    border = draw(st.sampled_from((0, PAGE_BYTES, 2 * PAGE_BYTES)))
    random = draw(st.randoms(use_true_random=False))
    order = [*range(-64, 64)]
    if draw(st.booleans()):
        random.shuffle(order)
    if draw(st.booleans()):
        order.reverse()
    at = [border + (n if border else n + 64) * size for n in order]
    first = draw(st.integers(0, 95))
    other = draw(st.integers(32 * (first // 32 + 1), 127) | st.just(127))
    return form, at, first, other


@pytest.mark.parametrize("does", ["load", "store", "both", "either"])
def test_a_conflict_is_found_wherever_it_is(does: str, random_examples: int) -> None:
    """Threads of different blocks access bytes of their own, which may be neighbors and on both
    sides of a page's border: no conflict. Then one accesses what another does: a conflict, unless
    both load; and undoing it restores every byte. Of `either`, odd blocks load and even ones
    store."""

    @settings(max_examples=max(4, random_examples // 4))
    @given(planted())
    def found(drawn: tuple[str, list[int], int, int]) -> None:
        form, at, first, other = drawn
        each = {worker: range(worker, worker + 1) for worker in range(4)}
        assert not run_blocks(*prepared(form, does, at)[:3], each).have_conflict()
        at[other] = at[first]
        program, launch, memory, array = prepared(form, does, at)
        before = memory.read(array, 4 * WORDS)
        sets = run_blocks(program, launch, memory, each)
        loads = does == "load" or (does == "either" and first // 32 % 2 and other // 32 % 2)
        assert sets.have_conflict() == (not loads)
        sets.undo(memory)
        assert memory.read(array, 4 * WORDS) == before
        # One worker alone, or one that has both blocks, has none.
        alone = run_blocks(*prepared(form, does, at)[:3], {0: range(4)})
        assert not alone.have_conflict()

    found()


# ---- what a launch that is undone leaves --------------------------------------------------------


def launched(
    at: np.ndarray,
    change: Callable[[wl.Device], object] = lambda _: None,
    *,
    cooperative: bool = False,
) -> tuple[wl.Run, np.ndarray]:
    """Scatters by two workers; returns the run and what it has left."""
    gpu = wl.Device(workers=2)
    kernel, places = gpu.compile(SCATTER)["scatter"], gpu.to_device(at)
    out = gpu.to_device(np.arange(len(at), dtype=np.int32))
    change(gpu)
    return kernel[len(at) // 64, 64](
        places, out, len(at), cooperative=cooperative
    ), out.copy_to_host()


def scattered(at: np.ndarray) -> np.ndarray:
    out = np.arange(len(at), dtype=np.int32)
    for i, place in enumerate(at):
        out[place] += i + 1
    return out


N = 4_096
PLACES = np.random.default_rng(2).permutation(N).astype(np.int32)
CONFLICTING = np.where(np.arange(N) % 2, PLACES, PLACES[0]).astype(np.int32)


@NEEDS_NVRTC
@pytest.mark.usefixtures("speculate")
def test_blocks_that_do_not_conflict_are_shared() -> None:
    run, out = launched(PLACES)
    assert (run.workers, run.serial_reason) == (2, "")
    assert (out == scattered(PLACES)).all()


@pytest.fixture
def both_have_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each of two workers take a part before any runs one."""
    barrier, take, begun = threading.Barrier(2), LaunchParts._next_part, threading.local()

    def next_part(self: LaunchParts) -> range | None:
        part = take(self)
        if not hasattr(begun, "part"):
            begun.part = part
            barrier.wait(30)
        return part

    monkeypatch.setattr(LaunchParts, "_next_part", next_part)


TURNS = """
extern "C" __global__ void k(const int* at, int* out, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    if (i >= n) return;
    for (int turn = 0; turn < turns; turn++) sum = sum * 5 + i;
    out[at[i]] = out[at[i]] + sum;
}
"""


@NEEDS_NVRTC
@pytest.mark.usefixtures("speculate", "both_have_a_part")
@pytest.mark.parametrize("conflicts", [False, True])
def test_several_workers_run_the_blocks_that_a_first_one_leaves(
    monkeypatch: pytest.MonkeyPatch, *, conflicts: bool
) -> None:
    """A launch begins on one worker, in other code; at its first pause it leaves the rest. Blocks
    of that may conflict, or do: the first thread of each adds to one place."""
    monkeypatch.setattr(BlockTimes, "is_long", property(lambda _: False, lambda *_: None))
    for module in (block_times, distribution):
        monkeypatch.setattr(module, "SHORTEST_SECONDS", 0.0)
    monkeypatch.setattr(parts, "PART_SECONDS", 0.0)
    n, runs, outputs = 64_000, [], []
    places = np.random.default_rng(4).permutation(n).astype(np.int32)
    if conflicts:
        places[::64] = places[0]
    reported: list[tuple[int, int]] = []
    for workers in (1, 2):
        gpu = wl.Device("a100", workers=workers)
        at, out = gpu.to_device(places), gpu.to_device(np.arange(n, dtype=np.int32))
        launcher = gpu.compile(TURNS)["k"][1_000, 64]
        runs.append(launcher(at, out, n, 20, progress=lambda *done: reported.append(done)))
        outputs.append(out.copy_to_host())
    assert np.array_equal(*outputs)
    assert runs[0].counters == runs[1].counters
    assert (runs[1].workers, runs[1].serial_reason) == ((1, CONFLICTED) if conflicts else (2, ""))
    last = reported[reported.index((1_000, 1_000)) + 1 :]
    assert last == sorted(last)
    assert last[-1] == (1_000, 1_000)


CHAIN = """
extern "C" __global__ void chain(volatile int* flags, const int* at, int rounds) {
    if (threadIdx.x != 0) return;
    int sum = 0;
    for (int i = 0; i < rounds; i++) sum += at[(sum + i) & 31];
    if (blockIdx.x + 1 < gridDim.x) while (flags[at[blockIdx.x + 1]] == 0) { }
    flags[at[blockIdx.x]] = 1 + (sum < 0);
}
"""


@pytest.mark.usefixtures("speculate")
@NEEDS_NVRTC
def test_blocks_that_wait_for_withheld_ones_do_not_deadlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each block waits for the next one. All are resident, so the launch ends on a device (CUDA C++
    Programming Guide, "SIMT Architecture": independent thread scheduling)."""
    monkeypatch.setattr(BlockTimes, "is_long", property(lambda _: False, lambda *_: None))
    for module in (block_times, distribution):
        monkeypatch.setattr(module, "SHORTEST_SECONDS", 0.0)
    withheld: list[range] = []
    withhold = WorkerLaunch.withhold_following

    def recorded(work: WorkerLaunch) -> None:
        withhold(work)
        withheld.append(work.withheld)

    monkeypatch.setattr(WorkerLaunch, "withhold_following", recorded)
    gpu = wl.Device("v100", workers=2)
    flags, at = gpu.zeros(32, np.int32), gpu.to_device(np.arange(32, dtype=np.int32))
    gpu.compile(CHAIN)["chain"][32, 32](flags, at, 2000)
    assert flags.copy_to_host().tolist() == [1] * 32
    assert withheld


@NEEDS_NVRTC
@pytest.mark.usefixtures("speculate", "both_have_a_part")
def test_a_launch_that_conflicts_is_run_again_by_one_worker() -> None:
    run, out = launched(CONFLICTING)
    assert (run.workers, run.serial_reason) == (1, CONFLICTED)
    # Lanes of a warp that add to one place lose all updates but one: as one worker does.
    alone = wl.Device(workers=1)
    expected = alone.to_device(np.arange(N, dtype=np.int32))
    serial = alone.compile(SCATTER)["scatter"][N // 64, 64](
        alone.to_device(CONFLICTING), expected, N
    )
    assert (out == expected.copy_to_host()).all()
    assert run.counters == serial.counters


@NEEDS_NVRTC
@pytest.mark.usefixtures("speculate")
def test_a_launch_that_takes_too_long_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speculation, "LEAST_LIMIT", 0)
    run, out = launched(PLACES)
    assert (run.workers, run.serial_reason) == (1, OVERDUE)
    assert (out == scattered(PLACES)).all()


@NEEDS_NVRTC
@pytest.mark.usefixtures("speculate")
def test_host_memory_that_kernels_can_access_keeps_a_launch_serial() -> None:
    """Access sets do not record it."""
    lent = np.zeros(64, np.int32)
    run, out = launched(
        PLACES, lambda gpu: gpu.memory.lend(int(lent.ctypes.data), lent.nbytes, lent)
    )
    assert run.workers == 1
    assert "may access the same addresses" in run.serial_reason
    assert (out == scattered(PLACES)).all()


@NEEDS_NVRTC
@pytest.mark.usefixtures("speculate")
def test_a_system_that_reserves_too_little_keeps_a_launch_serial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access_sets, "reserve", lambda size: mmap.mmap(-1, size // 2))
    run, out = launched(PLACES)
    assert run.workers == 1
    assert (out == scattered(PLACES)).all()


@NEEDS_NVRTC
@pytest.mark.usefixtures("speculate")
def test_a_cooperative_launch_stays_serial() -> None:
    """Its blocks may wait for each other."""
    run, out = launched(PLACES, cooperative=True)
    assert run.workers == 1
    assert (out == scattered(PLACES)).all()


@NEEDS_NVRTC
@pytest.mark.usefixtures("speculate")
def test_an_exception_of_the_progress_callback_leaves_memory_as_it_was() -> None:
    gpu = wl.Device(workers=2)
    kernel, places = gpu.compile(SCATTER)["scatter"], gpu.to_device(PLACES)
    out = gpu.to_device(np.arange(N, dtype=np.int32))

    def progress(*_: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        kernel[N // 64, 64](places, out, N, progress=progress)
    assert (out.copy_to_host() == np.arange(N)).all()
    assert kernel[N // 64, 64](places, out, N).workers == 2
    assert (out.copy_to_host() == scattered(PLACES)).all()
    assert threading.active_count() < 50
