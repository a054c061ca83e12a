"""The kernels of benchmarks/kernels.py give right results, and its figures are right by hand."""

from __future__ import annotations

import kernels
import numpy as np
import pytest
from families import CASES
from families.base import Case, Problem, shapes
from families.measuring import launches, measure
from families.tables import Measurement, Timing, summary

SMALL = ("LU step", "scan by shuffles", "reversal, 16 bits", "hash table, insertion")


@pytest.mark.parametrize("name", SMALL)
def test_kernels_are_right_in_their_first_and_last_shapes(name: str) -> None:
    [case] = [case for case in CASES if case.name == name]
    ends = [case.shapes[0], case.shapes[-1]]
    assert [launch.shape for launch, _ in launches(case, ends)] == ends


def test_every_kernel_has_four_shapes_beside_its_natural_one_and_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40
    for case in CASES:
        assert len({shape.label for shape in case.shapes}) == len(case.shapes) >= 5, case.name


def test_kernels_of_a_source_are_all_measured() -> None:
    for path in {case.path for case in CASES}:
        declared = path.read_text("utf-8").count('extern "C" __global__ void')
        assert declared == len({case.kernel for case in CASES if case.path == path}), path


def case_of(expected: float) -> Case:
    """Returns a kernel that reverses 0, 1, 2, and is said to leave other numbers."""

    def build(_: object) -> Problem:
        values = np.arange(3, dtype=np.int16)
        wanted = np.array([2, 1, expected])
        return Problem((1,), (values, np.zeros_like(values), 3), {1: wanted})

    return Case("three", "moving.cu", "reverse", shapes("32"), build)


def test_a_wrong_result_is_named_by_its_place() -> None:
    with pytest.raises(
        AssertionError, match=r"three, block 32: 1 of 3 .* element \(2,\) is 0 .* 7"
    ):
        list(launches(case_of(7), case_of(7).shapes))


def test_warp_instructions_a_launch_are_those_of_one_launch() -> None:
    case = case_of(0)
    [timing] = measure(case, case.shapes, native=False).timings
    [counted] = [launch.warp_instructions() for launch, _ in launches(case, case.shapes)]
    assert timing.warp_instructions == counted > 0
    assert timing.rate == timing.warp_instructions / timing.seconds


def test_figures_by_hand() -> None:
    fast = Measurement(
        "fast",
        (Timing("32", 100, 1.0, 3.0, 5.0, "level 3"), Timing("8x8", 100, 4.0, 0, 0, "level 1")),
        0.5,
    )
    slow = Measurement(
        "slow",
        (Timing("32", 200, 8.0, 1.0, 2.0, "level 3"), Timing("64", 100, 2.0, 0, 0, "level 3")),
    )
    assert fast.ratios == [1, 0.25]
    assert slow.ratios == [0.5, 1]
    assert fast.native_ratio == 0.5
    lines = summary([fast, slow]).splitlines()
    assert lines[0] == "2 kernels, 4 launch shapes"
    assert lines[1] == "code of the timed launches: level 1, level 3"
    # (1 x 1/4 x 1/2 x 1) ^ (1/4) = 2 ^ (-3/4) = 0.59
    assert lines[2].endswith("geometric mean 0.59, worst 0.25 (fast in 8x8)")
    assert lines[4] == "compile: median 2.00 s, 90th percentile 2.80 s"
    assert lines[5] == "optimize: median 3.50 s, 90th percentile 4.70 s"
    assert lines[6].endswith("1 kernels: geometric mean 0.50, worst 0.50 (fast)")


def test_the_page_has_places_for_both_tables() -> None:
    page = kernels.PAGE.read_text("utf-8")
    for section in ("kernels", "summary"):
        assert f"<!-- {section} -->" in page
        assert f"<!-- end of {section} -->" in page
