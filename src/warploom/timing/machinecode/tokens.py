"""Signs by which a way through machine code is told from a way through PTX.

Of every basic block of the PTX one instruction stands for it: the one whose machine instructions
were executed as often as it was. A block without such an instruction leaves no sign."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.machinecode.counted import MachineCounts
from warploom.machinecode.evidence import ANCHOR, Evidence, Executions
from warploom.program.program import Site

Words = npt.NDArray[np.int64]

MAX_DEVIATION = 0.02
"""So far off, as a part of its count, may an instruction be that stands for a block."""


@dataclass(frozen=True)
class BlockTokens:
    """`of_block` has the token of each basic block of the PTX; copies of an inlined block share
    theirs. Only those in `nodes_of` leave a sign. `needs` has for each node of the machine code how
    often it does each token, `optional` the tokens that a guarded instruction stands for."""

    of_block: Words
    needs: tuple[dict[int, int], ...]
    optional: frozenset[int]
    weights: dict[int, float]
    """By token, what it weighs that the machine code does it as often: 1 for an anchor."""
    nodes_of: dict[int, tuple[int, ...]]
    """The nodes that do a token."""


def tokens_of(counts: MachineCounts) -> BlockTokens:
    """Return the tokens of a launch."""
    matching = counts.matching
    program = matching.program
    first_token: dict[Site, int] = {}
    of_block = np.zeros(len(program.blocks), np.int64)
    members: dict[int, list[Site]] = defaultdict(list)
    for block in program.blocks:
        token = first_token.setdefault(program.sites[block.start], block.index)
        of_block[block.index] = token
        members[token] += program.sites[block.start : block.stop]
    evidence = (row for row in counts.agreement if row.evidence.of is Executions.ALL)
    by_site = {row.evidence.site: row for row in evidence}
    needs: list[dict[int, int]] = [{} for _ in matching.nodes]
    optional: set[int] = set()
    nodes_of: dict[int, tuple[int, ...]] = {}
    weights: dict[int, float] = {}
    for token, sites in members.items():
        rows = [by_site[site] for site in dict.fromkeys(sites) if site in by_site]
        fitting = [row for row in rows if row.counted and row.off <= MAX_DEVIATION * row.counted]
        if not fitting:
            continue
        chosen, weight = _majority([row.evidence for row in fitting])
        nodes_of[token], weights[token] = (*chosen.copies,), weight / ANCHOR
        for node, copies in chosen.copies.items():
            needs[node][token] = copies
        if not chosen.excess:
            optional.add(token)
    return BlockTokens(of_block, tuple(needs), frozenset(optional), weights, nodes_of)


def _majority(rows: list[Evidence]) -> tuple[Evidence, float]:
    """Return the evidence that says what most of it says, by weight, and the most that any of that
    weighs."""
    votes: Counter[tuple[tuple[int, int], ...]] = Counter()
    for row in rows:
        votes[tuple(sorted(row.copies.items()))] += round(row.weight)
    [(majority, _)] = votes.most_common(1)
    agreeing = [row for row in rows if tuple(sorted(row.copies.items())) == majority]
    return agreeing[0], max(row.weight for row in agreeing)
