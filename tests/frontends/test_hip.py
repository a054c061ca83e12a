"""Kernels of HIP: the words of its kernel language (HIP, "C++ language extensions"), for wavefronts
of 32 and of 64 lanes."""

from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import CompileError, UnsupportedInstruction

HEAD = "#include <hip/hip_runtime.h>\n"

INDICES = (
    HEAD
    + """
#include <iostream>
extern "C" __global__ void indices(int *out, int n)
{
    HIP_DYNAMIC_SHARED(int, staged)
    int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
    staged[hipThreadIdx_x] = i;
    __syncthreads();
    if (i < n) out[i] = 1000 * warpSize + staged[hipBlockDim_x - 1 - hipThreadIdx_x];
}
int main()
{
    int *out;
    hipMalloc(&out, 256);
    hipLaunchKernelGGL(indices, dim3(1), dim3(64), 256, 0, out, 64);
    std::cout << "not for the device" << std::endl;
}
"""
)

EXCHANGE = (
    HEAD
    + """
extern "C" __global__ void exchange(int *out, unsigned long long *votes)
{
    int lane = __lane_id();
    out[lane] = __shfl_xor(lane, 1) + 100 * __shfl(lane, 5) + 10000 * __any(lane == 3);
    votes[lane] = __ballot(lane % 2);
}
"""
)


@pytest.mark.parametrize("wavefront", [32, 64])
def test_kernels_have_the_words_of_hip(wavefront: int) -> None:
    """The second block of 64 reverses 64 to 127; what is for the host is left out."""
    gpu = wl.Device("h100", warp_size=wavefront)
    kernel = gpu.compile(INDICES, "hip")["indices"]
    out = np.zeros(128, np.int32)
    run = kernel[2, 64, None, 256](out, 128)
    assert out[:3].tolist() == [1000 * wavefront + 63 - i for i in range(3)]
    assert out[127] == 1000 * wavefront + 64
    assert "VGPRs Per Thread" in run.report()


def test_functions_of_a_wavefront_are_those_of_a_warp() -> None:
    """`__ballot` gives 64 bits, of which lanes 1, 3, 5 ... of 32 are set."""
    out, votes = np.zeros(32, np.int32), np.zeros(32, np.uint64)
    wl.Device().compile(EXCHANGE, "hip")["exchange"][1, 32](out, votes)
    assert out.tolist() == [(lane ^ 1) + 500 + 10000 for lane in range(32)]
    assert set(votes.tolist()) == {0xAAAAAAAA}


def test_they_are_refused_by_name_in_wavefronts_of_64() -> None:
    with pytest.raises(UnsupportedInstruction, match="is defined for warps of 32 lanes"):
        wl.Device(warp_size=64).compile(EXCHANGE, "hip")["exchange"].program  # noqa: B018


@pytest.mark.parametrize(
    "call", ["__builtin_amdgcn_s_sleep(1)", "__builtin_amdgcn_ds_bpermute(0, 0)"]
)
def test_what_is_not_there_is_refused_by_name(call: str) -> None:
    source = HEAD + f"__global__ void k(int *x) {{ x[0] = 1; {call}; }}"
    with pytest.raises(CompileError, match=call.partition("(")[0]):
        wl.Device().compile(source, "hip")


def test_files_are_known_by_their_suffix(tmp_path: Path) -> None:
    file = tmp_path / "indices.hip"
    file.write_text(INDICES, "utf-8")
    assert wl.Device().load(file)["indices"].name == "indices"
