"""benchmarks/first_runs.py compares runs with the fastest code for as many launches."""

from __future__ import annotations

import first_runs
import pytest
from families import CASES
from families.processes import Launches
from first_runs import Comparison, Measurement


def test_launches_add_up() -> None:
    assert Launches((3.0, 1.0, 2.0), "level 1").totals == [3.0, 4.0, 6.0]


def test_the_oracle_depends_on_the_number_of_launches() -> None:
    codes = {"slow": Launches((1.0, 1.0, 1.0), "baseline"), "fast": Launches((1.5, 0.1, 0.1), "3")}
    one = first_runs.compare(Launches((2.0,), "baseline"), codes, 1)
    assert (one.oracle_seconds, one.oracle_tier, one.ratio) == (1.0, "baseline", 2.0)
    three = first_runs.compare(Launches((2.0, 0.3, 0.25), "level 1"), codes, 3)
    assert three.oracle_tier == "3"
    assert three.ratio == pytest.approx(2.55 / 1.7)


def test_a_sample_is_evenly_spaced() -> None:
    names = [case.name for case in CASES]
    assert first_runs.selected("", None) == names
    assert first_runs.selected("", 3) == [
        names[0],
        names[len(names) // 3],
        names[len(names) * 2 // 3],
    ]
    with pytest.raises(SystemExit, match="no kernel"):
        first_runs.selected("no such kernel", None)


def test_means_are_geometric_and_of_kernels_that_have_the_amount() -> None:
    def run(ratio: float) -> Comparison:
        return Comparison(ratio, 1.0, "level 1", "level 3")

    short = Measurement("short", {0.05: run(1.0), 5.0: run(2.0)}, {5.0: run(1.0)})
    long = Measurement("long", {5.0: run(8.0)}, {5.0: run(4.0)})
    mean, greatest = first_runs.means([short, long]).splitlines()
    # (2 x 8) ^ (1/2) = 4 and (1 x 4) ^ (1/2) = 2
    assert mean.split()[-8:] == ["1.00", "-", "-", "4.00", "-", "-", "-", "2.00"]
    assert greatest.split()[-8:] == ["1.00", "-", "-", "8.00", "-", "-", "-", "4.00"]


def test_the_page_has_a_place_for_the_table() -> None:
    page = first_runs.PAGE.read_text("utf-8")
    assert "<!-- first runs -->" in page
    assert "<!-- end of first runs -->" in page
