"""Finds the instructions that reach, or wait for, other blocks of a cluster."""

from __future__ import annotations

from warploom.isa.ops.cluster import is_cluster_barrier
from warploom.isa.ops.launch_control import is_cancellation
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.ptx.ir import Instruction, Space

CLUSTER_SPACE = "shared::cluster"


def accesses_cluster(instruction: Instruction) -> bool:
    """Return whether an access may lead to the shared memory of another block: one that says so, or
    one at a generic address."""
    if CLUSTER_SPACE in instruction.operation.modifiers.values.values():
        return True
    return any(space is Space.GENERIC for space, _ in accesses(instruction))


def cancels_launches(program: Program) -> bool:
    """Return whether blocks of a program take over the work of others (`clusterlaunchcontrol`). The
    program keeps the answer."""
    cached = program.kept.get(cancels_launches)
    if cached is None:
        found = any(is_cancellation(instruction.operation) for instruction in program.instructions)
        cached = program.kept[cancels_launches] = found
    return bool(cached)


def has_cluster_barrier(program: Program) -> bool:
    """Return whether a program has the barrier of a cluster."""
    return any(is_cluster_barrier(instruction.operation) for instruction in program.instructions)


def maps_addresses(program: Program) -> bool:
    """Return whether a program makes addresses of blocks of its cluster, if only of its own: by
    `mapa`. The program keeps the answer."""
    cached = program.kept.get(maps_addresses)
    if cached is None:
        names = {instruction.operation.name for instruction in program.instructions}
        cached = program.kept[maps_addresses] = "mapa" in names
    return bool(cached)
