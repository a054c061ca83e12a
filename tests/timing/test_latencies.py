"""Tests chains and streams of each class of instruction against published figures."""

from __future__ import annotations

import pytest
from chains import LINES, each

FFMA = "fma.rn.f32 %f1, %f1, %f2, %f3;"
FADD = "add.rn.f32 %f1, %f1, %f2;"
IADD = "add.s32 %r1, %r1, %r2;"
IMAD = "mad.lo.s32 %r1, %r1, %r2, %r3;"
DFMA = "fma.rn.f64 %e1, %e1, %e2, %e3;"
DADD = "add.rn.f64 %e1, %e1, %e2;"
SHARED = "ld.shared.u32 %r1, [%r1];"

VERIFIED = [
    # NMSU-PEARL/GPUs-ISA-Latencies (Arafa et al., HPEC 2019), Volta and Turing
    ("7.0", FFMA, 4), ("7.0", IADD, 4), ("7.0", IMAD, 4), ("7.0", DFMA, 8),
    ("7.0", "div.s32 %r1, %r1, %r2;", 71), ("7.0", "div.rn.f32 %f1, %f1, %f2;", 504),
    ("7.0", "div.rn.f64 %e1, %e1, %e2;", 606), ("7.0", "fma.rn.f16x2 %r1, %r1, %r2, %r3;", 6),
    ("7.5", FFMA, 4), ("7.5", IADD, 4), ("7.5", DFMA, 45), ("7.5", "div.s32 %r1, %r1, %r2;", 79),
    ("7.5", "div.rn.f32 %f1, %f1, %f2;", 335), ("7.5", "div.rn.f64 %e1, %e1, %e2;", 1165),
    ("7.5", "rsqrt.approx.f32 %f1, %f1;", 25), ("7.5", "fma.rn.f16x2 %r1, %r1, %r2, %r3;", 6),
    # Accel-Sim's microbenchmarks on a TITAN V: 21.1, 27.0
    ("7.0", "sqrt.approx.f32 %f1, %f1;", 21), ("7.0", SHARED, 27),
    # sjfeng1999/gpu-arch-microbenchmark, RTX 2070
    ("7.5", SHARED, 23),
    # Abdelkhalik et al., HPEC 2022 (A100); probes of an H200
    ("8.0", FFMA, 4), ("9.0", FFMA, 4),
    # accel-sim/gpgpu-sim_distribution, tuned: TITAN X (Pascal), RTX 3070
    ("6.1", SHARED, 24), ("8.6", SHARED, 29),
]  # fmt: skip

CITED = [
    # Wong et al., ISPASS 2010 (GT200)
    ("1.3", FADD, 24), ("1.3", DADD, 48), ("1.3", "rsqrt.approx.f32 %f1, %f1;", 28),
    ("1.3", SHARED, 38),
    # Mei and Chu, TPDS 2016 (Fermi); Jia et al., 2018 (Kepler, Pascal)
    ("2.0", FADD, 18), ("2.0", SHARED, 50), ("3.5", FADD, 9), ("3.5", SHARED, 26), ("6.1", FADD, 6),
]  # fmt: skip

INTERVALS = [
    # Accel-Sim's microbenchmarks on a TITAN V: an issue every 2, 4 and 8 cycles
    ("7.0", "fma.rn.f32 %f1{i}, %f2, %f3, %f4;", 2),
    ("7.0", "fma.rn.f64 %e1{i}, %e2, %e3, %e4;", 4),
    ("7.0", "sqrt.approx.f32 %f1{i}, %f2;", 8),
    # Abdelkhalik et al. (A100): 2; probes of an H200: 1.01
    ("8.0", "fma.rn.f32 %f1{i}, %f2, %f3, %f4;", 2),
    ("9.0", "fma.rn.f32 %f1{i}, %f2, %f3, %f4;", 1),
    # 8 lanes on 1.3, 32 for two schedulers on 2.0 (CUDA C Programming Guide 4.2, appendix F)
    ("1.3", "add.rn.f32 %f1{i}, %f2, %f3;", 4),
    # 128 lanes on 8.6, 64 for integers (CUDA C Programming Guide 11)
    ("8.6", "fma.rn.f32 %f1{i}, %f2, %f3, %f4;", 1),
    ("8.6", "add.s32 %r1{i}, %r2, %r3;", 2),
]

STREAMS = ("add.rn.f32 %f{j}, %f2, %f3;", "add.s32 %r{j}, %r2, %r3;",
           "add.rn.f64 %e{j}, %e2, %e3;", "ex2.approx.f32 %f{j}, %f2;")  # fmt: skip
THROUGHPUT = {
    "1.3": (4, 4, 32, 16), "2.0": (2, 2, 2, 16), "3.5": (2 / 3, 4 / 5, 2, 4), "6.1": (1, 1, 8, 4),
    "7.0": (2, 2, 4, 8), "7.5": (2, 2, 16, 8), "8.0": (2, 2, 4, 8), "8.6": (1, 2, 16, 8),
    "9.0": (1, 2, 2, 8),
}  # fmt: skip
"""Cycles of a warp's instruction, by hand: 32 lanes over those that the programming guides give for
an SM ("Throughput of Native Arithmetic Instructions"; of 1.3 and 2.0, chapter 5 of guide 4.2), and
over those of its scheduler where schedulers have units of their own (double precision has one unit
for the SM on 1.3, 2.0, 6.1, 7.5 and 8.6)."""

GLOBAL = [
    # Wong et al., Mei and Chu, Jia et al.: remembered; GPGPU-Sim, tuned to an RTX 3070
    ("1.3", "ld.global.u64", 440), ("2.0", "ld.global.u64", 96), ("3.5", "ld.global.cg.u64", 200),
    ("6.1", "ld.global.cg.u64", 225), ("8.6", "ld.global.u64", 39),
    ("8.6", "ld.global.cg.u64", 226),
    # te42kyfo/gpu-benches, HPMLL/NVIDIA-Hopper-Benchmark, sjfeng1999/gpu-arch-microbenchmark
    ("7.0", "ld.global.u64", 33.7), ("7.0", "ld.global.cg.u64", 215),
    ("7.5", "ld.global.u64", 32), ("7.5", "ld.global.cg.u64", 236),
    ("8.0", "ld.global.u64", 36.1), ("8.0", "ld.global.cg.u64", 211),
    ("9.0", "ld.global.u64", 34.1), ("9.0", "ld.global.cg.u64", 265.5),
    ("6.1", "ld.global.u64", 82),
]  # fmt: skip


@pytest.mark.parametrize(("cc", "line", "cycles"), [*VERIFIED, *CITED])
def test_dependent_chain_takes_latency(cc: str, line: str, cycles: float) -> None:
    assert each(line, cc, count=8) == cycles


@pytest.mark.parametrize(("cc", "line", "cycles"), INTERVALS)
def test_independent_stream_takes_issue_interval(cc: str, line: str, cycles: float) -> None:
    assert each(line, cc, count=32) == pytest.approx(cycles, rel=0.02)


@pytest.mark.parametrize("cc", THROUGHPUT)
@pytest.mark.parametrize("kind", range(len(STREAMS)))
def test_compute_capabilities_have_throughput_of_guide(cc: str, kind: int) -> None:
    found = each(STREAMS[kind], cc, count=24)
    assert found == pytest.approx(THROUGHPUT[cc][kind], rel=0.03)


@pytest.mark.parametrize(("cc", "load", "cycles"), GLOBAL)
def test_pointer_chase_has_latency_of_memory_level(cc: str, load: str, cycles: float) -> None:
    """All lines come from DRAM once; then each hits the first cache that the load looks up. One
    thread follows the pointers."""
    assert each(f"{load} %d2, [%d2];", cc, count=2 * LINES, block=1) == pytest.approx(
        cycles, rel=0.03
    )


def test_atomic_of_one_lane_takes_latency() -> None:
    """243.6 cycles on a TITAN V, by Accel-Sim's microbenchmarks."""
    line = "atom.global.add.u32 %r1, [%d2], %r1;"
    assert each(line, "7.0", block=1) == pytest.approx(243.6, rel=0.01)
