"""Holds NaNs of both machines, in optimized and in baseline code, against what an H200 gave (driver
580.159, CUDA 13.0)."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.llvm.opt_level import BASELINE, VARIABLE

NAN, QUIET = 0x7FFFFFFF, 0xFFF8_0000_0000_0000
SINGLES = {"zero": 0, "minus": 0xBF800000, "nan": 0xFFC12345, "signal": 0x7F800001}
HARDWARE = {
    "div.rn.f32 f, zero, zero": NAN,
    "div.rn.f32 f, nan, nan": NAN,
    "div.rn.f32 f, signal, minus": NAN,
    "sqrt.rn.f32 f, minus": NAN,
    "sqrt.rn.f32 f, nan": NAN,
    "rcp.rn.f32 f, nan": NAN,
    "add.f32 f, nan, nan": NAN,
    "mul.f32 f, nan, nan": NAN,
    "min.f32 f, nan, nan": NAN,
    "fma.rn.f32 f, zero, minus, nan": NAN,
    "ex2.approx.f32 f, nan": NAN,
    "rsqrt.approx.f32 f, minus": NAN,
    "cvt.rmi.f32.f32 f, nan": NAN,
    "neg.f32 f, nan": NAN,
    "abs.f32 f, nan": NAN,
    "neg.ftz.f32 f, signal": NAN,
    "div.rn.f64 d, none, none": QUIET,
    "sqrt.rn.f64 d, less": QUIET,
    "cvt.f64.f32 d, nan": 0xFFF82468A0000000,
}
"""Results by instruction. That of `abs` is the one of `neg`, which is the same sum in machine
code."""


@pytest.mark.parametrize("engine", ["reference", BASELINE, "0"])
def test_the_nans_are_those_of_hardware(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result is in a register that only arithmetic writes, and then its bits are stored."""
    lines = [f"ld.global.f32 {name}, [p+{4 * i}];" for i, name in enumerate(SINGLES)]
    for number, text in enumerate(HARDWARE):
        kind = 32 if ".f32 f" in text else 64
        lines.append(
            f"{{ .reg .f32 f; .reg .f64 d; {text}; "
            f"st.global.f{kind} [p+{64 + 8 * number}], {'f' if kind == 32 else 'd'}; }}"
        )
    kernel = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 buffer)
{{
.reg .b64 p; .reg .f32 {", ".join(SINGLES)}; .reg .f64 none, less;
ld.param.u64 p, [buffer];
mov.f64 none, 0d0000000000000000; mov.f64 less, 0dBFF0000000000000;
{chr(10).join(lines)}
ret;
}}
"""
    if engine != "reference":
        monkeypatch.setenv(VARIABLE, engine)
    gpu = wl.Device("h100", engine="reference" if engine == "reference" else "compiled")
    words = np.zeros(8 + len(HARDWARE), np.uint64)
    words[:2] = np.array(list(SINGLES.values()), np.uint32).view(np.uint64)
    buffer = gpu.to_device(words)
    gpu.compile(kernel, "ptx")["k"][1, 1](buffer)
    found = dict(zip(HARDWARE, buffer.copy_to_host()[8:].tolist(), strict=True))
    assert found == HARDWARE


COPIED = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 buffer)
{
.reg .b64 p; .reg .f32 nan, f, g; .reg .b32 r, s; .reg .pred q;
ld.param.u64 p, [buffer];
ld.global.f32 nan, [p];
add.f32 f, nan, nan;
neg.f32 g, nan;
mov.b32 r, f; and.b32 r, r, -1; st.global.b32 [p+8], r;
setp.eq.f32 q, nan, nan;
selp.b32 s, f, g, q; and.b32 s, s, -1; st.global.b32 [p+16], s;
ret;
}
"""


@pytest.mark.parametrize("engine", ["reference", BASELINE, "0"])
def test_a_copied_nan_is_canonical(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers that another instruction writes, too, get the bits of the NaN of an addition."""
    if engine != "reference":
        monkeypatch.setenv(VARIABLE, engine)
    gpu = wl.Device("h100", engine="reference" if engine == "reference" else "compiled")
    data = gpu.to_device(np.array([SINGLES["nan"], 0, 0, 0, 0], np.uint32))
    gpu.compile(COPIED, "ptx")["k"][1, 1](data)
    assert data.copy_to_host()[[2, 4]].tolist() == [NAN, NAN]
