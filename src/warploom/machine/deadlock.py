"""The error for warps that wait at barriers which cannot complete; the same for both machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.analysis.program import Program
from warploom.core.errors import DeadlockError, WaitingGroup
from warploom.machine.launch import Launch


@dataclass(frozen=True, slots=True)
class Waiting:
    """A warp of a block that waits: its active lanes, the instruction, the barrier's number, and
    how many threads the barrier awaits (0 for all of the block)."""

    warp: int
    lanes: tuple[int, ...]
    instruction: int
    barrier: int
    threads: int


def deadlock_error(
    program: Program, launch: Launch, block: int, waiting: Sequence[Waiting]
) -> DeadlockError:
    """The error to raise, where only the warps of `waiting` are left in block number `block`."""
    index = launch.block_index(block)
    ended = launch.warps_per_block - len(waiting)
    groups = tuple(
        WaitingGroup(index, w.warp, w.lanes, program.line(w.instruction), _waits_for(w, ended))
        for w in waiting
    )
    lines = [f"    warp {g.warp} waits at {g.line} for {g.waits_for}" for g in groups]
    if ended:
        lines.append(f"    {_warps(ended)} ended without coming there")
    listed = "\n".join(lines)
    return DeadlockError(
        f"deadlock in kernel {program.name}, block {index}: no warp can go on\n{listed}\n"
        f"    Every warp of the block must reach the same barrier; look for a __syncthreads() in"
        f" code that some warps skip or leave early.",
        groups,
    )


def _waits_for(waiting: Waiting, ended: int) -> str:
    if waiting.threads:
        return f"{waiting.threads} threads at barrier {waiting.barrier}"
    rest = " that have not ended" if ended else ""
    return f"all warps{rest} at barrier {waiting.barrier}"


def _warps(count: int) -> str:
    return f"{count} other warp" if count == 1 else f"{count} other warps"
