"""Calls through a pointer where no function's address is taken: fine if nobody comes there."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.host.engines import ENGINES

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 pointer)
{
    .reg .pred %p;
    .reg .b64 %rd<4>;
    .param .b64 given;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [pointer];
    setp.eq.s64 %p, %rd2, 0;
    @%p bra done;
    {
    .param .b64 param0;
    st.param.b64 [param0], %rd1;
    prototype_0 : .callprototype ()_ (.param .b64 _);
    call %rd2, (param0), prototype_0;
    }
done:
    st.global.u32 [%rd1], 7;
    ret;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_the_way_around_such_a_call_runs_and_the_call_is_a_fault(engine: str) -> None:
    gpu = wl.Device("a100", engine=engine)
    kernel = gpu.compile(PTX, "ptx")["k"]
    out = gpu.zeros(1, np.uint32)
    kernel[1, 32](out, 0)
    assert out.copy_to_host()[0] == 7
    with pytest.raises(wl.KernelFault, match="is not a function"):
        kernel[1, 32](out, 64)
