"""Tests that integer products of 64 bits occupy the multiplier twice as long, in machine code."""

from __future__ import annotations

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl

pytestmark = NEEDS_PTXAS

CHAIN = """
extern "C" __global__ void chain(unsigned *out, unsigned a, unsigned b)
{{
    unsigned x = a + threadIdx.x;
#pragma unroll
    for (int i = 0; i < {length}; i++)
        asm volatile("{instruction}" : "+r"(x) : "r"(b));
    out[threadIdx.x] = x;
}}
"""


@pytest.mark.parametrize(
    ("instruction", "cycles"),
    [("mul.hi.u32 %0, %0, %1;", 3.8), ("mad.lo.s32 %0, %0, %1, %1;", 1.8)],
)
def test_chains_of_products_take_as_long_as_on_an_h100(instruction: str, cycles: float) -> None:
    """Each of the four schedulers issues the products of 8 warps. An H100 took 1,934 cycles for 64
    of mul.hi.u32, 940 for 64 of mad.lo.s32: 3.8 and 1.8 for each of a warp."""
    gpu = wl.Device("h100", record=True)
    out = gpu.zeros(1024, np.uint32)

    def modelled(length: int) -> int:
        """Returns the modelled cycles of chains of a length."""
        source = CHAIN.format(length=length, instruction=instruction)
        timing = gpu.compile(source)["chain"][1, 1024](out, 3, 5).time()
        assert timing.basis.code == "machine code"
        return timing.cycles

    each = (modelled(128) - modelled(64)) / (64 * 8)
    assert each == pytest.approx(cycles, rel=0.15)
