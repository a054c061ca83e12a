"""Tests each stall reason with a kernel in which it is the most frequent one."""

from __future__ import annotations

import numpy as np
import pytest
from chains import timed
from test_accounts import balanced

import warploom as wl
from warploom.timing.layout import REASONS

MANY = 24


def lines(text: str) -> str:
    return "\n".join(text.format(i=i % 8, j=10 + i % 54) for i in range(MANY))


KERNELS = {
    # an operand of the instruction before, of fixed latency
    "wait": ("7.0", 32, "fma.rn.f32 %f1, %f1, %f2, %f3;"),
    # of varying latency, on the chip
    "short_scoreboard": ("7.0", 32, "ld.shared.u32 %r1, [%r1];"),
    "long_scoreboard": ("7.0", 32, "ld.global.cg.u64 %d2, [%d2];"),
    # a write that has to be seen by all
    "membar": ("7.0", 32, "st.global.u32 [%d2], %r1;\nmembar.gl;"),
    # more double precision than two lanes take
    "math_pipe_throttle": ("7.5", 1024, "add.rn.f64 %e{j}, %e2, %e3;"),
    # a store to shared memory of 32 conflicts, again and again
    "mio_throttle": ("7.0", 1024, "st.shared.v4.u32 [%r9], {{%r1, %r2, %r3, %r4}};"),
    # as many stores as there is no room for
    "lg_throttle": ("7.0", 1024, "st.global.v4.u32 [%d2], {{%r1, %r2, %r3, %r4}};"),
    "sleeping": ("7.0", 32, "nanosleep.u32 1000;"),
    # an issue takes four cycles
    "dispatch_stall": ("1.3", 512, "add.rn.f32 %f{j}, %f2, %f3;"),
    # all could go on, and one does
    "not_selected": ("9.0", 1024, "add.rn.f32 %f{j}, %f2, %f3;"),
}


@pytest.mark.parametrize("reason", KERNELS)
def test_kernel_made_for_a_stall_reason_has_it_most(reason: str) -> None:
    cc, block, text = KERNELS[reason]
    time = timed(lines(text), cc, block)
    balanced(time)
    states = dict(time.stalls if reason == "dispatch_stall" else time.warp_states)
    for other in ("no_instruction", "no_warp", "drain"):  # the launch, the end
        states.pop(other, None)
    assert max(states, key=lambda name: states[name]) == reason


SOURCE = """
extern "C" __global__ void barriers(float *y) {
    for (int i = 0; i < 64; i++) {
        if (threadIdx.x < 32) for (int j = 0; j < 16; j++) y[0] = y[0] * 1.5f;
        __syncthreads();
    }
}
extern "C" __global__ void branches(int *y, int n) {
    #pragma unroll 1
    for (int i = 0; i < n; i++) asm volatile("");
    y[0] = n;
}
extern "C" __global__ void stores(float4 *y) { y[threadIdx.x * 64] = make_float4(1, 2, 3, 4); }
"""


@pytest.mark.parametrize(
    ("name", "reason", "arguments"),
    [
        ("barriers", "barrier", ()),
        ("branches", "branch_resolving", (1000,)),
        ("stores", "drain", ()),
    ],
)
def test_waits_at_barriers_branches_and_drains(
    name: str, reason: str, arguments: tuple[int, ...]
) -> None:
    """All warps but one wait at the barrier; an empty loop is branches; a warp ends only after its
    stores have left the queue."""
    gpu = wl.Device("v100", record=True)
    buffer = gpu.zeros(1024 * 64 * 4, np.int32 if name == "branches" else np.float32)
    threads = 32 if name == "branches" else 1024
    time = gpu.compile(SOURCE)[name][1, threads](buffer, *arguments).time()
    balanced(time)
    states = {k: v for k, v in time.warp_states.items() if k not in ("no_instruction", "wait")}
    assert max(states, key=lambda one: states[one]) == reason


def test_code_larger_than_instruction_cache_stalls() -> None:
    """A loop of 1,600 instructions runs 8 times through a cache for 768 (an estimate): when it
    begins again, its first line has been evicted, and takes 39 cycles to load. A loop of 400 stays
    cached."""
    waits: list[int] = []
    for count in (400, 1600):
        body = "\n".join(f"add.rn.f32 %f{10 + i % 54}, %f2, %f3;" for i in range(count))
        again = "add.s32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 8;\n@%p1 bra L;"
        loop = f"mov.u32 %r1, 0;\nL: {body}\n{again}"
        waits.append(timed(loop, "7.0").warp_states["no_instruction"])
    assert waits[1] - waits[0] == pytest.approx(7 * 39, rel=0.2)


def test_every_stall_reason_has_a_test() -> None:
    """Texture throttle is in test_textures; selected and no_warp are in every kernel."""
    tested = {*KERNELS, "barrier", "branch_resolving", "drain", "no_instruction"}
    assert tested | {"tex_throttle", "selected", "no_warp"} == set(REASONS)
