"""Tuning: the costs of configurations, what is refused, what a cache keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.host.programs import builds, sources
from warploom.host.tuning import tune as module
from warploom.program.program import Program
from warploom.ptx.module import Module
from warploom.tuning.result import Tuned
from warploom.tuning.trial import Costs, Trial

STRIDED = Path(__file__).with_name("tuned.cu")
SAXPY = STRIDED.parents[2] / "examples" / "saxpy.cu"
N = 1 << 18


def saxpy(space: dict[str, Any], n: int = N, **options: Any) -> Tuned:
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    found = wl.tune(SAXPY, "saxpy", space, n, 2.0, x, y, problem_size=n, **options)
    assert (y == 1).all()  # the caller's arrays stay as they are
    return found


def by(found: Tuned, name: str) -> dict[Any, Costs]:
    return {t.configuration[name]: t.costs for t in found.trials if t.costs}


def test_small_blocks_leave_half_of_a_v100_empty() -> None:
    """An SM of 7.0 holds 32 blocks and 64 warps: blocks of one warp are half of it."""
    found = by(saxpy({"block": [32, 256]}, device="v100"), "block")
    assert (found[32].occupancy, found[256].occupancy) == (0.5, 1.0)
    assert (found[32].limiters, found[256].limiters) == (("blocks",), ("warps",))
    assert found[32].achieved_occupancy <= 0.5 < found[256].achieved_occupancy
    # Two loads and a store of 4 bytes an element, 32 to a sector; each loaded sector comes
    # once from DRAM, and the stored ones stay in L2.
    assert {one.global_sectors for one in found.values()} == {3 * N * 4 // 32}
    assert {one.dram_bytes for one in found.values()} == {2 * N * 4}


def test_macros_are_defined_in_the_source() -> None:
    """A stride of s words makes s lanes share a bank, s a power of two up to 32: s - 1 conflicts
    of the store, and as many of the load."""
    out = np.zeros(32, np.float32)
    found = by(wl.tune(STRIDED, None, {"STRIDE": [1, 2, 32]}, out, device="v100"), "STRIDE")
    assert {s: one.shared_bank_conflicts for s, one in found.items()} == {1: 0, 2: 2, 32: 62}


def test_a_limit_on_registers_is_kept() -> None:
    """64 values are alive at the barrier. (Limits below what the ABI needs are raised: nvcc's
    `--maxrregcount`.)"""
    source = """__global__ void fold(const float *x, float *y) {
      float v[64], sum = 0;
      for (int k = 0; k < 64; k++) v[k] = x[threadIdx.x + 32 * k];
      __syncthreads();
      for (int k = 0; k < 64; k++) sum = sum * v[k] + v[63 - k];
      y[threadIdx.x] = sum;
    }"""
    x, y = np.ones(64 * 32, np.float32), np.zeros(32, np.float32)
    found = by(wl.tune(source, None, {"regs": [32, 255]}, x, y), "regs")
    assert found[32].registers <= 32 < 64 < found[255].registers


def test_devices_are_tuned_side_by_side() -> None:
    """A block of 64 fills a V100 (32 blocks of 2 warps); a T4 has 16 blocks and 32 warps."""
    found = by(saxpy({"device": ["v100", "t4"]}, n=4096, block=64), "device")
    assert (found["v100"].limiters, found["t4"].limiters) == (("warps", "blocks"),) * 2
    assert found["v100"].cycles != found["t4"].cycles


def test_what_does_not_run_is_shown_with_its_reason() -> None:
    x = np.zeros(64, np.float32)
    found = wl.tune(SAXPY, None, {"block": [64, 2048, 128]}, 128, 2.0, x, x, device="v100")
    reasons = [trial.refused for trial in found.trials]
    assert reasons[0] == ""
    assert "2048" in reasons[1]
    assert reasons[2].startswith("Invalid __global__ read of size 4 bytes")
    assert found.best.configuration == {"block": 64}
    broken = wl.tune("not C++\n", None, {"block": [64]})
    assert "does not compile" in broken.trials[0].refused


@pytest.mark.parametrize("block", [128, 1024])
def test_a_sample_of_the_blocks_takes_as_long_as_the_first_of_all(block: int) -> None:
    """Every block of saxpy does the same, at places that follow from its index."""
    n = 1 << 20

    def cycles(sampled: bool) -> int:
        gpu = wl.Device("v100", record=True, sampled=sampled)
        x, y = gpu.zeros(n, np.float32), gpu.zeros(n, np.float32)
        run = gpu.load(SAXPY)["saxpy"][n // block, block](n, 2.0, x, y)
        assert (run.executed_blocks < n // block) == sampled
        return run.time(sample=2).cycles

    assert cycles(True) == cycles(False)


def test_a_sample_of_narrow_blocks_takes_as_long_as_the_first_of_all() -> None:
    """Blocks of 32 threads, of a byte each, begin at the first byte of a line after each four; of
    threads that access every 17th byte, 544 bytes a block, also after each four."""
    source = """
    extern "C" __global__ void spread(const unsigned char *x, unsigned char *y, int step) {
        int i = (blockIdx.x * blockDim.x + threadIdx.x) * step;
        y[i] = x[i];
    }"""

    def cycles(sampled: bool, step: int) -> int:
        gpu = wl.Device("v100", record=True, sampled=sampled)
        x, y = gpu.zeros(step << 18, np.uint8), gpu.zeros(step << 18, np.uint8)
        run = gpu.compile(source)["spread"][1 << 13, 32](x, y, step)
        return run.time(sample=1).cycles

    for step in (1, 17):
        assert cycles(True, step) == cycles(False, step)


def test_a_sample_is_scaled_up_to_all_blocks() -> None:
    found = by(saxpy({"block": [128, 1024]}, n=1 << 20, device="v100", sample=2), "block")
    assert {one.global_sectors for one in found.values()} == {3 * (1 << 20) * 4 // 32}
    assert all(one.replayed < 1 for one in found.values())


def test_a_sample_runs_no_later_blocks() -> None:
    gpu = wl.Device("v100", record=True, sampled=True)
    y = gpu.zeros(1 << 20, np.float32)
    kernel = gpu.load(SAXPY)["saxpy"]
    run = kernel[1 << 12, 256](1 << 20, 0.0, gpu.to_device(np.ones(1 << 20, np.float32)), y)
    assert run.executed_blocks < run.launch.blocks == 1 << 12
    assert run.counters.warp_instructions % run.executed_blocks == 0
    assert kernel[4, 256](1024, 0.0, y, y).executed_blocks == 4
    with pytest.raises(wl.WarploomError, match="also pass record=True"):
        wl.Device("v100", sampled=True)


def test_measured_times_correct_the_modelled_ones() -> None:
    space = {"block": [32, 64, 128]}
    found = saxpy(space, n=4096, device="v100", measured={128: 4e-6, 32: 2e-6})
    assert found.best.configuration == {"block": 32}
    assert [trial.measured for trial in found.trials] == [2e-6, None, 4e-6]
    middle = found.trials[1].seconds
    assert middle is not None
    assert 1e-6 < middle < 5e-6
    assert found.measure(3).configurations == ({"block": 64},)


def test_grids_follow_kernel_tuners_divisors() -> None:
    """100 elements by 32 threads with two elements each are two blocks; the kernel goes by N."""
    source = """__global__ void scale(float *x) {
      for (int k = 0; k < tile; k++) {
        int i = (blockIdx.x * tile + k) * threads + threadIdx.x;
        if (i < 100) x[i] *= 2;
      }
    }"""
    options: dict[str, Any] = {
        "grid_div_x": ["threads", "tile"],
        "block_size_names": ["threads"],
    }
    x = np.ones(100, np.float32)
    space = {"threads": [32], "tile": [1, 2]}
    found = wl.tune(source, None, space, x, problem_size=100, **options)
    assert {t.costs.global_sectors for t in found.ranked if t.costs} == {2 * 13}
    with pytest.raises(wl.WarploomError, match="uses tiles"):
        wl.tune(source, None, space, x, problem_size=100, grid_div_x=["tiles"])
    with pytest.raises(wl.WarploomError, match="block_size_names contains warp"):
        wl.tune(source, None, space, x, problem_size=100, block_size_names=["warp"])


def test_an_unknown_device_is_an_error_at_once() -> None:
    with pytest.raises(wl.WarploomError, match="no-such-gpu"):
        saxpy({"device": ["v100", "no-such-gpu"]})


def test_what_the_cache_knows_is_not_run_again(tmp_path: Path, monkeypatch) -> None:
    file, steps = tmp_path / "trials.jsonl", []
    first = saxpy({"block": [32, 64, 2048]}, n=256, cache=file)
    assert (first.reused, len(file.read_text("utf-8").splitlines())) == (0, 2)
    ran: list[Any] = []

    def tried(job: Any, configuration: Any, limit: float, tuning: str) -> Trial:
        ran.append(configuration)
        return Trial(configuration, refused="not now")

    monkeypatch.setattr(module, "tried", tried)
    again = saxpy({"block": [32, 64, 128]}, n=256, cache=file, progress=lambda *n: steps.append(n))
    assert again.trials[:2] == first.trials[:2]
    assert (again.reused, ran, steps) == (2, [{"block": 128}], [(3, 3)])
    saxpy({"block": [32]}, n=512, cache=file)  # other arguments
    saxpy({"block": [32]}, n=256, cache=file, device="v100")  # another device
    assert ran[1:] == [{"block": 32}] * 2


def test_a_line_that_was_cut_off_costs_one_trial(tmp_path: Path) -> None:
    file = tmp_path / "trials.jsonl"
    saxpy({"block": [32, 64]}, n=256, cache=file)
    file.write_bytes(file.read_bytes()[:-20])
    assert saxpy({"block": [32, 64]}, n=256, cache=file).reused == 1
    assert saxpy({"block": [32, 64]}, n=256, cache=file).reused == 2


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(wl.WarploomError, match="cannot be read: Is a directory"):
        saxpy({"block": [32]}, cache=tmp_path)


def test_processes_and_a_cluster_find_what_one_process_finds() -> None:
    from distributed import LocalCluster

    space = {"block": [32, 64, 2048]}
    alone = saxpy(space, n=4096)
    assert saxpy(space, n=4096, workers=2) == alone
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        assert saxpy(space, n=4096, cluster=cluster.scheduler_address) == alone


TURNS = """#ifndef TURNS
#define TURNS 1
#endif
extern "C" __global__ void turns(float *out) {
    float x = threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < TURNS; k++) x = x * x + 1;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
"""


@NEEDS_PTXAS
@pytest.mark.parametrize("workers", [1, 2])
def test_configurations_that_cannot_win_are_not_replayed(workers: int) -> None:
    """A T4 has 160 schedulers, to each of which 8 of 1,280 warps come: a turn is at least 3
    instructions, so 1,000 of them take 1,000 x 3 x 8 cycles at least; one turn takes a few
    thousand in all."""
    out = np.zeros(40 * 4 * 256, np.float32)
    space = {"TURNS": [1, 1000]}
    options: dict[str, Any] = {"grid": 160, "block": 256, "device": "t4", "workers": workers}
    found = wl.tune(TURNS, "turns", space, out, stop_early=True, **options)
    assert found.best.configuration == {"TURNS": 1}
    if workers == 1:  # two at once begin before either has ended
        assert found.trials[1].refused.startswith("It cannot be the fastest: just issuing")
        whole = wl.tune(TURNS, "turns", space, out, **options)
        assert whole.trials[1].costs is not None
        assert whole.best == found.best


def test_stopping_early_compares_times() -> None:
    with pytest.raises(wl.WarploomError, match="the first objective is dram_bytes"):
        saxpy({"block": [64]}, n=64, objectives=["dram_bytes"], stop_early=True)


def test_what_configurations_have_in_common_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and grids are no matter of the compiler; each value of a macro is one."""
    compiled: list[tuple[str, ...]] = []
    built: list[str] = []
    compile_cached, build = sources.compile_cached, builds.build

    def counted(text: str, name: str, capability: tuple[int, int], options: Any) -> str:
        compiled.append(tuple(options))
        return compile_cached(text, name, capability, options)

    def counted_build(*given: Any, **named: Any) -> Program:
        built.append(given[1])
        return build(*given, **named)

    monkeypatch.setattr(sources, "compile_cached", counted)
    monkeypatch.setattr(builds, "build", counted_build)
    out = np.zeros(64, np.float32)
    space = {"block": [32, 64], "grid": [1, 2], "STRIDE": [1, 2]}
    found = wl.tune(STRIDED, None, space, out, device="v100")
    assert compiled == [("-DSTRIDE=1",), ("-DSTRIDE=2",)]
    assert len(built) == 2
    assert [trial.configuration["block"] for trial in found.trials] == [32] * 4 + [64] * 4
    wl.tune(STRIDED, None, {"STRIDE": [1]}, out, device="v100")  # a header may have changed
    assert compiled[2:] == [("-DSTRIDE=1",)]


def test_texts_that_macros_leave_alike_are_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    verified = builds.verified

    def counted(text: str, *given: Any) -> Module:
        parsed.append(text)
        return verified(text, *given)

    monkeypatch.setattr(builds, "verified", counted)
    space = {"UNUSED": [1, 2, 3], "STRIDE": [1]}
    found = wl.tune(STRIDED, None, space, np.zeros(32, np.float32), device="v100")
    assert len(parsed) == 1
    assert len({repr(trial.costs) for trial in found.trials}) == 1


def test_a_trial_finds_nothing_of_those_before() -> None:
    """Variables of a program that trials share begin as they are initialized."""
    source = """__device__ int seen = 0;
    __global__ void turns(int *out) {
      if (seen++) for (int i = 0; i < 1000; i++) atomicAdd(out, i);
    }
    """
    found = wl.tune(source, None, {"grid": [1, 1], "block": [1]}, np.zeros(1, np.int32))
    counts = {trial.costs.warp_instructions for trial in found.trials if trial.costs}
    assert len(counts) == 1


def test_a_full_disk_and_a_deep_line_in_a_cache(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "trials.jsonl"
    file.write_text('{"key": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "utf-8")
    assert saxpy({"block": [32]}, n=256, cache=file).reused == 0
    opened = Path.open

    def full(path: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        return opened(Path("/dev/full") if mode == "ab" else path, mode, *rest, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(wl.WarploomError, match=r"trials\.jsonl: No space left on device"):
        saxpy({"block": [64]}, n=256, cache=file)
