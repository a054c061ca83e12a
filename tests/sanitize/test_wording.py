"""Words of findings: the names of shared variables, and OpenCL's terms for its kernels."""

from __future__ import annotations

import numpy as np

import warploom as wl
from warploom.core.wording import in_words_of_source

KERNEL = """
__global__ void mirror(float *x) {
    __shared__ float other[8], tile[64];
    other[threadIdx.x % 8] = 1;
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


def test_a_finding_in_shared_memory_names_the_variable() -> None:
    gpu = wl.Device(sanitize=("race",))
    run = gpu.compile(KERNEL)["mirror"][1, 64](gpu.to_device(np.ones(64, np.float32)))
    texts = [one.message for one in run.findings if one.severity == "error"]
    assert texts
    assert all(
        "`tile`, byte " in text and " of 256 (in the block's shared" in text for text in texts
    )


def test_kernels_of_opencl_get_its_terms() -> None:
    message = (
        "Race reported between Read access\n"
        "    at thread.cl:8 by thread (0, 0, 0) in block (0, 0, 0)\n"
        "    in __shared__ memory: the block's shared memory, byte 64 of 512\n"
        "    Put __syncthreads() between them, or __syncwarp() within a warp."
    )
    assert in_words_of_source(message) == (
        "Race reported between Read access\n"
        "    at thread.cl:8 by work-item (0, 0, 0) in work-group (0, 0, 0)\n"
        "    in __local memory: the work-group's local memory, byte 64 of 512\n"
        "    Put barrier(CLK_LOCAL_MEM_FENCE) between them, or"
        " sub_group_barrier(CLK_LOCAL_MEM_FENCE) within a sub-group."
    )
    of_cuda = message.replace("thread.cl", "thread.cu")
    assert in_words_of_source(of_cuda) == of_cuda
