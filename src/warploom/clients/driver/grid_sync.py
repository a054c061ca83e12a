"""What NVIDIA's device runtime library gives to programs that synchronise a whole grid.

Numba calls these two functions; a module that declares them gets them linked in. How blocks wait
for each other is as in cooperative_groups: the launch lends a workspace (`host.launcher`) whose
address kernels find in %envreg1 and %envreg2.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def with_runtime(device: Device, text: str, name: str, others: Sequence[str] = ()) -> Module:
    """The program of a PTX text and `others`, with the functions of the device runtime that it
    declares."""
    parts = {name: text} | {f"{name}, part {n}": part for n, part in enumerate(others, 2)}
    if any(needed in part for needed in NAMES for part in parts.values()):
        from warploom.frontends.cuda_cpp import compile_cuda

        cc, file = device.spec.compute_capability, "grid_sync.cu"
        parts[file] = compile_cuda(SOURCE, file, cc, ("-rdc=true",))
    if len(parts) == 1:
        return device.compile(text, "ptx", name=name)
    return device.link([*parts.values()], names=[*parts])
