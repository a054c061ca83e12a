"""CUDA C++ to PTX: the right target, source lines, includes, and the compiler's own words."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from warploom.core.errors import CompileError
from warploom.frontends.cuda_cpp import compile_cuda

nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

KERNEL = """extern "C" __global__ void twice(float *x)
{
    x[threadIdx.x] *= 2.0f;
}
"""


@pytest.mark.parametrize(
    ("cc", "target"), [((7, 5), "sm_75"), ((8, 6), "sm_86"), ((5, 0), "sm_75"), ((12, 1), "sm_121")]
)
def test_the_target_is_the_device_or_the_oldest_that_nvrtc_has(
    cc: tuple[int, int], target: str
) -> None:
    assert f".target {target}" in compile_cuda(KERNEL, "twice.cu", cc)


def test_the_ptx_names_the_file_and_its_lines() -> None:
    ptx = compile_cuda(KERNEL, "somewhere/twice.cu", (8, 0))
    assert ".visible .entry twice(" in ptx
    assert 'somewhere/twice.cu"' in ptx
    assert ".loc\t1 3 " in ptx
    assert not ptx.endswith("\0")


def test_options_are_passed_to_the_compiler() -> None:
    text = "#if N != 4\n#error N\n#endif\n" + KERNEL
    assert "twice" in compile_cuda(text, "k.cu", (8, 0), ["-DN=4"])
    assert ".target sm_90" in compile_cuda(KERNEL, "k.cu", (8, 0), ["-arch=compute_90"])


def test_includes_are_looked_up_beside_the_file_and_among_cudas_own(tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("#define TWO 2.0f\n", "utf-8")
    text = '#include "mine.h"\n#include <cooperative_groups.h>\n#include <cuda/std/limits>\n'
    assert "twice" in compile_cuda(text + KERNEL, str(tmp_path / "k.cu"), (8, 0))


def test_a_source_that_does_not_compile_shows_the_compilers_log() -> None:
    with pytest.raises(CompileError) as caught:
        compile_cuda(KERNEL.replace("2.0f", "two"), "k.cu", (8, 0))
    assert 'k.cu(3): error: identifier "two" is undefined' in caught.value.log
    assert caught.value.log in str(caught.value)
    assert str(caught.value).startswith("k.cu does not compile as CUDA C++.")


def test_host_code_gets_advice() -> None:
    with pytest.raises(CompileError, match="__CUDACC_RTC__"):
        compile_cuda("#include <sqlite3.h>\n" + KERNEL, "k.cu", (8, 0))


def test_without_nvrtc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(CompileError, match=r'pip install "warploom\[cuda\]"'):
        compile_cuda(KERNEL, "k.cu", (8, 0))


def test_a_limit_on_registers_is_in_the_ptx_of_kernels_without_launch_bounds() -> None:
    """The CUDA C++ Programming Guide, "Launch Bounds": they go before the option."""
    bounded = 'extern "C" __global__ void __launch_bounds__(64) bounded(float *x) { *x = 1; }\n'
    ptx = compile_cuda(KERNEL + bounded, "twice.cu", (8, 0), ["-maxrregcount=24"])
    twice, _, rest = ptx.partition(".entry bounded")
    assert ".maxnreg 24\n{" in twice
    assert ".maxnreg" not in rest
    assert ".maxntid" in rest
    assert ".maxnreg" not in compile_cuda(KERNEL, "twice.cu", (8, 0))
