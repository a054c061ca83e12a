"""All outcomes of small kernels, by what the manual says of each pattern."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import LaunchError, WarploomError

SOURCE = r"""
#include <cuda/atomic>
#define THREADS(first, second) if (blockIdx.x == 0) { first; } else { second; }
typedef volatile int *V;
extern "C" {
__global__ void plain_stores(int *r, V x) {
  THREADS(x[0] = 1; r[0] = x[32], x[32] = 1; r[1] = x[0])
}
__global__ void fenced_stores(int *r, V x) {
  THREADS(x[0] = 1; __threadfence(); r[0] = x[32], x[32] = 1; __threadfence(); r[1] = x[0])
}
__global__ void fenced_in_the_block(int *r, V x) {
  THREADS(x[0] = 1; __threadfence_block(); r[0] = x[32],
          x[32] = 1; __threadfence_block(); r[1] = x[0])
}
__global__ void message(int *r, V x) { THREADS(x[0] = 1; x[32] = 1, r[0] = x[32]; r[1] = x[0]) }
__global__ void released(int *r, int *x) {
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(x[32]);
  THREADS(x[0] = 1; flag.store(1, cuda::memory_order_release),
          r[0] = flag.load(cuda::memory_order_acquire); r[1] = x[0])
}
__global__ void released_in_the_block(int *r, int *x) {
  cuda::atomic_ref<int, cuda::thread_scope_block> flag(x[32]);
  THREADS(x[0] = 1; flag.store(1, cuda::memory_order_release),
          r[0] = flag.load(cuda::memory_order_acquire); r[1] = x[0])
}
__global__ void waited_for(int *r, int *x) {
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(x[32]);
  THREADS(x[0] = 1; flag.store(1, cuda::memory_order_release),
          while (!flag.load(cuda::memory_order_acquire)) {}; r[0] = 1; r[1] = x[0])
}
__global__ void reads_first(int *r, V x) { THREADS(r[0] = x[32]; x[0] = 1, r[1] = x[0]; x[32] = 1) }
__global__ void copies_what_it_reads(int *r, V x) {
  THREADS(r[0] = x[0] = x[32], r[1] = x[32] = x[0])
}
__global__ void lost_update(int *x) { x[0] = x[0] + 1; }
__global__ void counted(int *x) { atomicAdd(x, 1); }
__global__ void one_wins(int *r, int *x) {
  if (atomicCAS(x, 0, 1 + blockIdx.x) == 0) r[blockIdx.x] = 1;
}
__global__ void met(int *r, int *x) {
  __shared__ int s[2];
  s[threadIdx.x] = threadIdx.x + 5;
  __syncthreads();
  r[threadIdx.x] = s[1 - threadIdx.x];
}
__global__ void met_in_the_warp(int *r, int *x) {
  __shared__ int s[2];
  s[threadIdx.x] = threadIdx.x + 5;
  __syncwarp(3);
  r[threadIdx.x] = s[1 - threadIdx.x];
}
__global__ void two_ways(int *r, int *x) {
  if (threadIdx.x) { r[1] = 1; __syncthreads(); } else { __syncthreads(); r[0] = r[1]; }
}
__global__ void one_stays_away(int *r, int *x) {
  if (threadIdx.x == 0) asm volatile("barrier.sync 0, 64;");
  else asm volatile("barrier.sync 1, 64;");
}
__global__ void shuffled(int *r, int *x) { r[threadIdx.x] = __shfl_xor_sync(3, x[threadIdx.x], 1); }
__global__ void jumps(int *r, int *x) { r[0] = x[*(V)(x + 1)]; }
__global__ void wide(int *r, int *x) { THREADS(*(long long *)x = -1, r[0] = x[0]) }
}
"""


@pytest.fixture(scope="module")
def loaded() -> wl.Module:
    return wl.Device().compile(SOURCE)


def seen(
    loaded: wl.Module, name: str, grid: int = 2, block: int = 1, model: str = "ptx"
) -> set[tuple[int, ...]]:
    """Returns what a kernel's results can be: r[0] and r[1], or x[0] where it has no r."""
    args = [np.zeros(2, np.int32), np.zeros(64, np.int32)]
    alone = name in ("lost_update", "counted")
    found = wl.litmus(loaded[name][grid, block], *args[alone:], model=model)
    label = "x" if alone else "r"
    states: set[tuple[int, ...]] = set()
    for one in found.outcomes:
        values = {k.split(" ")[0] + k[-3:]: v for k, v in one.values.items()}
        states.add(tuple(values.get(f"{label}[{i}]", 0) for i in range(2 - alone)))
    return states


ALL = {(0, 0), (0, 1), (1, 0), (1, 1)}


@pytest.mark.parametrize(
    ("name", "ptx", "interleaved"),
    [
        ("plain_stores", ALL, ALL - {(0, 0)}),
        ("fenced_stores", ALL - {(0, 0)}, ALL - {(0, 0)}),
        ("fenced_in_the_block", ALL, ALL - {(0, 0)}),
        ("message", ALL, ALL - {(1, 0)}),
        ("released", ALL - {(1, 0)}, ALL - {(1, 0)}),
        ("released_in_the_block", ALL, ALL - {(1, 0)}),
        ("waited_for", {(1, 1)}, {(1, 1)}),
        ("reads_first", ALL, ALL - {(1, 1)}),
        ("copies_what_it_reads", {(0, 0)}, {(0, 0)}),  # no value out of thin air
        ("one_wins", {(0, 1), (1, 0)}, {(0, 1), (1, 0)}),
    ],
)
def test_two_blocks(
    loaded: wl.Module,
    name: str,
    ptx: set[tuple[int, int]],
    interleaved: set[tuple[int, int]],
) -> None:
    assert seen(loaded, name) == ptx
    assert seen(loaded, name, model="sc") == interleaved


@pytest.mark.parametrize("name", ["met", "met_in_the_warp"])
def test_two_lanes_that_meet(loaded: wl.Module, name: str) -> None:
    assert seen(loaded, name, 1, 2) == {(6, 5)}


def test_barriers_meet_by_their_numbers(loaded: wl.Module) -> None:
    assert seen(loaded, "two_ways", 1, 2) == {(1, 1)}


def test_updates(loaded: wl.Module) -> None:
    assert seen(loaded, "lost_update", 3) == {(1,), (2,), (3,)}
    assert seen(loaded, "counted", 3) == {(3,)}


def test_a_barrier_without_partners_is_reported(loaded: wl.Module) -> None:
    found = wl.litmus(loaded["one_stays_away"][1, 2], np.zeros(2, np.int32), np.zeros(64, np.int32))
    assert not found.outcomes
    assert found.stuck


def test_loops_that_may_go_on_are_reported(loaded: wl.Module) -> None:
    args = np.zeros(2, np.int32), np.zeros(64, np.int32)
    assert wl.litmus(loaded["waited_for"][2, 1], *args).longer
    assert not wl.litmus(loaded["message"][2, 1], *args).longer


def test_a_weak_outcome_has_an_execution(loaded: wl.Module) -> None:
    args = np.zeros(2, np.int32), np.zeros(64, np.int32)
    (weak,) = wl.litmus(loaded["plain_stores"][2, 1], *args).weak
    output = "\n".join(weak.graph)
    assert "block 0 thread 0:" in output
    assert output.count("reads 0, the initial value") == 2
    assert output.count("kernel.cu:7)") == 6  # two stores, a load, in each block
    assert weak.dot.startswith("digraph")
    assert weak.dot.count("color=red") == 0  # both loads read initial values


def test_independent_reads_have_sixteen_outcomes_of_which_one_is_weak() -> None:
    module = wl.Device().compile(
        'extern "C" __global__ void k(int *r, volatile int *x) { int b = blockIdx.x;'
        "if (b == 0) x[0] = 1; if (b == 1) x[32] = 1;"
        "if (b == 2) { r[0] = x[0]; r[1] = x[32]; } if (b == 3) { r[2] = x[32]; r[3] = x[0]; } }"
    )
    found = wl.litmus(module["k"][4, 1], np.zeros(4, np.int32), np.zeros(64, np.int32))
    assert len(found.outcomes) == 16
    assert len(found.weak) == 1


@pytest.mark.parametrize(
    ("name", "block", "output"),
    [
        ("shuffled", 2, "shfl.*is not supported"),
        ("jumps", 1, "an address that depends on a loaded value is not supported"),
        ("wide", 1, r"an access to part of .* is not supported by the memory model"),
    ],
)
def test_what_is_not_explored_is_refused_with_its_line(
    loaded: wl.Module, name: str, block: int, output: str
) -> None:
    args = np.zeros(2, np.int32), np.zeros(64, np.int32)
    with pytest.raises(WarploomError, match=rf"kernel\.cu:\d+: .*{output}"):
        wl.litmus(loaded[name][2, block], *args)


def test_too_many_threads_are_refused(loaded: wl.Module) -> None:
    with pytest.raises(LaunchError, match="256 threads, but the search supports at most 128"):
        wl.litmus(loaded["counted"][2, 128], np.zeros(2, np.int32))


ALONE = r"""
extern "C" __global__ void k(int *out, const int *in) {
  __shared__ int s[4];
  int a = in[0], b = in[1];
  unsigned low, high;
  asm volatile("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"((long long)a * b));
  long long whole;
  asm volatile("mov.b64 %0, {%1, %2};" : "=l"(whole) : "r"(high), "r"(low));
  s[2] = a >> 3;
  s[1] = b * 7 % 13;
  int *any = blockIdx.x == 0 ? s : out + 8;
  out[0] = low; out[1] = high; out[2] = (int)(whole >> 20); out[3] = (short)(a * 77);
  out[4] = __float_as_int(a / 3.0f + __fsqrt_rn((float)(b & 1023)));
  out[5] = __popc(a) + __clz(b) + (a < b ? max(a, -b) : min(a, 5));
  out[6] = s[2] + (int)__double2ll_rz(b * 0.37);
  out[7] = (unsigned char)a + (signed char)b;
  *(volatile int *)any = a;
  out[8] = atomicMax(out + 9, a) + atomicInc((unsigned *)out + 10, 7);
}
"""


@pytest.mark.parametrize("given", [(6, 2), (-1000003, 123456), (2**31 - 1, 77), (-6, 2**30)])
def test_a_thread_alone_computes_what_the_machines_compute(given: tuple[int, int]) -> None:
    """One thread has one outcome: that of a launch."""
    kernel = wl.Device().compile(ALONE)["k"]
    out, data = np.zeros(11, np.int32), np.array(given, np.int32)
    (outcome,) = wl.litmus(kernel[1, 1], out, data).outcomes
    kernel[1, 1](out, data)
    found = {int(label.rpartition("[")[2][:-1]): value for label, value in outcome.values.items()}
    assert [found[i] for i in range(11)] == out.view(np.uint32).tolist()


def test_too_many_executions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warploom.memory_model.search.MOST", 100)
    module = wl.Device().compile(
        'extern "C" __global__ void k(int *x) { for (int i = 0; i < 4; i++) atomicAdd(x, 1); }'
    )
    with pytest.raises(WarploomError, match="more than 100 executions: use fewer threads"):
        wl.litmus(module["k"][4, 1], np.zeros(1, np.int32))


def test_too_many_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warploom.memory_model.paths.MOST", 10)
    module = wl.Device().compile(
        'extern "C" __global__ void k(volatile int *x, int *r) {'
        "for (int i = 0; i < 4; i++) if (x[i]) r[i] = 1; }"
    )
    with pytest.raises(WarploomError, match="more than 10 possible paths"):
        wl.litmus(module["k"][2, 1], np.zeros(4, np.int32), np.zeros(4, np.int32))


def test_memory_stays_as_it_is(loaded: wl.Module) -> None:
    x = np.zeros(2, np.int32)
    wl.litmus(loaded["counted"][2, 1], x)
    assert x.tolist() == [0, 0]
