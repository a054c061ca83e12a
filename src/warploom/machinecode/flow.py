"""Computes how often each basic block of the machine code was executed, from the counts of PTX
instructions: the flow through its graph that agrees best with all evidence and, among those that
agree as well, executes the fewest instructions (which is what unrolled loops are for).

A linear program: flow is kept at every block, but where lanes of a warp part or meet, for which the
counted divergence leaves room; the weighted sum of absolute differences from the counts is least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warploom.machinecode.evidence import Evidence
from warploom.machinecode.graph import Node
from warploom.machinecode.linear import Floats, LinearProgram

COST = 1e-3
"""The weight of one executed machine instruction against one difference from the counts."""


@dataclass(frozen=True)
class Demands:
    """The counts that a flow has to meet, in warps: how many entered, and how often their lanes
    parted and met."""

    entered: float
    parted: float
    met: float


def flow_of(
    nodes: Sequence[Node], evidence: Sequence[Evidence], counts: Floats, demands: Demands
) -> Floats:
    """Return how often each node was executed; `counts` are those of the evidence, in step."""
    unit = max(1.0, demands.entered)
    program = LinearProgram()
    executed = [program.variable(COST * node.size) for node in nodes]
    _keep_flow(program, nodes, executed, demands, unit)
    for row in _merged(evidence, counts / unit):
        short, over = program.variable(row.weight), program.variable(row.excess)
        terms = [(executed[node], float(copies)) for node, copies in row.copies.items()]
        program.equal([*terms, (short, 1), (over, -1)], row.count)
    return np.maximum(program.solve()[: len(nodes)], 0) * unit


def _keep_flow(
    program: LinearProgram,
    nodes: Sequence[Node],
    executed: Sequence[int],
    demands: Demands,
    unit: float,
) -> None:
    """Demand that what comes into a node is executed there, and goes on from there."""
    into: list[list[int]] = [[] for _ in nodes]
    parted: list[int] = []
    met: list[int] = []
    for number, node in enumerate(nodes):
        onward = [program.variable() for _ in node.successors]
        for edge, successor in zip(onward, node.successors, strict=True):
            into[successor].append(edge)
            if demands.parted:  # no way takes more than there is
                program.at_most([(edge, 1), (executed[number], -1)], 0)
        parted.append(program.variable(COST))
        ends = node.leaves or not node.successors
        left = program.variable(most=np.inf if ends else 0)
        less = [(executed[number], -1.0), (parted[number], -1.0)]
        program.equal([*((edge, 1.0) for edge in onward), (left, 1.0), *less], 0)
    for number, edges in enumerate(into):
        met.append(program.variable(COST))
        less = [(executed[number], -1.0), (met[number], -1.0)]
        entered = 0 if number else demands.entered / unit
        program.equal([*((edge, 1.0) for edge in edges), *less], -entered)
    program.at_most([(one, 1) for one in parted], demands.parted / unit)
    program.at_most([(one, 1) for one in met], demands.met / unit)


@dataclass
class _Row:
    copies: Mapping[int, int]
    count: float
    weight: float = 0.0
    excess: float = 0.0


def _merged(evidence: Sequence[Evidence], counts: Floats) -> list[_Row]:
    """Evidence that says the same as one row, with the sum of its weights."""
    found: dict[object, _Row] = {}
    for one, count in zip(evidence, counts.tolist(), strict=True):
        key = (tuple(sorted(one.copies.items())), count, one.excess == 0)
        row = found.setdefault(key, _Row(one.copies, count))
        row.weight += one.weight
        row.excess += one.excess
    return list(found.values())
