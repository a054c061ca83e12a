"""The kernels that textbooks begin with, compiled as CUDA C++ on every device of the catalog."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.devices.catalog import catalog

KERNELS = Path(__file__).with_name("textbook.cu")

WIDE = """
.version 6.0
.target sm_30
.address_size 64
.visible .entry wide(.param .u64 out)DIRECTIVES
{
    .reg .u32 %r<200>; .reg .u64 %out, %at;
    ld.param.u64 %out, [out];
LOADS
STORES
    ret;
}
"""
"""A kernel that has 200 values live at once."""


def wide(directives: str = "") -> str:
    loads = "\n".join(f"    ld.volatile.global.u32 %r{n}, [%out + {4 * n}];" for n in range(200))
    stores = "\n".join(f"    st.volatile.global.u32 [%out + {4 * n}], %r{n};" for n in range(200))
    return WIDE.replace("LOADS", loads).replace("STORES", stores).replace("DIRECTIVES", directives)


@pytest.mark.parametrize("device", catalog())
def test_they_run_on_every_device(device: str) -> None:
    gpu = wl.Device(device)
    module = gpu.load(str(KERNELS))
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    module["saxpy"][4, 256](np.float32(2), x, y, 1000)
    assert (y == 2 * x + 1).all()
    totals = np.zeros(4, np.float32)
    module["sums"][4, 256](x, totals, 1000)
    assert totals.sum() == 999 * 1000 / 2
    a, c = np.random.default_rng(1).random((2, 32, 32), np.float32)
    module["product"][(2, 2), (16, 16)](a, a, c, 32)
    assert np.allclose(c, a @ a, rtol=1e-5)
    found, thread = np.zeros(64, np.float32), np.arange(64)
    module["branch_by_thread"][1, 64](found)
    assert (found == np.where(thread % 2 == 0, 100, 200)).all()
    module["branch_by_warp"][1, 64](found)
    assert (found == np.where(thread < 32, 100, 200)).all()


@pytest.mark.parametrize("device", ["v100", "gtx-980", "k40", "gtx-480"])
def test_a_block_with_too_many_registers_is_refused(device: str) -> None:
    """1,024 threads fit with at most 65,536 / 1,024 = 64 registers each (32 on 2.0, which has
    32,768); the kernel needs 200, or as many as the device allows a thread: 63 on 2.0."""
    gpu = wl.Device(device)
    kernel = gpu.compile(wide(), "ptx")["wide"]
    out = np.arange(200, dtype=np.uint32)
    with pytest.raises(wl.LaunchError, match="registers each") as caught:
        kernel[1, 1024](out)
    assert caught.value.resource == "registers"
    kernel[1, 32](out)
    assert (out == np.arange(200)).all()


def test_launch_bounds_limit_the_registers() -> None:
    """With launch bounds a compiler spills what does not fit, so that the block does."""
    kernel = wl.Device("v100").compile(wide(".maxntid 1024, 1, 1"), "ptx")["wide"]
    out = np.arange(200, dtype=np.uint32)
    kernel[1, 1024](out)
    assert kernel.resources.registers == 64


def test_contraction_below_2_0_is_left_to_the_user() -> None:
    """Compute capability 1.x has no fused multiply-add of floats, so `a * x + y` is two
    instructions; for a user who asks for one, the error says that the device has none."""
    gpu = wl.Device("8800-gtx")
    assert "fma" not in gpu.load(str(KERNELS)).ptx
    kernel, x = gpu.load(str(KERNELS), options=["-fmad=true"])["saxpy"], np.zeros(32, np.float32)
    with pytest.raises(wl.UnsupportedInstruction, match=r"does not support fma\.rn\.f32"):
        kernel[1, 32](np.float32(2), x, x, 32)


MAD = """.version 1.4
.target sm_10
.entry mads (.param .u64 out)
{
    .reg .u64 p; .reg .f32 a, b, c, d;
    ld.param.u64 p, [out];
    mov.f32 a, 0f3F800001; mov.f32 b, 0f3FE00000; mov.f32 c, 0fBFE00000;
    mad.f32 d, a, b, c; st.global.f32 [p], d;
    mov.f32 c, 0f80000000;
    mad.f32 d, a, b, c; st.global.f32 [p+4], d;
    mov.f32 a, 0f71800000; mov.f32 b, 0f4D800000; mov.f32 c, 0fFF000000;
    mad.f32 d, a, b, c; st.global.f32 [p+8], d;
    mad.sat.f32 d, a, b, c; st.global.f32 [p+12], d;
    exit;
}
"""


@pytest.mark.parametrize(
    ("device", "first"),
    [
        ("8800-gtx", 0x34000000),  # 2^-23: the product is 1.75 + 1.75 * 2^-23, cut off
        ("gtx-280", 0x34000000),
        ("gtx-480", 0x34600000),  # 1.75 * 2^-23: fused
    ],
)
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_products_of_mad_are_truncated_before_2_0(device: str, first: int, engine: str) -> None:
    """PTX ISA, "mad" for sm_1x: the mantissa of the product is truncated to 23 bits, its exponent
    is preserved (2^128 - 2^127 is 2^127); plus zero it is that of `mul`, rounded."""
    gpu = wl.Device(device, engine=engine)
    out = np.zeros(4, np.uint32)
    gpu.compile(MAD, "ptx")["mads"][1, 1](out)
    assert [hex(bits) for bits in out] == [hex(first), "0x3fe00002", "0x7f000000", "0x3f800000"]
