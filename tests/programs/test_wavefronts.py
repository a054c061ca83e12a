"""Wavefronts of 64 lanes (`wl.Device(warp_size=64)`): what is the same as in warps of 32, what is
not, and what is refused. All expectations are worked out by hand."""

from __future__ import annotations

from typing import Any

import marked
import numpy as np
import pytest
from marked import IF_BELOW_32, places

import warploom as wl

STACK, INDEPENDENT = "gtx-1080", "v100"
MODELS = [STACK, INDEPENDENT]
POLICIES = ("converge", "fair", "random", "adversarial")
FULL, LOW, HIGH = (1 << 64) - 1, (1 << 32) - 1, (1 << 64) - (1 << 32)


def device(name: str = INDEPENDENT, **options: Any) -> wl.Device:
    return wl.Device(name, warp_size=64, **options)


def traced(body: str, gpu: wl.Device, block: int = 64) -> wl.Trace:
    return marked.traced(body, gpu, block)


# ---- formation ----------------------------------------------------------------------------------


def test_a_block_of_100_has_two_wavefronts() -> None:
    """64 lanes and 36; what PTX calls WARP_SZ is 64."""
    source = """
__global__ void k(int4* ids) {
    int lane, warp, warps;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm("mov.u32 %0, %%nwarpid;" : "=r"(warps));
    ids[threadIdx.x + threadIdx.y * blockDim.x] = make_int4(lane, warp, warps, warpSize);
}
"""
    gpu = device()
    ids = gpu.zeros((100, 4), np.int32)
    run = gpu.compile(source)["k"][1, (25, 4)](ids)
    assert ids.copy_to_host().tolist() == [[i % 64, i // 64, 2, 64] for i in range(100)]
    assert run.counters.thread_instructions % 100 == 0
    assert run.counters.warp_instructions == 2 * run.counters.thread_instructions // 100


def test_constant_expressions_know_the_size() -> None:
    trace = traced("    mov.u32 %m, WARP_SZ;\n    mov.u32 %m, 2*WARP_SZ-1;\n    ret;\n", device())
    assert [place for place, _ in places(trace)] == [64, 127]


def test_the_last_wavefront_has_lanes_that_never_existed() -> None:
    trace = traced("    mov.u32 %m, 1;\n    ret;\n", device(), block=100)
    assert places(trace, 0) == [(1, FULL)]
    assert places(trace, 1) == [(1, (1 << 36) - 1)]
    assert trace.warp(0, 1).steps[0].off.absent == FULL ^ (1 << 36) - 1
    assert trace.warp_size == 64


# ---- masks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_an_if_between_halves_is_free_for_warps_of_32_only(name: str) -> None:
    narrow = marked.kernel(IF_BELOW_32, wl.Device(name))[1, 64]().counters
    assert (narrow.divergent_branches, narrow.reconvergences) == (0, 0)
    gpu = device(name)
    wide = marked.kernel(IF_BELOW_32, gpu)[1, 64]().counters
    assert (wide.divergent_branches, wide.reconvergences) == (1, 1)
    trace = traced(IF_BELOW_32, gpu)
    assert places(trace) == [(1, LOW), (2, HIGH), (3, FULL)]
    steps = {place: step for (place, _), step in zip(places(trace), _marked(trace), strict=True)}
    assert steps[1].off.other_path == HIGH
    assert steps[2].off.gathering == LOW
    assert wl.Trace.from_bytes(trace.to_bytes()) == trace


def _marked(trace: wl.Trace) -> list[Any]:
    return [s for s in trace.warp().steps if "mov.u32 %m" in trace.instructions[s.instruction]]


def switch(indexed: bool) -> str:
    """A switch over the lane with 64 ways, of which each case has three instructions."""
    names = [f"CASE_{case}" for case in range(64)]
    lines = []
    if indexed:
        lines += [f"    ways: .branchtargets {', '.join(names)};", "    brx.idx %l, ways;"]
    for case, name in enumerate(names):
        lines += [] if indexed else [f"    setp.eq.u32 %p1, %l, {case};", f"    @%p1 bra {name};"]
    for case, name in enumerate(names):
        lines += [f"{name}:", f"    mov.u32 %m, {case};", "    add.u32 %i, %i, 1;", "    bra END;"]
    return "\n".join([*lines, "END:", "    mov.u32 %m, 64;", "    ret;\n"])


@pytest.mark.parametrize("policy", ["converge", "adversarial"])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_switch_of_64_ways_costs_64_times(name: str, indexed: bool, policy: str) -> None:
    trace = traced(switch(indexed), device(name, schedule=policy))
    passed = places(trace)
    assert sorted(p for p in passed if p[0] < 64) == [(case, 1 << case) for case in range(64)]
    steps = [trace.instructions[step.instruction] for step in trace.warp().steps]
    assert steps.count("add.u32 %i, %i, 1;") == 64
    # An adversary keeps lanes apart for good where threads have program counters of their own.
    diverged = policy == "adversarial" and name == INDEPENDENT
    together = [(64, 1 << lane) for lane in range(64)] if diverged else [(64, FULL)]
    assert sorted(p for p in passed if p[0] == 64) == together


def test_lanes_leave_a_loop_one_by_one() -> None:
    """Lane l stays for l + 1 laps: lap n has the lanes from n on."""
    body = """
TOP:
    mov.u32 %m, 1;
    add.u32 %i, %i, 1;
    setp.le.u32 %p1, %i, %l;
    @%p1 bra TOP;
    mov.u32 %m, 2;
    ret;
"""
    for name in MODELS:
        laps = [(1, FULL >> n << n) for n in range(64)]
        assert places(traced(body, device(name))) == [*laps, (2, FULL)]


# ---- waiting for each other ---------------------------------------------------------------------

LOCK = """
__global__ void lock(int* lock, int* count, int step) {
    if (threadIdx.x % step) return;
    while (atomicCAS(lock, 0, 1) != 0) {}
    *count = *count + 1;
    __threadfence();
    atomicExch(lock, 0);
}
__global__ void sum(const int* in, int* out) {
    __shared__ volatile int part[128];
    int t = threadIdx.x;
    part[t] = in[t];
    for (int d = 32; d > 0; d /= 2) part[t] += part[t + d];
    if (t == 0) *out = part[0];
}
__global__ void blocks_sum(const int* in, int* out) {
    __shared__ int part[256];
    int t = threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t < d && t + d < blockDim.x) part[t] += part[t + d];
        __syncthreads();
    }
    if (t == 0) *out = part[0];
    if (__syncthreads_count(t & 1) != blockDim.x / 2) *out = -1;
}
__global__ void some_wait(int* out) {
    if (threadIdx.x < 40) __syncthreads();
    else while (atomicAdd(out, 0) == 0) {}
}
"""


@pytest.mark.parametrize(
    ("policy", "step"), [("converge", 63), ("fair", 1), ("random", 1), ("adversarial", 1)]
)
def test_a_lock_among_64_lanes_is_fine_from_7_0_on(policy: str, step: int) -> None:
    """Where lanes take long turns, a lock goes from the first lane to the last only."""
    gpu = device(schedule=policy, seed=3)
    lock, count = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    gpu.compile(LOCK)["lock"][1, 64](lock, count, step)
    assert count.copy_to_host()[0] == len(range(0, 64, step))


def test_a_lock_among_64_lanes_deadlocks_before_7_0() -> None:
    gpu = device(STACK)
    with pytest.raises(wl.DeadlockError) as caught:
        gpu.compile(LOCK)["lock"][1, 64](gpu.zeros(1, np.int32), gpu.zeros(1, np.int32), 1)
    assert sorted(g.lanes for g in caught.value.groups) == [(0,), tuple(range(1, 64))]


def lockstep_sum(gpu: wl.Device) -> int:
    out = gpu.zeros(1, np.int32)
    gpu.compile(LOCK)["sum"][1, 64](np.arange(64, dtype=np.int32), out)
    return int(out.copy_to_host()[0])


def test_code_for_wavefronts_in_lockstep_is_wrong_in_warps_of_32() -> None:
    """Of two warps, the first ends before the second has brought its half: 0 + ... + 31."""
    assert lockstep_sum(device(STACK)) == sum(range(64))
    assert lockstep_sum(device(STACK, schedule="adversarial")) == sum(range(64))
    assert lockstep_sum(wl.Device(STACK)) == sum(range(32))
    assert lockstep_sum(device(INDEPENDENT, schedule="adversarial")) != sum(range(64))


def test_explore_runs_wavefronts_too() -> None:
    host, out = np.arange(64, dtype=np.int32), np.zeros(1, np.int32)
    found = wl.explore(device(STACK).compile(LOCK)["sum"][1, 64], host, out, runs=4, workers=1)
    assert not found.differs
    found = wl.explore(device().compile(LOCK)["sum"][1, 64], host, out, runs=3, workers=1)
    assert found.differs
    assert found.causes


@pytest.mark.parametrize(
    ("name", "policy"), [(STACK, "random"), *((INDEPENDENT, policy) for policy in POLICIES)]
)
@pytest.mark.parametrize("block", [192, 100])
def test_barriers_of_a_block(name: str, policy: str, block: int) -> None:
    gpu = device(name, schedule=policy)
    host, out = np.arange(block, dtype=np.int32), gpu.zeros(1, np.int32)
    gpu.compile(LOCK)["blocks_sum"][1, block](host, out)
    assert out.copy_to_host()[0] == sum(range(block))


def test_a_barrier_that_some_lanes_of_a_wavefront_skip() -> None:
    gpu = device()
    with pytest.raises(wl.DeadlockError) as caught:
        gpu.compile(LOCK)["some_wait"][1, 64](gpu.zeros(1, np.int32))
    groups = {g.waits_for.partition(" ")[0]: g.lanes for g in caught.value.groups}
    assert groups == {"all": tuple(range(40)), "a": tuple(range(40, 64))}


@pytest.mark.parametrize("name", MODELS)
def test_barriers_count_in_wavefronts(name: str) -> None:
    """One of two wavefronts is all that a barrier of 64 threads needs; 32 are no multiple of one
    (PTX ISA, bar: "a multiple of the warp size")."""
    body = """
    setp.ge.u32 %p1, %l, 64;
    @%p1 ret;
    bar.sync 1, {};
    mov.u32 %m, 1;
    ret;
"""
    assert places(traced(body.format(64), device(name), block=128)) == [(1, FULL)]
    assert "a multiple of 64" in traced(body.format(32), device(name), block=128).error


# ---- memory -------------------------------------------------------------------------------------

MEMORY = """
__global__ void copy(const float* x, float* y, int stride) {
    y[threadIdx.x] = x[threadIdx.x * stride];
}
__global__ void upper(const float* x, float* y) {
    if (threadIdx.x >= 32) y[threadIdx.x] = x[threadIdx.x * 32];
}
__global__ void one_address(int* sum, int* last) {
    atomicAdd(sum, 1);
    *last = threadIdx.x;
}
__global__ void shared(int* out, int stride) {
    __shared__ int words[2048];
    words[threadIdx.x * stride] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words[(63 - threadIdx.x) * stride];
}
__global__ void own(int* out, int n) {
    int kept[8];
    for (int i = 0; i < 8; i++) kept[i] = threadIdx.x * 8 + i;
    for (int i = 0; i < n; i++) out[threadIdx.x] += kept[i & 7];
}
__global__ void odd(int* out) { if (threadIdx.x == 63) out[1 << 20] = 1; }
"""


def test_an_access_of_64_lanes_is_two_requests() -> None:
    """64 floats in a row are 8 sectors of 32 bytes; at a stride of 32 floats they are 64."""
    gpu = device()
    module = gpu.compile(MEMORY)
    x = gpu.to_device(np.arange(64 * 32, dtype=np.float32))
    y = gpu.zeros(64, np.float32)
    run = module["copy"][1, 64](x, y, 1)
    assert run.counters.global_load_requests == run.counters.global_store_requests == 2
    assert run.counters.global_load_sectors == run.counters.global_store_sectors == 8
    assert run.counters.global_load_bytes_requested == 256
    run = module["copy"][1, 64](x, y, 32)
    assert run.counters.global_load_sectors == 64
    assert y.copy_to_host().tolist() == [32 * i for i in range(64)]
    assert "Warp" in run.report()
    # Half of the lanes make one request, and the costly one is theirs.
    run = module["upper"][1, 64](x, y)
    assert run.counters.global_load_requests == 1
    [example] = [e for e in run.examples if e.op == "load"]
    assert (example.lanes, example.stride) == (tuple(range(32, 64)), 128)


@pytest.mark.parametrize(("policy", "lasts"), [("converge", 63), ("adversarial", 32)])
def test_lanes_on_one_address(policy: str, lasts: int) -> None:
    """The lower half goes first; of the upper one's lanes the highest lasts, to an adversary the
    lowest. 32 atomics of each half go one after another."""
    gpu = device(STACK, schedule=policy)
    total, last = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    run = gpu.compile(MEMORY)["one_address"][1, 64](total, last)
    assert (total.copy_to_host()[0], last.copy_to_host()[0]) == (64, lasts)
    assert (run.counters.atomic_requests, run.counters.atomic_passes) == (2, 64)
    assert run.counters.global_store_requests == 2


@pytest.mark.parametrize(("stride", "wavefronts"), [(1, 2), (2, 4), (32, 64)])
def test_banks_serve_32_lanes_at_once(stride: int, wavefronts: int) -> None:
    gpu = device(STACK)
    out = gpu.zeros(64, np.int32)
    run = gpu.compile(MEMORY)["shared"][1, 64](out, stride)
    assert run.counters.shared_store_wavefronts == wavefronts
    assert run.counters.shared_load_wavefronts == wavefronts
    assert out.copy_to_host().tolist() == list(range(63, -1, -1))


def test_local_memory_is_each_lanes_own() -> None:
    """One word of all lanes is two lines of 128 bytes."""
    gpu = device(caches=True)
    out = gpu.zeros(64, np.int32)
    run = gpu.compile(MEMORY)["own"][1, 64](out, 3)
    assert out.copy_to_host().tolist() == [3 * 8 * t + 0 + 1 + 2 for t in range(64)]
    counters = run.counters
    assert counters.local_store_requests > 0
    assert counters.local_load_lines == counters.local_load_requests


def test_a_fault_names_the_thread_of_the_upper_half() -> None:
    gpu = device()
    with pytest.raises(wl.MemoryFault) as caught:
        gpu.compile(MEMORY)["odd"][1, 128](gpu.zeros(64, np.int32))
    assert caught.value.thread == (63, 0, 0)


def test_textures_and_printf_serve_all_lanes() -> None:
    source = """
__global__ void fetch(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
    if (threadIdx.x % 21 == 0) printf("%d;", threadIdx.x);
}
"""
    said: list[str] = []
    gpu = device(output=said.append)
    texels = np.arange(64, dtype=np.float32) * 2
    out = gpu.zeros(64, np.float32)
    run = gpu.compile(source)["fetch"][1, 64](gpu.texture(gpu.to_device(texels)), out)
    assert np.array_equal(out.copy_to_host(), texels)
    assert "".join(said) == "0;21;42;63;"
    assert run.counters.texture_load_requests == 2


# ---- what is refused ----------------------------------------------------------------------------

OF_WARPS = (
    "shfl.sync.idx.b32 %m, %l, 0, 31, -1;",
    "vote.sync.ballot.b32 %m, %p1, -1;",
    "match.any.sync.b32 %m, %l, -1;",
    "redux.sync.add.u32 %m, %l, -1;",
    "elect.sync %m|%p1, -1;",
    "activemask.b32 %m;",
    "bar.warp.sync -1;",
    "mov.u32 %m, %lanemask_lt;",
    "movmatrix.sync.aligned.m8n8.trans.b16 %m, %l;",
)


@pytest.mark.parametrize("statement", OF_WARPS)
def test_what_is_defined_for_32_lanes_is_refused(statement: str) -> None:
    source = (marked.HEAD + f"    {statement}\n    ret;\n}}").replace("sm_60", "sm_90")
    kernel = device("h100").compile(source, "ptx")["k"]
    with pytest.raises(wl.UnsupportedInstruction, match="defined for warps of 32 lanes") as caught:
        kernel[1, 64]()
    assert "shared memory" in str(caught.value)
    assert f":{marked.HEAD.count(chr(10)) + 1}:" in str(caught.value)
    wl.Device("h100").compile(source, "ptx")["k"][1, 32]()


def test_a_device_says_what_it_cannot_be() -> None:
    with pytest.raises(wl.WarploomError, match="the compiled engine requires warps of 32 lanes"):
        wl.Device(warp_size=64, engine="compiled")
    with pytest.raises(wl.WarploomError, match="32 or 64 lanes"):
        wl.Device(warp_size=48)
    assert (wl.Device().engine, device().engine) == ("compiled", "reference")


# ---- the device ---------------------------------------------------------------------------------


def test_threads_are_what_an_sm_holds() -> None:
    """An A100 holds 2048 threads an SM: 32 wavefronts. 64 registers a thread are half of them,
    whichever way the threads are counted."""
    gpu = wl.Device("a100", warp_size=64)
    full = wl.occupancy(gpu, 256, registers_per_thread=32)
    assert (full.active_blocks, full.active_warps, full.max_warps) == (8, 32, 32)
    half = wl.occupancy(gpu, 256, registers_per_thread=64)
    assert (half.active_blocks, half.fraction, half.limiters) == (4, 0.5, ("registers",))
    assert wl.occupancy(gpu, 96).active_warps == 2 * wl.occupancy(gpu, 96).active_blocks
    with pytest.raises(wl.LaunchError, match="1,024"):
        gpu.compile("__global__ void k() {}")["k"][1, 1025]()
