"""The remedy for an access out of bounds depends on the memory and on the side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl

KERNELS = """
extern "C" __global__ void dynamic(int *out)
{
    extern __shared__ int s[];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
extern "C" __global__ void fixed(int *out)
{
    __shared__ int s[16];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[15 - threadIdx.x % 16];
}
extern "C" __global__ void halo(int *out) { out[threadIdx.x] = out[(int)threadIdx.x - 1]; }
extern "C" __global__ void shared_halo(int *out)
{
    __shared__ int s[32];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[(int)threadIdx.x - 1];
}
extern "C" __global__ void tail(int *out) { out[threadIdx.x + 1] = 1; }
extern "C" __global__ void chosen(int *out, int k)
{
    int own[8];
    for (int i = 0; i < 8; i++) own[i] = out[i];
    out[threadIdx.x] = own[k];
}
"""


@pytest.fixture(scope="module", params=["compiled", "reference"])
def module(request: pytest.FixtureRequest) -> Any:
    return wl.Device("a100", engine=request.param).compile(KERNELS, name="k.cu")


def remedy(module: Any, name: str, *more: int) -> str:
    out = np.zeros(32, np.int32)
    with pytest.raises(wl.WarploomError) as caught:
        module[name][1, 32](out, *more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "more", "said", "unsaid"),
    [
        ("dynamic", (), "--shared BYTES", "for a tail"),
        ("fixed", (), "Make the __shared__ array", "extern"),
        ("halo", (), "if (i >= 0)", "for a tail"),
        ("tail", (), "if (i < n)", "halo"),
        ("chosen", (1000,), "make the array larger", "for a tail"),
        ("chosen", (-10,), "if (i >= 0)", "for a tail"),
    ],
)
def test_the_remedy_fits_the_access(
    module: Any, name: str, more: tuple[int, ...], said: str, unsaid: str
) -> None:
    message = remedy(module, name, *more)
    assert said in message
    assert unsaid not in message


def test_an_index_below_zero_of_shared_memory_is_before_it(module: Any) -> None:
    message = remedy(module, "shared_halo")
    assert "is 4 bytes before the nearest allocation" in message
    assert "if (i >= 0)" in message


def test_a_null_pointer_is_called_one(module: Any) -> None:
    with pytest.raises(wl.WarploomError, match="The pointer is null"):
        module["tail"][1, 32](0)
