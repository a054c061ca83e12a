"""The remedy for threads that change one element is the atomic that does so: a barrier would not
help."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

HEAD = 'extern "C" __global__ void k(int *bins, const int *x)'


def remedy(body: str, block: int = 64) -> str:
    """Returns the first race of a kernel on 64 equal elements of `x`."""
    gpu = wl.Device("a100")
    kernel = gpu.compile(f"{HEAD} {{ int t = threadIdx.x; {body} }}", name="k.cu")["k"]
    bins, x = gpu.zeros(256, np.int32), gpu.to_device(np.full(64, 3, np.int32))
    run = kernel[1, block](bins, x, sanitize=["race"])
    return str(next(one for one in run.findings if one.kind == "race"))


@pytest.mark.parametrize(
    ("body", "atomic"),
    [
        ("bins[x[t]]++;", "atomicAdd()"),
        ("int v = bins[x[t]]; v = max(v, t); bins[x[t]] = v;", "atomicMax()"),
        ("bins[x[t]] |= 1 << (t & 31);", "atomicOr()"),
        (
            "__shared__ int s; s = 0; __syncthreads(); s += t; __syncthreads(); *bins = s;",
            "atomicAdd()",
        ),
        ("bins[x[t]] = bins[x[t]] / 3 + t;", "an atomic operation, or atomicCAS() in a loop"),
    ],
)
def test_an_update_by_several_threads_wants_an_atomic(body: str, atomic: str) -> None:
    message = remedy(body)
    assert f"Use {atomic}" in message
    assert "__syncthreads" not in message


@pytest.mark.parametrize(
    "body",
    [
        # Threads read what others write, at another index: a barrier between orders them.
        "__shared__ int s[128]; s[t] = t; s[t] += s[t + 32]; bins[t] = s[t];",
        "bins[t] = t; bins[128 + t] = bins[(t + 32) % 64];",
    ],
)
def test_an_exchange_wants_a_barrier(body: str) -> None:
    assert "__syncthreads()" in remedy(body)
