"""Recognises instructions that access or wait for other thread blocks of a cluster."""

from __future__ import annotations

from warploom.isa.kinds import OpKind
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
    """Returns whether thread blocks of a program take over the work of blocks that are not launched
    yet (`clusterlaunchcontrol`)."""
    return OpKind.LAUNCH_CANCEL in program.kinds


def has_cluster_barrier(program: Program) -> bool:
    """Returns whether a program has a barrier of the cluster."""
    return OpKind.CLUSTER_BARRIER in program.kinds


def maps_addresses(program: Program) -> bool:
    """Returns whether a program computes addresses in thread blocks of its cluster, with `mapa`."""
    return OpKind.MAP_ADDRESS in program.kinds
