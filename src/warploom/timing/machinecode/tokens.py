"""Chooses, for each basic block of a kernel's PTX, machine instructions that show when it executes.
A *token* is the number of a basic block of the PTX; a warp's path is a sequence of tokens, which is
matched with its path through the machine code.

A block is represented by one of its instructions: one whose machine instructions were executed as
often as the block was. The token of a block without such an instruction is ignored.
"""

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
"""How far the executions of a representative instruction may differ from its expected count, as a
share of that."""


@dataclass(frozen=True)
class BlockTokens:
    """Holds the tokens of a launch. A token stands for a basic block of the PTX: it is the number
    of the first block with this source site, which copies of an inlined block share. A node is a
    basic block of the machine code, for each call site of its function.

    `of_block` has the token of each basic block of the PTX; `needs`, for each node, how often one
    visit executes each token; `optional` the tokens that a guarded instruction represents, which
    may be missing."""

    of_block: Words
    needs: tuple[dict[int, int], ...]
    optional: frozenset[int]
    weights: dict[int, float]
    """By token, the weight of executing it as often in the machine code: 1 for an anchor."""
    nodes_of: dict[int, tuple[int, ...]]
    """The nodes that execute a token; a token without any is ignored."""


def tokens_of(counts: MachineCounts) -> BlockTokens:
    """Returns the tokens of a launch: for each, the nodes that execute it by the evidence on which
    most of its instructions agree, and its weight. An instruction counts only if it was executed,
    and its machine instructions as often as expected (MAX_DEVIATION); a token without such an
    instruction is ignored. A token is optional if its machine instructions may be executed more
    often than the PTX (no `excess`)."""
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
    """Returns, of evidence (each row with its copies by node), the first row with the copies on
    which most rows agree, by rounded weight; and the greatest weight among the rows with these
    copies."""
    votes: Counter[tuple[tuple[int, int], ...]] = Counter()
    for row in rows:
        votes[tuple(sorted(row.copies.items()))] += round(row.weight)
    [(majority, _)] = votes.most_common(1)
    agreeing = [row for row in rows if tuple(sorted(row.copies.items())) == majority]
    return agreeing[0], max(row.weight for row in agreeing)
