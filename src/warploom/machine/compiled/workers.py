"""Sharing the blocks of a launch among workers, so that nobody can tell how many there were.

Blocks run side by side where it is proven that they stay apart in global memory
(`analysis.linear.footprints`) and no policy mixes them; any other launch has one worker, and its
tally says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from warploom.analysis.linear.footprints import why_blocks_conflict
from warploom.cost.fields import EXAMPLE_COST
from warploom.machine.compiled.proofs import proven
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.tally import COLUMNS, Tally
from warploom.program.effects.clusters import cancels_launches
from warploom.program.program import Program


def why_alone(program: Program, launch: Launch, memory: DeviceMemory, *, caches: bool) -> str:
    """Returns why one worker has to run all blocks of a launch; empty where several can. The
    program keeps what was proven of it."""
    if launch.schedule.policy != "converge":
        return "a policy mixes the blocks"
    if launch.max_instructions is not None:
        return "a limit counts the instructions of all blocks"
    if launch.cluster_blocks > 1:
        return "the blocks of a cluster work together"
    if cancels_launches(program):
        return "blocks take over the work of others"
    if caches:
        return "the caches see the accesses of all blocks in order"
    return proven(program, launch, memory, why_blocks_conflict)


def shares(blocks: int, workers: int) -> list[range]:
    """Return the blocks in consecutive parts, as even as can be, one for each worker that gets
    some."""
    count = min(workers, blocks)
    ends = [blocks * part // count for part in range(count + 1)]
    return [range(first, last) for first, last in pairwise(ends)]


_SUMS = (*COLUMNS, "accesses")


def merged(tallies: Sequence[Tally]) -> Tally:
    """Return the tally of a launch from those of its parts, in the order of their blocks."""
    total = tallies[0]
    for tally in tallies[1:]:
        for name in _SUMS:
            getattr(total, name)[...] += getattr(tally, name)
        # The costliest access is the first of its cost, as if one worker had seen them all.
        worse = tally.records[:, EXAMPLE_COST] > total.records[:, EXAMPLE_COST]
        first = total.accesses.shape[1]
        total.records[worse, first:] = tally.records[worse, first:]
    return replace(total, workers=len(tallies))
