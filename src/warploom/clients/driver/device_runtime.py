"""Links NVIDIA's device runtime library to kernels: the functions that they call and that no
part of their program defines.

Waiting for the whole grid is as in cooperative_groups: the launch lends a workspace
(`host.launcher`) whose address kernels find in %envreg1 and %envreg2. A condition of a graph is a
value in device memory, whose address is its handle (`conditionals`).
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.clients.linking import parts_of
from warploom.host.device import Device
from warploom.host.module import Module

GRID_SYNC = ("cudaCGGetIntrinsicHandle", "cudaCGSynchronize")

GRID_SYNC_SOURCE = """\
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

SET_CONDITION = "cudaGraphSetConditional"

SET_CONDITION_PTX = """\
.version 6.0
.target sm_30
.address_size 64
.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
    .reg .b64 %address;
    .reg .b32 %given;
    ld.param.b64 %address, [handle];
    ld.param.b32 %given, [value];
    st.volatile.global.b32 [%address], %given;
    ret;
}
"""


def with_runtime(device: Device, text: str, name: str, others: Sequence[str] = ()) -> Module:
    """Returns the program of a PTX text and `others`, with the functions of the device runtime that
    it declares."""
    parts = parts_of(name, text) | {f"{name}, part {n}": part for n, part in enumerate(others, 2)}
    texts = [*parts.values()]
    if any(needed in part for needed in GRID_SYNC for part in texts):
        from warploom.frontends.cuda_cpp import compile_cuda

        cc, file = device.spec.compute_capability, "grid_sync.cu"
        parts[file] = compile_cuda(GRID_SYNC_SOURCE, file, cc, ("-rdc=true",))
    if any(SET_CONDITION in part for part in texts):
        parts["set_condition.ptx"] = SET_CONDITION_PTX
    if len(parts) == 1:
        return device.compile(text, "ptx", name=name)
    return device.link([*parts.values()], names=[*parts])
