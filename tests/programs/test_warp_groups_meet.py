"""A product is one operation of a warp group: where one of its warps finds it complete, all have
read their matrices."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

KERNEL = """
// D = A * B of ones, 64 x 16 by 16 x 8. One thread of the group says that B is free, and another
// group writes zeros over it.
extern "C" __global__ void product(float *d, int signals, int skipped)
{
    __shared__ __align__(128) unsigned b[64];
    __shared__ unsigned long long free;
    unsigned bar = __cvta_generic_to_shared(&free), ones = 0x3c003c00;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    if (threadIdx.x < 64) b[threadIdx.x] = ones;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x < 128) {
        unsigned long long at = __cvta_generic_to_shared(b) >> 4 | 8ull << 16 | 16ull << 32;
        float c[4];
        asm volatile("wgmma.fence.sync.aligned;\\n"
                     "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, "
                     "{%4, %4, %4, %4}, %5, 0, 1, 1, 0;\\n"
                     "wgmma.commit_group.sync.aligned;"
                     : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]) : "r"(ones), "l"(at));
        if (threadIdx.x / 32 != skipped)
            asm volatile("wgmma.wait_group.sync.aligned 0;"
                         : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) :: "memory");
        if (threadIdx.x == signals)
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(bar) : "memory");
        for (int i = 0; i < 4; i++) d[4 * threadIdx.x + i] = c[i];
    } else {
        asm volatile("{.reg .pred done;\\n"
                     "again: mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\\n"
                     "@!done bra again;}" :: "r"(bar) : "memory");
        if (threadIdx.x < 192) b[threadIdx.x - 128] = 0;
    }
}
"""


def product(gpu: wl.Device, signals: int = 0, skipped: int = -1) -> tuple[wl.Run, np.ndarray]:
    """Run the kernel; thread `signals` says that B is free, and warp `skipped` does not wait.
    Return the run and D."""
    d = np.zeros(512, np.float32)
    made = gpu.compile(KERNEL, options=["--gpu-architecture=sm_90a"])
    return made["product"][1, 256](d, signals, skipped), d


@pytest.mark.parametrize(
    ("engine", "schedule"),
    [
        *(("compiled", policy) for policy in ("converge", "fair", "random", "adversarial")),
        ("reference", "converge"),
        ("reference", "random"),
    ],
)
def test_one_thread_speaks_for_its_group(engine: str, schedule: str) -> None:
    gpu = wl.Device("h100", engine=engine, schedule=schedule, seed=1)
    for signals in (0, 96):
        assert (product(gpu, signals)[1] == 16).all()


def test_the_race_detector_knows_it() -> None:
    assert not product(wl.Device("h100", sanitize=("race",)))[0].findings


def test_a_warp_that_does_not_wait_is_missed() -> None:
    with pytest.raises(wl.DeadlockError, match=r"the other warps of the warpgroup"):
        product(wl.Device("h100"), skipped=2)


def test_the_barrier_is_not_counted() -> None:
    run, _ = product(wl.Device("h100"))
    assert run.counters.barriers == 8  # __syncthreads(), by each of 8 warps
