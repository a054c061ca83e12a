"""How often machine code was executed, from counts of PTX instructions."""

from __future__ import annotations

import numpy as np
import pytest
from listings import listing

from warploom.analysis.program import Site
from warploom.machinecode.evidence import ANCHOR, Evidence
from warploom.machinecode.flow import Demands, flow_of
from warploom.machinecode.graph import Node, graph_of
from warploom.machinecode.operands import ListingError


def anchor(line: int, copies: dict[int, int], excess: float = ANCHOR) -> Evidence:
    return Evidence(Site("k", line), copies, ANCHOR, excess)


def test_a_called_function_stands_where_it_is_called() -> None:
    code = listing(
        [
            *[("MOV R2, 0x20", 1), ("CALL.REL.NOINC >5", 2)],
            *[("MOV R2, 0x40", 3), ("CALL.REL.NOINC >5", 4)],
            *[("EXIT", 5), ("FADD R0, R0, R0", None), ("RET.REL.NODEC R2", None)],
        ],
        {"helper": 5},
    )
    assert graph_of(code) == (
        Node(0, 2, (1,), leaves=False),
        Node(5, 7, (2,), leaves=False),
        Node(2, 4, (3,), leaves=False),
        Node(5, 7, (4,), leaves=False),
        Node(4, 5, (), leaves=True),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [("BRX R4 -0x30", "nobody knows where"), ("RET.REL.NODEC R2", "returns from where nothing")],
)
def test_ways_that_are_not_known_are_errors(line: str, message: str) -> None:
    with pytest.raises(ListingError, match=message):
        graph_of(listing([(line, 1), ("EXIT", 2)]))


UNROLLED = (
    Node(0, 4, (1, 2), leaves=False),
    Node(4, 44, (1, 2), leaves=False),  # four turns, ten instructions each
    Node(44, 46, (3, 4), leaves=False),
    Node(46, 57, (3, 4), leaves=False),  # one turn, eleven
    Node(57, 58, (), leaves=True),
)


@pytest.mark.parametrize(("turns", "fours", "ones"), [(8, 2, 0), (4, 1, 0)])
def test_an_unrolled_loop_is_used_as_far_as_it_goes(turns: int, fours: int, ones: int) -> None:
    """32 warps each go through a loop that is there four times and once: the cheaper one does all
    turns."""
    evidence = [anchor(1, {1: 4, 3: 1})]
    found = flow_of(UNROLLED, evidence, np.array([32.0 * turns]), Demands(32, 0, 0))
    assert found == pytest.approx([32, 32 * fours, 32, 32 * ones, 32])


def test_a_guarded_instruction_may_do_nothing() -> None:
    """An access that half of the warps make, with a guard: it is issued by all."""
    nodes = (Node(0, 10, (), leaves=True),)
    evidence = [anchor(1, {0: 1}), anchor(2, {0: 1}, excess=0)]
    assert flow_of(nodes, evidence, np.array([8.0, 4.0]), Demands(8, 0, 0)) == pytest.approx([8])


DIAMOND = (
    Node(0, 2, (1, 2), leaves=False),
    Node(2, 6, (3,), leaves=False),
    Node(6, 9, (3,), leaves=False),
    Node(9, 10, (), leaves=True),
)


def test_lanes_that_part_go_both_ways() -> None:
    """10 warps: 3 go one way, 3 the other, 4 part and meet again."""
    evidence = [anchor(1, {1: 1}), anchor(2, {2: 1}), anchor(3, {3: 1})]
    counts = np.array([7.0, 7.0, 10.0])
    found = flow_of(DIAMOND, evidence, counts, Demands(10, 4, 4))
    assert found == pytest.approx([10, 7, 7, 10])


def test_without_parted_lanes_flow_is_kept() -> None:
    """The same counts where no lanes parted are wrong; 10 warps go through all the same."""
    evidence = [anchor(1, {1: 1}), anchor(2, {2: 1}), anchor(3, {3: 1})]
    found = flow_of(DIAMOND, evidence, np.array([7.0, 7.0, 10.0]), Demands(10, 0, 0))
    assert found[1] + found[2] == pytest.approx(10)
    assert found[[0, 3]] == pytest.approx([10, 10])
