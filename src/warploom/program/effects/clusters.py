"""Recognises instructions that access or wait for other thread blocks of a cluster."""

from __future__ import annotations

from warploom.isa.ops.cluster import is_cluster_barrier
from warploom.isa.ops.launch_control import is_cancellation
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.ptx.ir import Instruction, Space

CLUSTER_SPACE = "shared::cluster"


def accesses_cluster(instruction: Instruction) -> bool:
    """Returns whether an instruction may access shared memory of another thread block: it names
    `shared::cluster`, or its address is generic."""
    if CLUSTER_SPACE in instruction.operation.modifiers.values.values():
        return True
    return any(space is Space.GENERIC for space, _ in accesses(instruction))


def cancels_launches(program: Program) -> bool:
    """Returns whether a program has `clusterlaunchcontrol.try_cancel`, by which thread blocks take
    over the work of blocks that are not launched yet. The answer is cached in the program."""
    cached = program.cache.get(cancels_launches)
    if cached is None:
        found = any(is_cancellation(instruction.operation) for instruction in program.instructions)
        cached = program.cache[cancels_launches] = found
    return bool(cached)


def has_cluster_barrier(program: Program) -> bool:
    """Returns whether a program has a barrier of the cluster."""
    return any(is_cluster_barrier(instruction.operation) for instruction in program.instructions)


def maps_addresses(program: Program) -> bool:
    """Returns whether a program computes addresses in thread blocks of its cluster, with `mapa`.
    The answer is cached in the program."""
    cached = program.cache.get(maps_addresses)
    if cached is None:
        names = {instruction.operation.name for instruction in program.instructions}
        cached = program.cache[maps_addresses] = "mapa" in names
    return bool(cached)
