"""The compilers of OpenCL C: which is taken, and that those of the wheel and the distribution both
do."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import warploom as wl
from warploom.frontends import opencl
from warploom.frontends.opencl_compilers import clang, opencl_is_missing

STUB = """\
define dso_local ptx_kernel void @k(ptr addrspace(1) %0) #2 !kernel_arg_type !10 {
define dso_local void @__clang_ocl_kern_imp_k(ptr addrspace(1) %0) #3 !kernel_arg_type !10 {
declare i32 @vprintf(ptr, ptr) local_unnamed_addr
"""


def test_kernels_of_clang_21_become_whole() -> None:
    """clang 21 and later call the code of a kernel, a function beside it; and declare vprintf with
    other pointers than they call it with."""
    mended = opencl._mended(STUB).splitlines()  # pyright: ignore[reportPrivateUsage]
    assert mended[0] == STUB.splitlines()[0]
    assert mended[1].startswith("define internal void @__clang_ocl_kern_imp_k(")
    assert " alwaysinline " in mended[1]
    assert "@vprintf(ptr addrspace(4), ptr)" in mended[2]


def test_a_named_clang_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLOOM_CLANG", "/nowhere/clang")
    with pytest.raises(wl.CompileError, match="/nowhere/clang, which does not exist"):
        clang()
    assert "WARPLOOM_CLANG" in opencl_is_missing()


def test_without_a_clang_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPLOOM_CLANG", raising=False)
    monkeypatch.setenv("PATH", "")
    if find_spec("ziglang") is not None:
        pytest.skip("the wheel ziglang is installed")
    assert "pip install 'warploom[opencl]'" in opencl_is_missing()


def test_the_wheels_clang_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.delenv("WARPLOOM_CLANG", raising=False)
    monkeypatch.setenv("PATH", "")
    if missing := opencl_is_missing():
        pytest.skip(missing)
    output: list[str] = []
    gpu = wl.Device("a100", output=output.append)
    text = """kernel void k(global float *x, read_only image2d_t image, sampler_t s) {
        size_t i = get_global_id(0);
        x[i] = exp2(x[i]) + read_imagef(image, s, (float2)(i, 1)).x;
        if (i == 3) printf("%d %v2d\\n", 5, (int2)(6, 7)); }"""
    x = np.arange(32, dtype=np.float32) % 16
    texture = gpu.texture(np.arange(64, dtype=np.float32).reshape(2, 32))
    gpu.compile(text, "opencl")["k"][1, 32](x, texture, texture)
    assert np.array_equal(x, 2.0 ** (np.arange(32) % 16) + np.arange(32, 64))
    assert "".join(output) == "5 6,7\n"
