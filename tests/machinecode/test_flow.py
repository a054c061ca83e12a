"""How often machine code was executed, from counts of PTX instructions."""

from __future__ import annotations

import numpy as np
import pytest
from listings import listing

from warploom.machinecode.divergence import ConvergenceRegion, regions_of
from warploom.machinecode.evidence import ANCHOR, Evidence
from warploom.machinecode.flow import CountedDivergence, Demands, flow_of
from warploom.machinecode.graph import Node, graph_of
from warploom.machinecode.loops import Loop, loops_of
from warploom.machinecode.operands import ListingError
from warploom.machinecode.turns import Turns
from warploom.program.program import Site


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


def test_a_call_within_a_function_is_a_branch() -> None:
    """A loop as ptxas 13.0 ends it on 8.6: a call that leaves it, then a branch back."""
    code = listing(
        [
            *[("FADD R0, R0, R0", 1), ("@P0 CALL.REL.NOINC >3", 2), ("BRA >0", 2)],
            *[("STG.E [R2], R0", 3), ("EXIT", 4)],
        ],
        {"k": 0},
    )
    assert graph_of(code) == (
        Node(0, 2, (1, 2), leaves=False),
        Node(3, 5, (), leaves=True),
        Node(2, 3, (0,), leaves=False),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [("BRX R4 -0x30", "the target of"), ("RET.REL.NODEC R2", "returns without a call")],
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
    found = flow_of(UNROLLED, evidence, np.array([32.0 * turns]), Demands(32)).executed
    assert found == pytest.approx([32, 32 * fours, 32, 32 * ones, 32])


def test_a_guarded_instruction_may_do_nothing() -> None:
    """An access that half of the warps make, with a guard: it is issued by all."""
    nodes = (Node(0, 10, (), leaves=True),)
    evidence = [anchor(1, {0: 1}), anchor(2, {0: 1}, excess=0)]
    found = flow_of(nodes, evidence, np.array([8.0, 4.0]), Demands(8)).executed
    assert found == pytest.approx([8])


DIAMOND = (
    Node(0, 2, (1, 2), leaves=False),
    Node(2, 6, (3,), leaves=False),
    Node(6, 9, (3,), leaves=False),
    Node(9, 10, (4,), leaves=False),
    Node(10, 12, (), leaves=True),
)
"""Two ways from a branch behind a BSSY to a BSYNC, and what is behind it."""

REGION = ConvergenceRegion((0,), 3, frozenset({0, 1, 2}), breaks=False)


def test_lanes_that_part_go_both_ways_and_meet_at_the_barrier() -> None:
    """10 warps: 3 go one way, 3 the other, 4 part: 14 groups come to the BSYNC."""
    evidence = [anchor(1, {1: 1}), anchor(2, {2: 1}), anchor(3, {4: 1})]
    demands = Demands(10, [CountedDivergence((0,), 4)], [REGION])
    found = flow_of(DIAMOND, evidence, np.array([7.0, 7.0, 10.0]), demands).executed
    assert found == pytest.approx([10, 7, 7, 14, 10])


def test_without_diverged_lanes_flow_is_kept() -> None:
    """The same counts where no lanes diverged are wrong; 10 warps go through all the same."""
    evidence = [anchor(1, {1: 1}), anchor(2, {2: 1}), anchor(3, {4: 1})]
    demands = Demands(10, [CountedDivergence((0,), 0)], [REGION])
    found = flow_of(DIAMOND, evidence, np.array([7.0, 7.0, 10.0]), demands).executed
    assert found[1] + found[2] == pytest.approx(10)
    assert found[[0, 3, 4]] == pytest.approx([10, 10, 10])


def test_groups_that_leave_inside_do_not_come_to_the_barrier() -> None:
    """Of 10 warps 4 part; everybody on the one way leaves the kernel there."""
    leaving = (*DIAMOND[:1], Node(2, 6, (), leaves=True), *DIAMOND[2:])
    evidence = [anchor(1, {1: 1}), anchor(2, {2: 1})]
    demands = Demands(10, [CountedDivergence((0,), 4)], [REGION])
    found = flow_of(leaving, evidence, np.array([7.0, 7.0]), demands).executed
    assert found == pytest.approx([10, 7, 7, 7, 7])


LOOP = (
    Node(0, 3, (1, 3), leaves=False),
    Node(3, 9, (2,), leaves=False),  # what stands before the loop
    Node(9, 14, (2, 3), leaves=False),
    Node(14, 15, (), leaves=True),
)


def test_a_loop_is_entered() -> None:
    """8 warps make 40 turns; nothing but the count of entries says that they come by node 1."""
    turns = Turns(8, 40, (frozenset({2}),), {2: 1}, more=True)
    found = flow_of(LOOP, [anchor(1, {2: 1})], np.array([40.0]), Demands(8, loops=[turns])).executed
    assert found == pytest.approx([8, 8, 40, 8])


def test_the_first_turn_may_stand_before_a_loop() -> None:
    """The same where node 1 has a turn: the 8 entries make 32 in the loop."""
    turns = Turns(8, 40, (frozenset({2}),), {2: 1}, more=True)
    evidence = [anchor(1, {1: 1, 2: 1})]
    found = flow_of(LOOP, evidence, np.array([40.0]), Demands(8, loops=[turns])).executed
    assert found == pytest.approx([8, 8, 32, 8])


def test_loops_are_found_inside_each_other() -> None:
    graph = [(1,), (2, 5), (3,), (3, 4), (1,), (6, 7), (5,), ()]
    assert loops_of(graph) == [
        Loop(frozenset({1, 2, 3, 4}), frozenset({1})),
        Loop(frozenset({5, 6}), frozenset({5})),
        Loop(frozenset({3}), frozenset({3})),
    ]


def test_a_loop_may_be_entered_at_two_places() -> None:
    assert loops_of([(1, 2), (2,), (1, 3), ()]) == [Loop(frozenset({1, 2}), frozenset({1, 2}))]


def test_branches_of_diverged_lanes_have_two_paths() -> None:
    """BRA.DIV is taken where lanes have diverged."""
    code = listing([("BRA.DIV UR4, >2", 1), ("EXIT", 2), ("EXIT", 3)])
    assert graph_of(code)[0].successors == (1, 2)


def test_a_region_extends_from_its_bssy_to_its_bsync() -> None:
    """Lanes can be diverged from the branch to the BSYNC; the next instruction is the target."""
    code = listing(
        [
            *[("BSSY B0, >5", 1), ("@P0 BRA >3", 2), ("FADD R0, R0, R0", 3)],
            *[("FADD R1, R1, R1", 4), ("BSYNC B0", 5), ("EXIT", 6)],
        ]
    )
    nodes = graph_of(code)
    assert [(node.start, node.stop) for node in nodes] == [(0, 2), (3, 5), (2, 3), (5, 6)]
    assert regions_of(code, nodes) == [ConvergenceRegion((0,), 1, frozenset({0, 2}), breaks=False)]
