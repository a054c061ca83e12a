"""The table of passes is right by hand figures, and sampled passes cost nothing where they are."""

from __future__ import annotations

import platform
import shutil

import passes
import pytest
from families import CASES
from pass_cells import Cell, costly, list_of_losses, table
from pass_launches import Compiled

from warploom.ir.options import Pass

KERNELS = ("grey of RGB bytes", "scan by shuffles")
PASSES = (Pass.VERSIONS, Pass.REGION_VERSIONS, Pass.WARP_ORDER)


def cell(name: Pass, kernel: str, with_pass: int, without: int) -> Cell:
    """Returns a cell of a kernel that a pass changes and whose compile time it does not."""
    return Cell(name, kernel, True, (2.0, 2.0), (with_pass, without))


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="counted for x86-64")
@pytest.mark.nightly
def test_sampled_passes_cost_at_most_a_twentieth() -> None:
    cases = [case for case in CASES if case.name in KERNELS]
    cells = list(passes.measured(cases, PASSES))
    assert len(cells) == len(KERNELS) * len(PASSES)
    assert {cell.name for cell in cells if cell.changes} == set(PASSES)
    assert list_of_losses(cells) == "none"


def test_a_pass_has_to_gain_on_three_kernels() -> None:
    cells = [cell(Pass.STEPS, name, 90, 100) for name in "abc"]
    assert costly(cells) == []
    # 100 instructions without the pass over 96 with it are 1.04.
    cells[2] = cell(Pass.STEPS, "c", 96, 100)
    assert costly(cells) == ["steps gains on 2 of 3 kernels"]


def test_a_pass_must_not_cost_over_a_twentieth_anywhere() -> None:
    cells = [cell(Pass.MASKED_LOOPS, name, 50, 100) for name in "abc"]
    assert costly([*cells, cell(Pass.MASKED_LOOPS, "d", 105, 100)]) == []
    losses = [
        *cells,
        cell(Pass.MASKED_LOOPS, "d", 106, 100),
        cell(Pass.MASKED_LOOPS, "e", 570, 100),
    ]
    assert costly(losses) == ["masked-loops costs 5.70 on e"]
    assert [line.split() for line in list_of_losses(losses).splitlines()] == [
        ["masked-loops", "e", "5.70"],
        ["masked-loops", "d", "1.06"],
    ]


def test_figures_by_hand() -> None:
    unchanged = Cell(Pass.GROUPS, "d", False, (8.0, 2.0))
    cells = [
        cell(Pass.GROUPS, "a", 25, 100),
        unchanged,
        cell(Pass.GROUPS, "b", 200, 100),
        cell(Pass.GROUPS, "c", 50, 100),
    ]
    [_, row] = table(cells).splitlines()
    # (1/4 x 2 x 1/2) ^ (1/3) = 0.63; compile times (4 x 1 x 1 x 1) ^ (1/4) = 1.41
    assert row.split()[:6] == ["groups", "3", "0.63", "2", "1", "1.41"]
    assert row.endswith("a 0.25; c 0.50; b 2.00 | b 2.00 | d 4.00")


def test_cells_pair_a_kernel_with_the_one_that_has_all_passes() -> None:
    compiled = [
        Compiled("a", None, 3.0, True),
        Compiled("a", Pass.STEPS, 2.0, True),
        Compiled("a", Pass.MASKED_LOOPS, 1.0, False),
    ]
    assert list(passes.cells_of(compiled, {("a", None): 10, ("a", Pass.STEPS): 20})) == [
        Cell(Pass.STEPS, "a", True, (3.0, 2.0), (10, 20)),
        Cell(Pass.MASKED_LOOPS, "a", False, (3.0, 1.0)),
    ]


def test_the_page_has_places_for_the_tables() -> None:
    page = passes.PAGE.read_text("utf-8")
    for section in ("passes", "costs", "verdict"):
        assert f"<!-- {section} -->" in page
        assert f"<!-- end of {section} -->" in page
