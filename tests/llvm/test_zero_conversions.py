"""An integer 0 is +0 in every rounding mode: LLVM's vector code of `uitofp` gives -0 downwards."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
    .reg .b32 %t;
    .reg .b64 %p, %q, %at;
    .reg .b{source} %a;
    .reg .b{result} %d;
    ld.param.u64 %p, [out];
    ld.param.u64 %q, [in];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %t, 8;
    add.u64 %p, %p, %at;
    add.u64 %q, %q, %at;
    ld.global.b{source} %a, [%q];
    cvt.{mode}.f{result}.{type} %d, %a;
    st.global.b{result} [%p], %d;
    ret;
}}
"""


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("type", ["u16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("result", [32, 64])
def test_zero_is_positive(mode: str, type: str, result: int) -> None:
    gpu = wl.Device("h100")
    zeros, out = gpu.zeros(32, np.uint64), gpu.zeros(32, np.uint64)
    text = PTX.format(mode=mode, type=type, source=int(type[1:]), result=result)
    gpu.compile(text, "ptx")["k"][1, 32](out, zeros)
    assert not out.copy_to_host().any()
