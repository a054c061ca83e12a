"""Comparing two runs: verdicts, ranks and warnings, on reports that are written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warploom.cli.main import app
from warploom.core.errors import WarploomError
from warploom.report.compared import comparison_as_json, render_comparison_text
from warploom.report.comparison import Comparison, RunTotals, compare

ROOT = Path(__file__).parents[2]


def report(*, us: float | None = None, occupancy: float = 100.0, **counters: float) -> Any:
    """A report with a modelled duration in microseconds and some counters."""
    metrics = [{"name": "Theoretical Occupancy", "value": occupancy}]
    metrics += [] if us is None else [{"name": "Duration", "value": us}]
    return {
        "kernel": "k",
        "device": "H100",
        "counters": {**counters, "instructions_by_unit": {"matrix": counters.get("matrix", 0)}},
        "sections": {"All": metrics},
    }


def compared(before: Any, after: Any) -> Comparison:
    return compare(RunTotals.of("before", before), RunTotals.of("after", after))


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ((4.0, 2.0), "Better: 2 times as fast (modelled time: 4 us before, 2 us after)."),
        ((2.0, 3.0), "Worse: takes 1.5 times as long (modelled time: 2 us before, 3 us after)."),
        ((2.0, 2.04), "The same, within 3 % (modelled time: 2 us before, 2.04 us after)."),
    ],
)
def test_the_verdict_is_that_of_times(times: tuple[float, float], verdict: str) -> None:
    before, after = (report(us=us, warp_instructions=100) for us in times)
    found = compared(before, after)
    assert found.verdict == verdict
    assert found.reason == "No count changed."
    assert render_comparison_text(found).startswith(verdict)


def test_without_times_the_least_time_decides_then_the_counts() -> None:
    before, after = report(warp_instructions=300), report(warp_instructions=100)
    assert compared(before, after).verdict == "Better: 3 times as fast (counted slots)."
    before["ceilings"] = [{"part": "global memory", "seconds": 1e-6}]
    after["ceilings"] = [{"part": "instructions", "seconds": 2e-6}]
    assert compared(before, after).verdict == (
        "Worse: takes 2 times as long (lower bound on the time, at the device's peak rates: 1 us "
        "before, 2 us after)."
    )


def test_rows_are_ranked_by_what_a_change_costs_not_by_its_ratio() -> None:
    """10 new wavefronts of shared memory, 100 barriers that are gone, and 1,000 sectors less of
    10,000: the smallest ratio costs most."""
    found = compared(
        report(us=2.0, global_load_sectors=10_000, barriers=100, warp_instructions=50),
        report(us=1.0, global_load_sectors=9_000, shared_load_wavefronts=10, warp_instructions=50),
    )
    names = [row.name for row in found.rows]
    assert names == ["Global Load Sectors", "Barriers", "Shared Wavefronts", "Warp Instructions"]
    assert [row.change for row in found.rows] == ["-10.0 %", "gone", "new", "same"]
    assert found.reason == "Because of global load sectors (from 10,000 to 9,000: -10.0 %)."


def test_a_change_against_the_verdict_is_named() -> None:
    found = compared(
        report(us=2.0, global_store_sectors=1_000), report(us=1.0, shared_store_wavefronts=500)
    )
    assert found.reason == (
        "Because of global store sectors (from 1,000 to 0: gone), despite shared wavefronts "
        "(from 0 to 500: new)."
    )


def test_ratios_that_look_worse_while_their_total_is_better_are_explained() -> None:
    """Loads of four floats: 16 sectors a request instead of 4, and half as many sectors."""
    found = compared(
        report(us=2.0, global_load_sectors=4_000, global_load_requests=1_000),
        report(us=1.0, global_load_sectors=2_000, global_load_requests=125, occupancy=50.0),
    )
    sectors, occupancy = found.notes
    assert sectors.startswith("Global Load Sectors Per Request looks worse (4 before, 16 after)")
    assert "Global Load Sectors -50.0 %" in sectors
    assert occupancy.startswith("Occupancy fell from 100 % to 50 %, but the run is faster")


def test_ratios_that_are_worse_are_not_explained_away() -> None:
    found = compared(
        report(us=1.0, global_load_sectors=4_000, global_load_requests=1_000),
        report(us=2.0, global_load_sectors=8_000, global_load_requests=1_000, occupancy=50.0),
    )
    assert found.notes == ()


def test_launches_are_added_up() -> None:
    """A fused kernel against two kernels, one of which was launched twice: the counters of a
    program's report are sums already."""
    program = {
        "kernels": [
            {**report(warp_instructions=200), "launches": 2},
            {**report(warp_instructions=100), "launches": 1},
        ]
    }
    found = compared(program, report(warp_instructions=150))
    assert (found.before.launches, found.after.launches) == (3, 1)
    assert found.rows[0].before == 300
    assert found.notes == ("Totals are sums over 3 launches before and 1 after.",)


def test_copies_products_and_spills_have_rows() -> None:
    found = compared(
        report(local_load_sectors=64, warp_instructions=1),
        report(tensor_copy_bytes_loaded=4_096, matrix=16, warp_instructions=1),
    )
    assert {row.name: row.change for row in found.rows if row.change != "same"} == {
        "Bytes Of Asynchronous Copies": "new",
        "Local Memory Sectors (Spills, Arrays)": "gone",
        "Matrix Instructions": "new",
    }
    assert json.loads(comparison_as_json(found))["counts"][0]["change"] == "new"


@pytest.mark.parametrize("data", [[], {"kernel": "k"}, {"kernels": [{}]}, {"kernels": []}, "text"])
def test_what_is_no_report_is_refused(data: object) -> None:
    with pytest.raises(WarploomError, match=r"file\.json is (not a|the) report"):
        RunTotals.of("file.json", data)


def test_two_kernels_of_a_file_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A transposition of 128 x 128 floats has 512 stores of a warp, of 32 sectors each where they
    go down a column, of 4 where they go along a row."""
    source = str(ROOT / "examples" / "transpose.cu")
    launch = "--grid 4x4 --block 32x8 --arg f32[128x128]=arange --arg f32[128x128]=zeros --arg 128"
    kernels = ("--kernel", "transpose_naive", "--after-kernel", "transpose_tiled")
    app(["compare", source, source, *kernels, *launch.split()], standalone_mode=False)
    printed = capsys.readouterr().out
    assert printed.startswith("Better: ")
    assert "Because of global store sectors (from 16,384 to 2,048: -87.5 %)" in " ".join(
        printed.split()
    )
