"""Machine instructions that a launch executes, against what follows from the text of its kernel.

The listing of a kernel is cut into stretches of straight code: at targets of branches, and behind
what leads elsewhere. How often the warps of a launch execute each is worked out by hand from the
kernel's text and its launch. Each group of lanes that comes to a BSYNC executes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.host.module import Module
from warploom.machinecode.counted import MachineCounts
from warploom.machinecode.listing import Listing

KERNELS = """
extern "C" __global__ void counted_loop(float *out, const float *in, int n) {
  float sum = 0;
  #pragma unroll 1
  for (int k = 0; k < n; ++k) sum += in[32 * k + threadIdx.x];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void guarded(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = in[i] * 2 + 1;
}
extern "C" __global__ void two_sides(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i % n == 0) {
    #pragma unroll 1
    for (int k = 0; k < 3; ++k) out[i] += in[k];
  } else {
    #pragma unroll 1
    for (int k = 0; k < 5; ++k) out[i] -= in[k];
  }
  out[i] *= in[7];
}
extern "C" __global__ void nested(float *out, const float *in, int n) {
  int i = threadIdx.x;
  float x = in[i];
  if (i & 1) {
    out[i] = x;
    if (i & 2) {
      #pragma unroll 1
      for (int k = 0; k < n; ++k) out[i + 32 * k] += x;
    }
    __threadfence_block();
    out[i + 1024] = x * 3;
  }
  out[i + 2048] = in[i + 32] + x;
}
extern "C" __global__ void unrolled_by_four(float *out, const float *in, int n) {
  float sum = 0;
  #pragma unroll 4
  for (int k = 0; k < n; ++k) sum += in[32 * k + threadIdx.x];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void tree_switch(int *out, const int *in, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int x = in[i];
  switch ((i / by) & 7) {
    case 0: out[i] = x * 3; break;
    case 1: atomicAdd(out + i, x); break;
    case 2: atomicMax(out + i, x); break;
    case 3: out[i + 4096] = x ^ 5; out[i] = 1; break;
    case 4: atomicExch(out + i, x); break;
    case 5: atomicOr(out + i, x); break;
    case 6: out[2 * i] = x; break;
    default: atomicAnd(out + i, x);
  }
  out[i + 8192] = x + 1;
}
__device__ __noinline__ float called(float x, const float *in) {
  float sum = x;
  #pragma unroll 1
  for (int k = 0; k < 2; ++k) sum = sum * x + in[k];
  return sum; }
extern "C" __global__ void calling(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = called(in[i], in);
  #pragma unroll 1
  for (int k = 0; k < n; ++k) x = called(x, in + k);
  out[i] = x;
}
extern "C" __global__ void predicated(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  if (x > 0) x = in[i + 1024];
  if (i & 1) x += 2;
  if (i < n) out[i] = x;
}
extern "C" __global__ void divergent_loop(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  #pragma unroll 1
  for (int k = 0; k < (i & 3); k++) sum += in[32 * k + i];
  if (i < n) out[2 * i] = sum;
}
extern "C" __global__ void breaking(float *out, const float *in, int n) {
  int i = threadIdx.x;
  float x = in[i];
  #pragma unroll 1
  for (int k = 0; k < n; ++k) {
    x += in[i + 32 * k];
    if (k == (i & 7)) break;
    out[i + 32 * k] = x;
  }
  out[i + 1024] = x;
}
extern "C" __global__ void reduced(float *out, const float *in, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
  #pragma unroll 1
  for (int s = 32; s > 0; s >>= 1) {
    if (t < s) tile[t] += tile[t + s];
    __syncthreads();
  }
  if (t == 0) out[0] = tile[0];
}

extern "C" __global__ void dense_switch(int *out, const int *in, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int x = in[i], y = in[i + 64];
  switch (i / by % 16) {
    case 0: y = x * 3 + y; break;
    case 1: y = x ^ y; x = __clz(y); break;
    case 2: atomicAdd(out + x, y); break;
    case 3: out[x] = y; y = x; break;
    case 4: y = __popc(x) + y; break;
    case 5: atomicMax(out + x, y); break;
    case 6: out[2 * x] = y; y = 7; break;
    case 7: y = __brev(x ^ y); break;
    case 8: x = y * y; break;
    case 9: atomicOr(out + y, x); break;
    case 10: y = out[x + 3]; break;
    case 11: y = in[y]; break;
    case 12: y = (x >> (y & 7)) + x; break;
    case 13: atomicExch(out + y, 3); break;
    case 14: y = __ffs(x); break;
    case 15: y = x - 2 * y; break;
  }
  out[i + 8192] = x + y;
}
"""

CAPABILITIES = (
    "7.5",
    "9.0",
    *(pytest.param(cc, marks=pytest.mark.nightly) for cc in ("8.0", "8.6")),
)
ENDS = ("BRA", "BRX", "CALL", "RET", "EXIT", "BSYNC")


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel with `number` as its last argument, the values of its input in turn,
    and how often each stretch of the listing is executed."""

    kernel: str
    grid: int
    block: int
    number: int
    executed: tuple[int, ...]
    inputs: tuple[int, ...] = (1,)


LAUNCHES = (
    # 4 warps, 7 turns each, with what stands before the loop.
    Launch("counted_loop", 2, 64, 7, (4, 4, 4 * 7, 4)),
    # Of 6 warps the last has threads 160 to 191 alone, and leaves; with 192 all stay, with 1 one.
    Launch("guarded", 3, 64, 150, (6, 5)),
    Launch("guarded", 3, 64, 192, (6, 6)),
    Launch("guarded", 3, 64, 1, (6, 1)),
    # 4 warps, all of which part: odd threads have 5 turns, the first of them before the loop, then
    # they jump; even ones have 3. Both groups come to the BSYNC.
    Launch("two_sides", 2, 64, 2, (4, 4, 4 * 4, 4, 4, 4 * 3, 2 * 4, 4)),
    # All threads on the one side, which all threads divided by 1 are on.
    Launch("two_sides", 2, 64, 1, (4, 0, 0, 0, 4, 4 * 3, 4, 4)),
    # 2 warps part at the outer branch, their odd lanes at the inner one, before 3 turns.
    Launch("nested", 1, 64, 3, (2, 2, 2, 2 * 3, 2 * 2, 2, 2 * 2, 2)),
    # Without turns the inner branch parts nobody.
    Launch("nested", 1, 64, 0, (2, 2, 0, 0, 2, 2, 2 * 2, 2)),
    # 11 turns of 4 warps are 2 of four at once and 3; 8 are 2; 3 are 3.
    Launch("unrolled_by_four", 2, 64, 11, (4, 4, 4, 4 * 2, 4, 4, 4 * 3, 4)),
    Launch("unrolled_by_four", 2, 64, 8, (4, 4, 4, 4 * 2, 4, 0, 0, 4)),
    Launch("unrolled_by_four", 2, 64, 3, (4, 4, 0, 0, 4, 4, 4 * 3, 4)),
    # 8 warps, each with a case of its own, through a tree of comparisons: more than 2; 0; 1; 2;
    # cases 2, 1, 0; more than 4; 3; 4; cases 4, 3; 5; 6 with its case; the default's BSYNC and the
    # default; case 5.
    Launch(
        "tree_switch",
        *(4, 64, 32),
        (8, 3, 2, 1, 1, 1, 1, 5, 2, 1, 1, 1, 3, 2, 1, 1, 1, 8, 8),
    ),
    # 8 warps with all 8 cases each: groups of lanes part at every comparison.
    Launch("tree_switch", 4, 64, 4, (*(17 * (8,)), 8 * 8, 8)),
    # 16 warps, each with a case of its own: halves of 8, 4 and 2, then a table of two.
    Launch(
        "dense_switch",
        *(8, 64, 32),
        (
            *(16, 8, 4, 2, 1, 1, 2, 1, 1, 4, 2, 1, 1, 2, 1, 1),
            *(8, 4, 2, 1, 1, 2, 1, 1, 4, 2, 1, 1, 2, 1, 1, 1, 16, 16),
        ),
    ),
    # 4 warps with 8 cases each, of 16: two have each case.
    Launch("dense_switch", 2, 64, 4, (4, *(31 * (2,)), 4 * 8, 4)),
    # 4 warps call once, then 3 times in a loop; the function has 2 turns.
    Launch("calling", 2, 64, 3, (4, 4, 4, 4 * 3, 4 * 3, 4, 4 * 4, 4 * 4 * 2, 4 * 4)),
    # 6 warps; of all threads, of every other one and of none is the input above 0. 4 warps have
    # threads below 100.
    Launch("predicated", 3, 64, 100, (6, 6, 6, 6, 4)),
    Launch("predicated", 3, 64, 100, (6, 6, 2 * 6, 6, 4), (0, 1)),
    Launch("predicated", 3, 64, 100, (6, 0, 6, 6, 4), (0,)),
    # 6 warps, whose lanes leave the loop after 0 to 3 turns and come to the BSYNC; the last warp
    # leaves the kernel.
    Launch("divergent_loop", 3, 64, 150, (6, 6, 6 * 3, 6 * 4, 6, 5)),
    # 2 warps have 5 turns; in each turn a group of lanes breaks, after the last the rest goes on.
    Launch("breaking", 1, 64, 5, (2, 2, 2 * 5, 2 * 5, 2 * 6, 2)),
    # 2 warps have 6 turns, in which they part under guards alone; the second leaves.
    Launch("reduced", 1, 64, 0, (2, 2 * 6, 2, 1)),
)


def stretches(listing: Listing) -> list[tuple[int, int]]:
    """Return where each stretch of straight code begins and stops."""
    code = listing.instructions
    place = {made.offset: index for index, made in enumerate(code)}
    begins = {0, *(place[target] for made in code for target in made.targets)}
    begins |= {index + 1 for index, made in enumerate(code) if made.name in ENDS}
    kept = sorted(index for index in begins if index < len(code))
    return list(zip(kept, [*kept[1:], len(code)], strict=True))


def executed_by_hand(listing: Listing, executed: tuple[int, ...]) -> list[int]:
    """Return how often each instruction is executed; nothing is behind the last stretch but what
    fills the end of the code."""
    found = [0] * len(listing.instructions)
    for (start, stop), count in zip(stretches(listing), executed, strict=False):
        found[start:stop] = [count] * (stop - start)
    return found


@pytest.fixture(scope="module", params=CAPABILITIES)
def compiled(request: pytest.FixtureRequest) -> tuple[wl.Device, Module]:
    gpu = wl.Device(cc=request.param)
    return gpu, gpu.compile(KERNELS)


def counts_of(compiled: tuple[wl.Device, Module], launch: Launch) -> MachineCounts:
    gpu, module = compiled
    whole = "switch" in launch.kernel
    kind = np.int32 if whole else np.float32
    given = np.resize(np.array(launch.inputs, kind), 1 << 14)
    launcher = module[launch.kernel][launch.grid, launch.block]
    return launcher(gpu.zeros(1 << 14, kind), gpu.to_device(given), launch.number).machine


@NEEDS_PTXAS
@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda one: f"{one.kernel}-{one.number}")
def test_instructions_are_executed_as_often_as_the_text_says(
    compiled: tuple[wl.Device, Module], launch: Launch
) -> None:
    counts = counts_of(compiled, launch)
    by_hand = executed_by_hand(counts.matching.listing, launch.executed)
    assert list(counts.by_instruction) == by_hand
    assert counts.instructions == sum(by_hand)
