"""Computes how often each basic block of the machine code was executed, from the counts of PTX
instructions: the flow through its graph that agrees best with all evidence and, among those that
agree as well, executes the fewest instructions (which is what unrolled loops are for).

A linear program: flow is conserved at every block, but where warps diverge, as often as was counted
at conditional branches, and where lanes wait for each other, which is at the end of a region of
divergence (`machinecode.divergence`): as many groups of lanes go on there as went into the region.
Loops are entered (`machinecode.turns`). The weighted sum of absolute differences from the counts is
least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from warploom.machinecode.divergence import ConvergenceRegion
from warploom.machinecode.evidence import ANCHOR, OTHER, Evidence
from warploom.machinecode.graph import Node
from warploom.machinecode.linear import Floats, LinearProgram
from warploom.machinecode.turns import Turns
from warploom.machinecode.unrolled import Uses, bypasses

COST = 1e-3
"""The weight of one executed machine instruction against one difference from the counts."""

UNROLLED = 0.25 * OTHER
"""The weight of one more divergence than was counted, where a PTX branch has several copies: turns
of an unrolled loop and those left over diverge separately (an estimate)."""

MET = 0.5 * OTHER
"""The cost of a group of lanes that waits for another: unless evidence or the number of groups that
went into a region say so, one that came to its end goes on (an estimate)."""


@dataclass(frozen=True)
class CountedDivergence:
    """Counts divergence: warps diverged `count` times at the branches at the ends of `nodes`.
    `named`: the branches were made for the PTX branch that was counted."""

    nodes: tuple[int, ...]
    count: float
    named: bool = True


@dataclass(frozen=True)
class Demands:
    """Holds the constraints of a flow: how many warps entered, where they diverged, the regions at
    whose ends they reconverge, and the iterations of loops."""

    entered: float
    divergences: Sequence[CountedDivergence] = ()
    regions: Sequence[ConvergenceRegion] = ()
    loops: Sequence[Turns] = ()


@dataclass(frozen=True)
class Flow:
    """Holds how often each node was executed, and each edge between two nodes taken."""

    executed: Floats
    edges: Mapping[tuple[int, int], float]


def flow_of(
    nodes: Sequence[Node], evidence: Sequence[Evidence], counts: Floats, demands: Demands
) -> Flow:
    """Returns the flow that agrees best; `counts` are those of the evidence, in step."""
    unit = max(1.0, demands.entered)
    program = LinearProgram()
    executed = [program.variable(COST * node.size) for node in nodes]
    edges = _keep_flow(program, nodes, executed, demands, unit)
    for row in _merged(evidence, counts / unit):
        short, over = program.variable(row.weight), program.variable(row.excess)
        terms = [(executed[node], float(copies)) for node, copies in row.copies.items()]
        program.equal([*terms, (short, 1), (over, -1)], row.count)
    solved = np.maximum(program.solve(), 0) * unit
    taken = {edge: float(solved[variable]) for edge, variable in edges.items()}
    return Flow(solved[: len(nodes)], taken)


def _keep_flow(
    program: LinearProgram,
    nodes: Sequence[Node],
    executed: Sequence[int],
    demands: Demands,
    unit: float,
) -> dict[tuple[int, int], int]:
    """Constrains the flow into a node to equal its executions, and to equal the flow out of it;
    returns the variables of the edges."""
    edges_of: dict[tuple[int, int], int] = {}
    into: list[list[_Edge]] = [[] for _ in nodes]
    diverged = _add_divergences(program, demands, unit)
    met = {region.sync: program.variable(MET) for region in demands.regions}
    left: list[int] = []
    for number, node in enumerate(nodes):
        onward = [program.variable() for _ in node.successors]
        for edge, successor in zip(onward, node.successors, strict=True):
            into[successor].append(_Edge(number, edge))
            edges_of[number, successor] = edge
            if number in diverged:  # no way takes more than there is
                program.at_most([(edge, 1), (executed[number], -1)], 0)
        ends = node.leaves or not node.successors
        left.append(program.variable(most=np.inf if ends else 0))
        terms = [*((edge, 1.0) for edge in onward), (left[-1], 1.0), (executed[number], -1.0)]
        terms += [(diverged[number], -1.0)] if number in diverged else []
        terms += [(met[number], 1.0)] if number in met else []
        program.equal(terms, 0)
    for number, edges in enumerate(into):
        entered = 0 if number else demands.entered / unit
        came = [(edge.variable, 1.0) for edge in edges]
        program.equal([*came, (executed[number], -1.0)], -entered)
    for region in demands.regions:
        _meet(program, region, executed, left, met[region.sync])
    for turns in demands.loops:
        _enter(program, turns, executed, into, unit)
        if turns.uses is not None:
            _use(program, turns, turns.uses, executed, into, unit)
            for edge in bypasses([node.successors for node in nodes], turns.unrolled):
                program.costs[edges_of[edge]] += ANCHOR
    return edges_of


class _Edge(NamedTuple):
    """An edge of the graph: the node that it comes from, and the variable of its flow."""

    start: int
    variable: int


def _enter(
    program: LinearProgram,
    turns: Turns,
    executed: Sequence[int],
    into: Sequence[Sequence[_Edge]],
    unit: float,
) -> None:
    """Constrains the entries of loops: together as often as the loop that they were made for,
    unless its turns can be done outside, and each for its part of them."""
    entered: list[tuple[int, float]] = []
    for loop in turns.made:
        edges = [edge for node in loop for edge in into[node] if edge.start not in loop]
        entries = [(edge.variable, 1.0) for edge in edges]
        entered += entries
        made = [(executed[node], float(n)) for node, n in turns.copies.items() if node in loop]
        share = turns.entered / turns.turns
        short = program.variable(ANCHOR)
        less = [(variable, -factor) for variable, factor in entries]
        program.at_most([*((one, share * n) for one, n in made), *less, (short, -1)], 0)
    if turns.more:
        short = program.variable(ANCHOR)
        less = [(variable, -factor) for variable, factor in entered]
        program.at_most([*less, (short, -1)], -turns.entered / unit)


def _use(
    program: LinearProgram,
    turns: Turns,
    uses: Uses,
    executed: Sequence[int],
    into: Sequence[Sequence[_Edge]],
    unit: float,
) -> None:
    """Constrains the copies of an unrolled loop to be executed, and entered, as often as its turns
    need them."""
    for size, node in turns.unrolled.items():
        less, more = program.variable(OTHER), program.variable(OTHER)
        count = uses.executed[size] / unit
        program.equal([(executed[node], 1), (less, 1), (more, -1)], count)
        loop = next((made for made in turns.made if node in made), frozenset({node}))
        entries = [edge for one in loop for edge in into[one] if edge.start not in loop]
        terms = [(edge.variable, -1.0) for edge in entries]
        program.at_most([*terms, (program.variable(OTHER), -1)], -uses.entered[size] / unit)


def _add_divergences(program: LinearProgram, demands: Demands, unit: float) -> dict[int, int]:
    """Adds a variable for each node at whose end warps can diverge: how often they do. Return the
    variables by node."""
    diverged: dict[int, int] = {}
    for one in demands.divergences:
        parts = [diverged.setdefault(node, program.variable(COST)) for node in one.nodes]
        terms = [(part, 1.0) for part in parts]
        if not one.named:
            program.at_most(terms, one.count / unit)
            continue
        over = UNROLLED if len(parts) > 1 else ANCHOR
        less, more = program.variable(OTHER), program.variable(over)
        program.equal([*terms, (less, 1), (more, -1)], one.count / unit)
    return diverged


def _meet(
    program: LinearProgram,
    region: ConvergenceRegion,
    executed: Sequence[int],
    left: Sequence[int],
    met: int,
) -> None:
    """Constrains as many groups of lanes to leave the end of a region as entered it, less those
    that left the kernel inside."""
    out = [(executed[region.sync], 1.0), (met, -1.0)]
    entered = [(executed[start], 1.0) for start in region.starts]
    program.at_most([*out, *((start, -factor) for start, factor in entered)], 0)
    program.at_most([(met, 1), (executed[region.sync], -1)], 0)
    if not region.breaks:
        gone = [(left[node], -1.0) for node in region.inside]
        program.at_most([*entered, *gone, *((one, -factor) for one, factor in out)], 0)


@dataclass
class _Row:
    copies: Mapping[int, int]
    count: float
    weight: float = 0.0
    excess: float = 0.0


def _merged(evidence: Sequence[Evidence], counts: Floats) -> list[_Row]:
    """Equal evidence as one row, with the sum of its weights."""
    found: dict[object, _Row] = {}
    for one, count in zip(evidence, counts.tolist(), strict=True):
        key = (tuple(sorted(one.copies.items())), count, one.excess == 0)
        row = found.setdefault(key, _Row(one.copies, count))
        row.weight += one.weight
        row.excess += one.excess
    return list(found.values())
