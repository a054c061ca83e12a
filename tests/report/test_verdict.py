"""The verdict of a report: in five lines what bounds a launch, where, and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.report.ceilings import ceilings
from warploom.report.peaks import time_text
from warploom.report.render import Parts, render_text
from warploom.report.sections import Report
from warploom.report.verdict import verdict

FOLDER = Path(__file__).parents[2] / "examples"
N = 1 << 20


@cache
def saxpy() -> Report:
    gpu = wl.Device("h100")
    x, y = gpu.zeros(N, np.float32), gpu.zeros(N, np.float32)
    return gpu.load(FOLDER / "saxpy.cu")["saxpy"][N // 256, 256](N, 2.0, x, y).summary


@cache
def transpose() -> Report:
    gpu = wl.Device("h100")
    x, y = gpu.zeros(N, np.float32), gpu.zeros(N, np.float32)
    kernel = gpu.load(FOLDER / "transpose.cu")["transpose_tiled"]
    return kernel[(32, 32), (32, 8)](x, y, 1024).summary


def test_a_stream_is_bound_by_memory() -> None:
    """12 bytes for each of 2^20 elements at a stream of the H100's 3,352 GB/s; 132 SMs with 4
    schedulers issue one instruction each a cycle, some twenty for each of 2^15 warps."""
    found = {one.part: one for one in ceilings(saxpy())}
    first, second = ceilings(saxpy())[0], found["instructions"]
    assert first.part == "global memory"
    assert 12 * N / 3352e9 < first.seconds < 12 * N / 2500e9
    assert first.work == "12.6 MB"
    issued = saxpy().counters.warp_instructions
    assert second.seconds == pytest.approx(issued / (132 * 4) / 1.98e9, rel=0.2)


def test_a_tile_without_padding_is_bound_by_shared_memory() -> None:
    """Of 2^15 warps each stores one wavefront and loads a column of 32."""
    first = ceilings(transpose())[0]
    assert (first.part, first.work) == ("shared memory", f"{(1 << 15) * 33:,} wavefronts")


MIXED = """
__global__ void mixed(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i];
    for (int k = 0; k < 64; k++) v = v * 1.0001 + 0.25;
    out[i] = v;
}
"""
"""Each iteration has one multiply-add in double precision, by constants without f."""


def mixed(device: str) -> Report:
    gpu = wl.Device(device)
    x, y = gpu.zeros(1 << 18, np.float32), gpu.zeros(1 << 18, np.float32)
    return gpu.compile(MIXED)["mixed"][1024, 256](x, y).summary


def test_double_precision_bounds_a_kernel_on_a_consumer_device() -> None:
    """64 multiply-adds of 2^13 warps; each takes 16 cycles of the two lanes that one of the 128 SMs
    of an RTX 4090 has for it (programming guide, arithmetic throughput), at 2.52 GHz."""
    report = mixed("rtx-4090")
    first = ceilings(report)[0]
    assert (first.part, first.work) == ("double precision", f"{64 << 13:,} instructions")
    assert first.seconds == pytest.approx((64 << 13) * 16 / 128 / 2.52e9)
    found = verdict(report)[1]
    assert "double precision" in found.text
    assert f"{64 << 13:,} warp instructions in double precision, at 1/64" in next(
        one.evidence for one in report.advice if one.rule == "double precision"
    )
    assert "write constants with the suffix f" in found.remedy


def test_floats_that_are_computed_as_doubles_are_named_on_every_device() -> None:
    """An H100 has 64 lanes for doubles, half of those for floats: 0.5 cycles in each of 132 SMs, of
    which 1,024 blocks leave some with 8 blocks of 8 warps and others with less. The conversions of
    each iteration, one to double and one back, take longer."""
    report = mixed("h100")
    [double] = [one for one in ceilings(report) if one.part == "double precision"]
    assert double.seconds == pytest.approx(8 * 8 * 64 * 0.5 / 1.98e9)
    assert ceilings(report)[0].part == "conversions"
    [found] = [one for one in report.advice if one.rule == "double precision"]
    assert f"with {2 * 64 << 13:,} conversions from float to double or back" in found.evidence
    assert "write constants with the suffix f" in verdict(report)[1].remedy


DOUBLES = """
__global__ void doubles(const double *in, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double v = in[i];
    for (int k = 0; k < 64; k++) v = v * 1.0001 + 0.25;
    out[i] = v;
}
"""


def test_double_precision_is_not_advised_against_where_it_is_fast() -> None:
    gpu = wl.Device("h100")
    x, y = gpu.zeros(1 << 18, np.float64), gpu.zeros(1 << 18, np.float64)
    report = gpu.compile(DOUBLES)["doubles"][1024, 256](x, y).summary
    assert "double precision" not in {one.rule for one in report.advice}


@pytest.mark.parametrize("made", [saxpy, transpose])
def test_a_verdict_has_three_findings_and_a_first_screen_fifteen_lines(
    made: Callable[[], Report],
) -> None:
    report = made()
    first, *findings = verdict(report)
    assert first.text.startswith("Bound by ")
    assert len(findings) <= 3
    text = render_text(report, parts=Parts(details=False, next_command="warploom time k.cu"))
    assert text.splitlines()[-1] == "Next: warploom time k.cu"
    assert len(text.splitlines()) <= 15 - 3  # three buffers are shown above it
    assert "Metric Name" not in text


def test_a_finding_is_whole_if_the_first_screen_has_space() -> None:
    """The transpose has one finding; with two more, these are named in the last line."""
    report = transpose()
    [found] = [line for line in verdict(report) if "bank conflicts" in line.text]
    text = render_text(report, parts=Parts(details=False))
    assert " ".join(found.text.split()) in " ".join(text.split())
    assert "…" not in text
    first = report.advice[0]
    others = (replace(first, line=f"a.cu:{n}", text=f"{n}. {first.text}") for n in "23")
    many = replace(report, advice=(replace(first, line="a.cu:1"), *others))
    lines = render_text(many, parts=Parts(details=False)).splitlines()
    assert " ".join(found.text.split())[60:] in " ".join(" ".join(lines).split())
    assert lines[-1].endswith("see --details")
    assert ", and 1 more" in lines[-1]
    assert len(lines) <= 15 - 3 - 1  # there is no next command


def test_lines_with_one_remedy_are_one_finding_that_saves_what_all_of_them_save() -> None:
    """Three lines each save a quarter of the wavefronts, together three quarters: what is left of
    shared memory's time is a quarter, so global memory bounds the launch."""
    report = transpose()
    assert report.work is not None
    first, part = report.advice[0], {"wavefronts": report.work.wavefronts / 4}
    rows = [replace(first, line=f"a.cu:{n}", share=0.01 * n, saves=part) for n in (12, 7, 9)]
    [_, found] = verdict(replace(report, advice=tuple(rows)))
    assert found.title.startswith("a.cu:12, 7 and 9  bank conflicts (saves up to ")
    times = {one.part: one.seconds for one in ceilings(report)}
    left = max(times["shared memory"] / 4, times["global memory"])
    assert f"to {time_text(left)})" in found.title
    [_, *distinct] = verdict(
        replace(report, advice=(rows[0], replace(rows[1], text="Another one.")))
    )
    assert len(distinct) == 2


def test_the_costliest_line_comes_with_its_number_and_its_remedy() -> None:
    """31 of 32 wavefronts are more than needed, in 2^13 requests of each of four unrolled loads
    of the line, which are 2^15 together."""
    [found] = [line for line in verdict(transpose()) if "transpose.cu:21" in line.text]
    assert found.text.startswith("  transpose.cu:21  bank conflicts (saves up to ")
    assert f"{31 << 15:,} extra wavefronts in {1 << 15:,} loads from tile" in found.text
    assert found.remedy.startswith("Pad each row of 128 bytes by 4")
    text = render_text(transpose(), parts=Parts(details=False))
    assert f"      {found.remedy[:60]}" in text


def test_the_verdict_and_its_advice_come_before_the_tables() -> None:
    lines = render_text(transpose()).splitlines()
    bound = next(i for i, line in enumerate(lines) if line.startswith("Bound by"))
    tables = next(i for i, line in enumerate(lines) if "Metric Name" in line)
    advice = lines.index("Advice")
    assert bound < advice < tables
    assert bound <= 3


def test_advice_is_indented_as_a_whole() -> None:
    lines = render_text(transpose(), parts=Parts(sections=["advice"])).splitlines()
    assert lines[0] == "Advice"
    assert all(line.startswith("  ") for line in lines[1:] if line)


def test_sections_are_named_by_their_beginning() -> None:
    text = render_text(saxpy(), parts=Parts(sections=["occ"]))
    assert text.startswith("Occupancy")
    assert "Launch Statistics" not in text
    with pytest.raises(WarploomError, match=r"no section 'cache'\. Its sections are Launch"):
        render_text(saxpy(), parts=Parts(sections=["cache"]))


def test_lines_say_why_they_cost() -> None:
    """A line is not "executed often": it has its share of all instructions, and its conflicts."""
    whys = {line.line.rpartition(":")[2]: line.why for line in transpose().lines}
    assert "1,015,808 bank conflicts" in whys["21"]  # 31 for each of 2^15 warps
    assert "4.0 transactions per request (optimal)" in whys["17"]
    assert all("often" not in why for why in whys.values())


def test_a_choice_without_a_branch_says_that_both_sides_were_computed() -> None:
    """NVRTC makes a select for each of two warps of the short if and else: no branch, and no lane
    is off."""
    source = """__global__ void pick(float *x)
{
    int i = threadIdx.x;
    float v = x[i];
    if (i % 2) v = v * 3 + 1; else v = v * 5 + 7;
    x[i] = v;
}"""
    run = wl.Device().compile(source, name="pick.cu")["pick"][1, 64](np.ones(64, np.float32))
    counters = run.counters
    assert (counters.branches, counters.selects % 2) == (0, 0)
    assert counters.selects > 0
    whys = {line.line.rpartition(":")[2]: line.why for line in run.summary.lines}
    assert "both sides of a conditional computed and one selected" in whys["5"]
    assert all("choice" not in why for line, why in whys.items() if line != "5")
    assert "Selects (conditionals without a branch)" in run.report()


@pytest.mark.parametrize(
    ("blocks", "threads", "named"),
    [
        # 132 SMs hold 16 blocks of 128 threads each: 2,112. 75 % of them are 1,584.
        (40, 128, ["small grid (not the bottleneck: instructions "]),
        (1583, 128, ["small grid: 1,583 blocks"]),
        (1584, 128, []),
        # 8 of 32 lanes; 32 blocks an SM are 32 of 64 warps.
        (1 << 15, 8, ["partial warps (saves up to 75 %: ", "small blocks (saves up to "]),
    ],
)
def test_a_verdict_names_what_is_wrong_with_the_launch(
    blocks: int, threads: int, named: list[str]
) -> None:
    gpu = wl.Device("h100")
    x, y = gpu.zeros(N, np.float32), gpu.zeros(N, np.float32)
    saxpy = gpu.load(FOLDER / "saxpy.cu")["saxpy"]
    lines = verdict(saxpy[blocks, threads](blocks * threads, 2.0, x, y).summary)
    of_launch = [line.text.removeprefix("  launch  ") for line in lines if "launch  " in line.text]
    assert len(of_launch) == len(named)
    assert all(map(str.startswith, of_launch, named))
    assert all(line.remedy for line in lines if "launch  " in line.text and "(" in line.text)
