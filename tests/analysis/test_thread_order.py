"""Checks which launches have an order of threads that is not observable in their loops."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.analysis.linear.thread_order import are_threads_independent

N = 1 << 14

CASES = {
    "c[i] = a[i] + b[i];": True,
    "c[i] += a[i];": True,
    "sum += a[i] * b[i];": True,
    "atomicAdd(&c[a[i] & 63], 1);": True,
    # Two threads write one element, or one reads what another one writes.
    "c[i / 2] = a[i];": False,
    "c[i] = c[i + 1];": False,
    "c[i] = a[i]; b[i] = c[i ^ 1];": False,
    # The order shows in what the atomic returns, in the clock, and in what is printed.
    "c[i] = atomicAdd(&b[0], 1);": False,
    "c[i] = clock();": False,
    'printf("%d ", a[i]);': False,
    # Threads of a block share the tile while they are in the loop. The step is a multiple of 256:
    # each has an element of 256 to itself.
    "tile[i & 127] += a[i];": False,
    "tile[i & 255] += a[i];": True,
    "tile[(i & 255) ^ 1] += tile[i & 255];": False,
    "sum += tile[255 - threadIdx.x] + a[i];": True,
    # Where it writes follows from memory.
    "c[a[i]] = 1;": False,
}


@pytest.fixture(scope="module")
def gpu() -> wl.Device:
    return wl.Device("a100")


def are_independent(gpu: wl.Device, loop: str) -> bool:
    """Returns the answer for a kernel with a loop: the sum of each block is a tree in shared memory
    after a barrier."""
    source = f"""
#include <cstdio>
extern "C" __global__ void k(int *a, int *b, int *c, int n) {{
    __shared__ int tile[256];
    int sum = 0, all = gridDim.x * blockDim.x;
    tile[threadIdx.x] = 0;
    __syncthreads();
    {loop}
    __syncthreads();
    tile[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < 128) tile[threadIdx.x] += tile[threadIdx.x + 128];
    __syncthreads();
    if (threadIdx.x == 0) c[blockIdx.x] = tile[0] + tile[1];
}}
"""
    kernel = gpu.compile(source)["k"]
    program = kernel.program
    arrays = [gpu.to_device(np.zeros(N + 1, np.int32)) for _ in range(3)]
    data = bytearray(program.parameter_bytes)
    values = [*(array.address for array in arrays), N]
    for parameter, value in zip(kernel.function.parameters, values, strict=True):
        place = program.slots[parameter.name]
        data[place.offset : place.offset + place.size] = value.to_bytes(place.size, "little")

    def allocation_of(address: int) -> range | None:
        found = gpu.memory.find(address)
        return range(found.address, found.address + found.size) if found else None

    addresses = kernel.image.addresses(program.globals)
    launch = LaunchInputs((8, 1, 1), (256, 1, 1), bytes(data), addresses, allocation_of)
    return are_threads_independent(program, launch)


@pytest.mark.parametrize("body", CASES)
def test_loops_over_the_grid(gpu: wl.Device, body: str) -> None:
    loop = f"for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += all) {{ {body} }}"
    assert are_independent(gpu, loop) == CASES[body]


def test_a_kernel_without_a_loop_has_nothing_to_interleave(gpu: wl.Device) -> None:
    assert not are_independent(gpu, "c[threadIdx.x] = a[threadIdx.x];")
