"""What NVIDIA's device runtime library gives to programs that synchronise a whole grid.

Numba calls these two functions; a module that declares them gets them linked in. How blocks wait
for each other is as in cooperative_groups: the launch lends a workspace (`host.launcher`) whose
address kernels find in %envreg1 and %envreg2.
"""

from __future__ import annotations

from warploom.host.device import Device
from warploom.host.module import Module

NAMES = ("cudaCGGetIntrinsicHandle", "cudaCGSynchronize")

SOURCE = """\
#include <cooperative_groups.h>

extern "C" __device__ unsigned long long cudaCGGetIntrinsicHandle(enum cudaCGScope scope)
{
    return scope == cudaCGScopeGrid;
}

extern "C" __device__ cudaError_t cudaCGSynchronize(unsigned long long handle, unsigned int flags)
{
    cooperative_groups::this_grid().sync();
    return cudaSuccess;
}
"""


def with_runtime(device: Device, text: str, name: str) -> Module:
    """The program of a PTX text, with the functions of the device runtime that it declares."""
    if not any(needed in text for needed in NAMES):
        return device.compile(text, "ptx", name=name)
    from warploom.frontends.cuda_cpp import compile_cuda

    runtime = compile_cuda(SOURCE, "grid_sync.cu", device.spec.compute_capability, ("-rdc=true",))
    return device.link([text, runtime], names=[name, "grid_sync.cu"])
