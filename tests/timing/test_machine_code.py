"""Tests the replay of machine code: which instructions issue, which accesses they make, and where
cycles are spent."""

from __future__ import annotations

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.host.run import Run
from warploom.machinecode.merged import AccessExtent, Merged, merged_into
from warploom.timing.result import Timing

pytestmark = NEEDS_PTXAS

KERNELS = """
extern "C" __global__ void looped(float *out, const float *in, int n) {
  __shared__ float tile[128];
  float sum = 0;
  for (int k = 0; k < n; ++k) {
    tile[threadIdx.x] = in[128 * k + threadIdx.x];
    __syncthreads();
    sum += tile[threadIdx.x ^ 1];
    __syncthreads();
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}

extern "C" __global__ void parted(float *out, const float *in) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float v = in[i];
  #pragma unroll 1
  for (int k = 0; k < (i & 7); ++k) v = v * 1.5f + in[i + k];
  if (i % 3 == 0) out[i] = v / 3.7f;
  else out[i + 1] = sqrtf(v);
}

extern "C" __global__ void divided(float *out, const float *in) {
  float v = in[threadIdx.x];
  #pragma unroll 1
  for (int k = 0; k < 8; ++k) v = (v + k) / (in[k] + v);
  out[threadIdx.x] = v;
}

extern "C" __global__ void promoted(float *out, int n) {
  float kept[4];
  for (int k = 0; k < 4; ++k) kept[k] = (float)(n + k);
  out[threadIdx.x] = kept[threadIdx.x & 3];
}

extern "C" __global__ void wide(float *out) {
  __shared__ float tile[256];
  int x = threadIdx.x;
  tile[x] = x;
  tile[x + 128] = x;
  __syncthreads();
  out[x] = tile[8 * x] + tile[8 * x + 1] + tile[8 * x + 2] + tile[8 * x + 3];
}

extern "C" __global__ void banked(float *out, float a, float b) {
  float x = out[threadIdx.x], y = x + a, u = x, v = y;
  #pragma unroll
  for (int k = 0; k < LINKS; ++k) {
    u = u * x - y;
    v = v * y - x;
  }
  out[threadIdx.x] = u + v;
}

extern "C" __global__ void chain(float *out, float a, float b) {
  float x = threadIdx.x;
  #pragma unroll
  for (int k = 0; k < LINKS; ++k) x = x * a + b;
  out[threadIdx.x] = x;
}
"""


def ran(cc: str, name: str, grid: int, *args: object, block: int = 128, links: int = 1) -> Run:
    gpu = wl.Device(cc=cc, record=True)
    kernel = gpu.compile(KERNELS, options=[f"-DLINKS={links}"])[name]
    given = [gpu.to_device(one) if isinstance(one, np.ndarray) else one for one in args]
    return kernel[grid, block](*given)  # pyright: ignore[reportArgumentType]


def looped(cc: str, turns: int) -> Run:
    return ran(cc, "looped", 6, floats(6 * 128), floats(128 * turns), turns)


def floats(count: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.ones(count, np.float32)


def balanced(timing: Timing) -> bool:
    """Returns whether each cycle of a scheduler is an issue or has a reason, and the states of
    lines add up to those of warps."""
    lines = sum(sum(line.states.values()) for line in timing.by_line().values())
    whole = timing.issued + sum(timing.stalls.values())
    return whole == timing.scheduler_cycles and lines == sum(timing.warp_states.values())


@pytest.mark.parametrize("turns", [1, 6, 33])
def test_issues_equal_counts_from_machine_code(turns: int) -> None:
    """All warps follow the same path, so their paths one by one are that of all together."""
    run = looped("7.5", turns)
    timing = run.time(code="machine")
    assert timing.basis.code == "machine code"
    assert timing.instructions == pytest.approx(run.machine.instructions, rel=0.02)
    assert balanced(timing)


@pytest.mark.parametrize("value", [0, 1])
def test_replay_calls_division_slow_path_for_special_values(value: float) -> None:
    """0 / 0 is NaN, and so is every quotient after it: each of 8 iterations calls the routine. 1 /
    2 and what follows are normal numbers."""
    run = ran("7.5", "divided", 1, floats(128), floats(128) * np.float32(value))
    timing = run.time(code="machine")
    assert run.machine.by_opcode.get("CALL", 0) == 4 * 8 * (value == 0)
    assert timing.instructions == run.machine.instructions


def test_accesses_equal_those_of_ptx() -> None:
    """Each of 24 warps loads 128 bytes in each of 33 iterations, stores as many once, and uses
    shared memory twice an iteration; the same sectors come from DRAM and stay in L2."""
    run = looped("7.5", 33)
    ptx, machine = run.time(code="ptx"), run.time(code="machine")
    assert machine.l1_bytes == ptx.l1_bytes == 24 * 33 * 128
    assert machine.dram_bytes == ptx.dram_bytes == 33 * 512
    assert machine.l2_dirty_bytes == ptx.l2_dirty_bytes == 24 * 128
    assert machine.lsu_use[1] * machine.cycles == pytest.approx(ptx.lsu_use[1] * ptx.cycles)


@pytest.mark.parametrize("cc", ["7.5", "9.0"])
def test_diverged_warps_are_followed_and_cycles_balance(cc: str) -> None:
    run = ran(cc, "parted", 9, floats(9 * 128 + 1), floats(9 * 128 + 8))
    one, two = run.time(code="machine"), run.time(code="machine", workers=2)
    assert one.basis.code == "machine code"
    assert one.l1_bytes == run.time(code="ptx").l1_bytes
    assert balanced(one)
    assert (one.cycles, one.warp_states) == (two.cycles, two.warp_states)


def test_local_array_in_registers_makes_no_accesses() -> None:
    run = ran("7.5", "promoted", 1, floats(128), 3)
    assert run.time(code="ptx").l2_dirty_bytes > 512, "the PTX stores the array"
    assert run.time(code="machine").l2_dirty_bytes == 512


@pytest.mark.parametrize("cc", ["7.5", "8.0", "9.0"])
def test_dependent_ffma_takes_four_cycles(cc: str) -> None:
    """Jia et al. 2019 (T4), Abdelkhalik et al. 2022 (A100): FFMA 4 cycles; probes of an H200: 4."""
    few, many = (
        ran(cc, "chain", 1, floats(32), 0.5, 1.0, block=32, links=n).time(code="machine").cycles
        for n in (64, 128)
    )
    assert (many - few) / 64 == pytest.approx(4, abs=0.1)


def test_older_devices_are_timed_by_ptx() -> None:
    run = looped("6.1", 3)
    timing = run.time(code="machine")
    assert timing.cycles == run.time().cycles
    assert "does not support compute capability 6.1" in str(timing.basis)


def test_merged_access_takes_wavefronts_of_wide_access() -> None:
    """Lanes have a stride of 32 bytes. Each of four loads of 4 bytes has eight lanes on a bank: 8
    wavefronts. One load of 16 bytes is served by quarter-warps, two lanes of each on a bank: 4
    times 2. The two stores of the block take one each."""
    run = ran("8.0", "wide", 1, floats(32), block=32)
    ptx, machine = run.time(code="ptx"), run.time(code="machine")
    assert "LDS.128" in {one.opcode for one in run.machine.matching.listing.instructions}
    assert ptx.lsu_use[1] * ptx.cycles == pytest.approx(2 + 4 * 8)
    assert machine.lsu_use[1] * machine.cycles == pytest.approx(2 + 4 * 2)


@pytest.mark.parametrize(
    ("own", "taken", "width", "merged"),
    [
        pytest.param(0, (), 16, Merged(0, 16, 1), id="the line of the first"),
        pytest.param(3, (), 16, Merged(3, 16, 1), id="the next four, where they are free"),
        pytest.param(3, (4,), 16, Merged(0, 16, 1), id="the four before, where they are not"),
        pytest.param(3, (0, 4), 16, None, id="alone, where neither is whole"),
        pytest.param(6, (), 8, Merged(6, 8, 1), id="two"),
        pytest.param(7, (), 8, Merged(6, 8, 1), id="two, the line of the last"),
        pytest.param(8, (), 16, Merged(8, 16, 4), id="another base, four turns"),
        pytest.param(7, (5,), 16, Merged(6, 16, 2), id="two of two turns"),
        pytest.param(8, (), 4, None, id="no wider"),
    ],
)
def test_accesses_to_consecutive_addresses_are_merged(
    own: int, taken: tuple[int, ...], width: int, merged: Merged | None
) -> None:
    """Eight accesses of 4 bytes at consecutive addresses, and one through another register."""
    extents = {place: AccessExtent(("r1",), 4 * place, 4) for place in range(8)}
    extents[8] = AccessExtent(("r2",), 32, 4)
    assert merged_into(extents, own, taken, width) == merged


def test_register_banks_limit_issue() -> None:
    """Each bank serves one register a cycle (Huerta et al., MICRO 2025): 128 further iterations of
    two chains of multiply-adds, with 8 warps on a scheduler, take the time in which the busier bank
    serves the registers that the operand cache does not have, or one cycle an instruction."""
    runs = [ran("8.6", "banked", 1, floats(1024), 1.5, 0.5, block=1024, links=n) for n in (64, 192)]
    cycles = [run.time().cycles for run in runs]
    least = [_served(run) for run in runs]
    assert least[1] - least[0] >= 8 * 256, "an instruction a cycle"
    assert cycles[1] - cycles[0] == pytest.approx(least[1] - least[0], rel=0.1)


def _served(run: Run) -> int:
    """Returns the cycles that eight warps of a scheduler take at least for the multiply-adds of a
    kernel."""
    made = [one for one in run.machine.matching.listing.instructions if one.name == "FFMA"]
    odd = [int(name[1:]) % 2 for one in made for name in one.reads]
    assert not any(one.control.reuse for one in made), "nothing in the operand cache"
    return 8 * max(sum(odd), len(odd) - sum(odd), len(made))
