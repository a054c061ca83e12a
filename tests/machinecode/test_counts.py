"""Machine instructions that a launch executes, from what ptxas makes of its kernel."""

from __future__ import annotations

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.host.programs import ptxas
from warploom.host.programs.assembly import Assembly, assembly_of
from warploom.host.run import Run
from warploom.machinecode.operands import Kind

KERNELS = """
extern "C" __global__ void straight(float *out, const float *in, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a * in[i];
}

extern "C" __global__ void looped(float *out, int n) {
  __shared__ float tile[128];
  float sum = 0;
  #pragma unroll 1
  for (int k = 0; k < n; ++k) {
    tile[threadIdx.x] = sum + k;
    __syncthreads();
    sum += tile[threadIdx.x ^ 1];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

extern "C" __global__ void unrolled(const float *in, float *out, int n) {
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += in[32 * k + threadIdx.x];
  out[threadIdx.x] = sum;
}

extern "C" __global__ void promoted(float *out, int n) {
  float kept[4];
  for (int k = 0; k < 4; ++k) kept[k] = (float)(n + k);
  out[threadIdx.x] = kept[threadIdx.x & 3];
}

extern "C" __global__ void divided(const long long *a, float *out, float b) {
  out[threadIdx.x] = (float)(a[threadIdx.x] / a[threadIdx.x + 1]) / b;
}

extern "C" __global__ void quotient(const float *a, const float *b, float *out) {
  out[threadIdx.x] = a[threadIdx.x] / b[threadIdx.x];
}

extern "C" __global__ void reciprocal(const float *a, const float *b, float *out) {
  out[threadIdx.x] = 1 / a[threadIdx.x];
}

extern "C" __global__ void root(const float *a, const float *b, float *out) {
  out[threadIdx.x] = sqrtf(a[threadIdx.x]);
}
"""

CAPABILITIES = (
    "7.5",
    "9.0",
    *(pytest.param(cc, marks=pytest.mark.nightly) for cc in ("8.6", "12.0")),
)


def launched(cc: str, name: str, grid: int, block: int, *args: object) -> Run:
    gpu = wl.Device(cc=cc)
    kernel = gpu.compile(KERNELS)[name]
    given = [gpu.to_device(one) if isinstance(one, np.ndarray) else one for one in args]
    return kernel[grid, block](*given)  # pyright: ignore[reportArgumentType]


def floats(count: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.ones(count, np.float32)


@NEEDS_PTXAS
@pytest.mark.parametrize("cc", CAPABILITIES)
def test_straight_code_is_executed_once_by_each_warp(cc: str) -> None:
    run = launched(cc, "straight", 6, 64, floats(384), floats(384), 2.0)
    code = [made.name for made in run.machine.matching.listing.instructions]
    assert run.machine.instructions == 12 * (code.index("EXIT") + 1)
    assert run.machine.confidence == 1
    assert run.machine.metric("smsp__inst_executed.sum") == run.machine.instructions
    assert sum(run.machine.by_line().values()) == run.machine.instructions
    assert sum(run.machine.by_pipe.values()) == run.machine.instructions
    assert run.machine.metric("sm__inst_executed_pipe_lsu.sum") >= 24  # a load and a store


@NEEDS_PTXAS
@pytest.mark.parametrize("cc", CAPABILITIES)
@pytest.mark.parametrize("turns", [1, 7])
def test_anchors_of_a_loop_are_executed_as_often_as_in_ptx(cc: str, turns: int) -> None:
    """4 warps go through a loop with a store, a load and two barriers."""
    run = launched(cc, "looped", 1, 128, floats(128), turns)
    counts = run.machine.by_opcode
    assert (counts["STS"], counts["LDS"], counts["BAR"]) == (4 * turns, 4 * turns, 8 * turns)
    assert run.machine.confidence > 0.9


@NEEDS_PTXAS
@pytest.mark.parametrize("cc", CAPABILITIES)
@pytest.mark.parametrize("turns", [1, 3, 37])
def test_loops_that_ptxas_or_nvrtc_unrolls_load_as_often(cc: str, turns: int) -> None:
    run = launched(cc, "unrolled", 2, 32, floats(32 * turns), floats(32), turns)
    assert run.machine.by_opcode["LDG"] == 2 * turns
    assert run.machine.by_opcode["FADD"] == pytest.approx(2 * turns, abs=2)


@NEEDS_PTXAS
def test_a_local_array_in_registers_is_not_in_memory() -> None:
    run = launched("7.5", "promoted", 1, 32, floats(32), 3)
    assert run.counters.local_store_requests > 0, "the PTX has it in local memory"
    assert not {"LDL", "STL"} & set(run.machine.by_opcode)


@NEEDS_PTXAS
def test_divisions_are_sequences_and_their_slow_paths_are_left_out() -> None:
    """A quotient of floats is one reciprocal and its refinement; another one is in the routine for
    very small and very large numbers, which is called for those alone. A quotient of 64-bit
    integers is a routine of about a hundred instructions."""
    numbers = np.arange(33, 0, -1, dtype=np.int64) << 33
    run = launched("7.5", "divided", 1, 32, numbers, floats(32), 3.0)
    entries = [made.name for made in run.machine.matching.listing.instructions]
    assert run.counters.warp_instructions < 40
    assert run.machine.by_opcode["FCHK"] == 1
    assert run.machine.instructions < len(entries) / 2
    assert any(not line for line in run.machine.by_line())


@NEEDS_PTXAS
@pytest.mark.parametrize("cc", CAPABILITIES)
@pytest.mark.parametrize(
    ("name", "a", "b", "calls"),
    [
        ("quotient", 1, 3, 0),
        ("quotient", 0, 3, 1),
        ("quotient", 0, 0, 1),
        ("quotient", np.inf, 3, 1),
        ("quotient", 2**-100, 2**30, 1),
        ("reciprocal", 2**125, 0, 0),
        ("reciprocal", 2**126, 0, 1),
        ("reciprocal", 0, 0, 1),
        ("root", 2**-101, 0, 0),
        ("root", 2**-102, 0, 1),
        ("root", 0, 0, 1),
        ("root", -4, 0, 1),
    ],
)
def test_a_routine_is_called_where_a_lane_has_a_special_value(
    cc: str, name: str, a: float, b: float, calls: int
) -> None:
    """One lane of one warp has these operands. What is special follows from the constants of the
    machine code for reciprocals and roots; for quotients it is zeros, infinities and denormals."""
    first, second = np.full(64, 2, np.float32), np.full(64, 3, np.float32)
    first[40], second[40] = a, b
    run = launched(cc, name, 1, 64, first, second, floats(64))
    assert run.machine.by_opcode.get("CALL", 0) == calls


@NEEDS_PTXAS
@pytest.mark.parametrize("cc", CAPABILITIES)
def test_operands_are_registers_that_life_ranges_say_are_used(cc: str) -> None:
    """Both are printed by nvdisasm, each from what it knows of an instruction."""
    gpu = wl.Device(cc=cc)
    module = gpu.compile(KERNELS)
    for name in ("looped", "divided", "unrolled"):
        program = module[name][1, 32].kernel.program
        found = assembly_of(program, gpu.spec.compute_capability)
        assert isinstance(found, Assembly)
        for made in found.matching.listing.instructions:
            named = {r for operand in made.operands for r in operand.registers}
            assert named <= {*made.reads, *made.writes}, made
            memory = [one for one in made.operands if one.kind is Kind.MEMORY]
            assert all(r in made.reads for one in memory for r in one.registers), made


def test_older_devices_have_no_machine_code() -> None:
    with pytest.raises(WarploomError, match=r"does not support compute capability 6\.1"):
        _ = launched("6.1", "straight", 1, 32, floats(32), floats(32), 2.0).machine


def test_without_tools_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warploom.host.programs.assembly.find_tool", lambda name: None)
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    with pytest.raises(WarploomError, match="warploom\\[ptxas\\]"):
        _ = launched("8.6", "straight", 1, 32, floats(32), floats(32), 2.0).machine
