"""Unmodified programs of each client: they find a device, compile as usual, launch, and check
their own results. A client that is not installed is skipped; `make test-clients` installs all."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest

import warploom as wl
from tests.clients.conftest import PROGRAMS, RunProgram
from tests.clients.images import fat_binary
from warploom.clients.binaries import check_binary
from warploom.clients.nvcc import build_program, real_nvcc

CLIENTS = {
    "numba_programs.py": ("numba_cuda", "saxpy matmul histogram shuffles grid_sync streams"
        " structures mapped halves linked"),
    "cuda_core_saxpy.py": ("cuda.core", "saxpy<float> saxpy<double>"),
    "cuda_core_graphs.py": ("cuda.core", "captured 22 22 22 22 forked 205 205 205 205"
        " nodes 4 2 2 1 0 3"  # a fill, a copy, a kernel, a function of the host; two wait for none
        " built 300 301 302 303 307 307 307 307 407 407 407 407"
        " defined 8 7 5 7 10 7"
        " ILLEGAL_STATE STREAM_CAPTURE_UNSUPPORTED ILLEGAL_STATE STREAM_CAPTURE_UNSUPPORTED"
        " STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_UNJOINED STREAM_CAPTURE_IMPLICIT"
        " STREAM_CAPTURE_INVALIDATED INVALID_VALUE GRAPH_EXEC_UPDATE_FAILURE INVALID_VALUE"),
    "tinygrad_programs.py": ("tinygrad", "elementwise matmul softmax argmax conv"),
    "triton_programs.py": ("triton", "add softmax matmul"),
    "pycuda_programs.py": ("pycuda", "saxpy"),
    "pycuda_source_programs.py": ("pycuda", "module array elementwise sum"),
    "pycuda_linked_programs.py": ("pycuda", "linked"),
    "cupy_programs.py": ("cupy", "raw True module 2 4 6 elementwise 1 9 25 reduction 5.0"
        " sums 499500 0 1 3 6 10 indexing 3.0 5.0 254.0 255.0 random True product True"),
    "numba_mlir_programs.py": ("numba_cuda_mlir", "saxpy sums"),
    "runtime_bindings_programs.py": ("cuda.bindings", "A100 8 cudaErrorInvalidValue"),
    "cute_programs.py": ("cutlass", "product"),
    # 108 SMs: groups of at least 25 have 26, for they are multiples of 2
    "green_contexts.py": ("cuda.bindings", "108 2 [26, 26] 56 26 CUDA_ERROR_INVALID_VALUE"),
    "kernel_tuner_programs.py": ("kernel_tuner", "nvcuda 3 pycuda 3"),
}  # fmt: skip
"""What each needs, and what it prints when all is well."""


def assert_runs(run_program: RunProgram, program: str) -> None:
    """That a program of CLIENTS prints what it prints when all is well; skipped without its
    package."""
    package, printed = CLIENTS[program]
    if importlib.util.find_spec(package.split(".")[0]) is None:
        pytest.skip(f"{package} is not installed")
    outcome = run_program(program)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == printed.split()
    assert "defect" not in outcome.stderr


@pytest.mark.parametrize("program", CLIENTS)
def test_an_unmodified_program(run_program: RunProgram, program: str) -> None:
    assert_runs(run_program, program)


PERSISTENT = ["", pytest.param("persistent", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("persistent", PERSISTENT)
@pytest.mark.parametrize("blocks", [1, 2])
def test_cute_on_hopper(run_program: RunProgram, blocks: int, persistent: str) -> None:
    """A product by copies of tensors and warp groups, alone and in clusters of two blocks, which
    get B together; by blocks of one tile each, and of several."""
    if importlib.util.find_spec("cutlass") is None:
        pytest.skip("cutlass is not installed")
    outcome = run_program("cute_hopper.py", str(blocks), persistent, device="h100")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == ["True"]
    assert "defect" not in outcome.stderr


def test_faults_of_cute_name_lines_of_the_python_source(run_program: RunProgram) -> None:
    """A tensor map extends beyond a buffer that is too short; the copy is of the box's rows."""
    if importlib.util.find_spec("cutlass") is None:
        pytest.skip("cutlass is not installed")
    outcome = run_program("cute_hopper.py", "1", "short", device="h100")
    text = (PROGRAMS / "cute_hopper.py").read_text("utf-8").splitlines()
    found = re.search(r"Invalid __global__ copy.*\n +at .*cute_hopper\.py:(\d+) ", outcome.stderr)
    assert found is not None, outcome.stderr
    assert "cute.copy" in text[int(found[1]) - 1]


@pytest.mark.nightly
@pytest.mark.parametrize("persistent", PERSISTENT)
@pytest.mark.parametrize("blocks", [1, 2])
def test_cute_on_blackwell(run_program: RunProgram, blocks: int, persistent: str) -> None:
    """A product whose sums are in tensor memory, by single blocks and by pairs of blocks, of one
    tile each and of several."""
    if importlib.util.find_spec("cutlass") is None:
        pytest.skip("cutlass is not installed")
    outcome = run_program("cute_blackwell.py", str(blocks), persistent, device="b200")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == ["True"]
    assert "defect" not in outcome.stderr


KERNEL_TUNER = Path(sys.prefix) / "kernel_tuner" / "test"
"""Kernel Tuner's own tests, which `make test-clients` takes from its source distribution."""


@pytest.mark.parametrize(
    ("file", "passed"), [("test_cuda_functions.py", 7), ("test_pycuda_functions.py", 2)]
)
def test_kernel_tuners_own_tests(run_program: RunProgram, file: str, passed: int) -> None:
    if not KERNEL_TUNER.exists():
        pytest.skip(f"{KERNEL_TUNER} is not there")
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider"]
    outcome = run_program([*command, str(KERNEL_TUNER / file)])
    assert outcome.returncode == 0, outcome.stdout
    assert f"{passed} passed" in outcome.stdout


def test_kernels_from_source_without_nvcc(
    run_program: RunProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert_runs(run_program, "pycuda_source_programs.py")


def test_the_module_that_numba_has_itself_is_imported_as_it_is(run_program: RunProgram) -> None:
    """PyTorch's own tests import it; numba-cuda replaces it where it is installed."""
    done = run_program("numba_itself.py")
    assert done.stdout == "imported\n", done.stderr


def test_compiling_alone_is_no_reason_to_complain(run_program: RunProgram) -> None:
    """NVRTC asks the driver for its undocumented tables, as a statically linked runtime does."""
    code = "from cuda.bindings import nvrtc as n; p = n.nvrtcCreateProgram(b'', b'', 0, [], [])[1]"
    outcome = run_program([sys.executable, "-c", f"{code}; n.nvrtcCompileProgram(p, 0, [])"])
    assert outcome.returncode == 0
    assert outcome.stderr == ""


def test_the_report_at_the_end(run_program: RunProgram, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    outcome = run_program("saxpy_twice.py", report="short", json=str(file))
    assert outcome.returncode == 0, outcome.stderr
    [output] = [line for line in outcome.stderr.splitlines() if "2 launches of 8x1x1" in line]
    assert "::saxpy" in output
    # 1000 elements: 125 sectors each for two loads and a store, in each of two launches.
    assert "750 global sectors" in output
    [kernel] = json.loads(file.read_text("utf-8"))["kernels"]
    assert kernel["launches"] == 2
    assert kernel["counters"]["global_load_sectors"] == 500


def test_a_program_compiled_by_nvcc(run_program: RunProgram) -> None:
    if real_nvcc(os.environ.get("PATH", "")) is None:
        pytest.skip("there is no nvcc, on the PATH or from wheels")
    outcome = run_program([str(build_program(PROGRAMS / "runtime.cu")), "1000"])
    assert outcome.returncode == 0, outcome.stderr
    printed = "saxpy 2000 constant 6 graph 6 7 error 5"
    assert outcome.stdout.split() == printed.split()


def test_textures_of_a_program_compiled_by_nvcc(run_program: RunProgram) -> None:
    """4x4 texels have three levels, here of ones, twos and threes, seen at 0, 0.5, ... 2.5; bytes
    are read as shares of 255. Source: CUDA C++ Programming Guide, "Texture and Surface Memory"."""
    if real_nvcc(os.environ.get("PATH", "")) is None:
        pytest.skip("there is no nvcc, on the PATH or from wheels")
    outcome = run_program([str(build_program(PROGRAMS / "textures.cu"))])
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.splitlines() == [
        "array 0 1 2 3 4 5 6 7",
        "surface 2 3 12 13",
        "linear 1 0.2",
        "levels 1",  # cudaErrorInvalidValue
        "mipmaps 1 1.5 2 2 2 2",
        "mipmaps 1 1.5 2 2.5 3 3",
        "box 0 1 2 3 4 5 6 7",
    ]


def test_what_stands_in_the_way_of_a_binary_is_reported(tmp_path: Path) -> None:
    """Two stretches of a file are read: the section of GPU code, and the runtime it is linked to;
    a fat binary's PTX entry has kind 1, machine code 2."""
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF .nv_fatbin")
    with pytest.raises(wl.WarploomError, match="-cudart shared"):
        check_binary(program)
    program.write_bytes(b"\x7fELF .nv_fatbin libcudart.so.13")
    with pytest.raises(wl.WarploomError, match="machine code"):
        check_binary(program)
    program.write_bytes(b"\x7fELF .nv_fatbin libcudart.so.13" + fat_binary((1, 80, 0, b"x", 1)))
    check_binary(program)
