"""Recognizes instructions that may access shared memory of another thread block of a cluster."""

from __future__ import annotations

from warploom.isa.instruction import Instruction, Space
from warploom.program.accesses import accesses

CLUSTER_SPACE = "shared::cluster"


def accesses_cluster(instruction: Instruction) -> bool:
    """Returns whether an instruction may access shared memory of another thread block: it names
    `shared::cluster`, or its address is generic."""
    if CLUSTER_SPACE in instruction.operation.modifiers.values.values():
        return True
    # A generic address may be that of another block's shared memory, from `mapa` and `cvta`.
    return any(space is Space.GENERIC for space, _ in accesses(instruction))
