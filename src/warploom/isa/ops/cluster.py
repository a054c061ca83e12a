"""Clusters of blocks: PTX ISA, "barrier.cluster", "mapa", "getctarank"."""

from __future__ import annotations

from warploom.core.types import U32, U64
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Modifiers, Unit, declare, op
from warploom.isa.terms import Term, constant, extend, shift_left, truncate
from warploom.simt.address_windows import BLOCK_BITS

OFFSET_MASK = (1 << BLOCK_BITS) - 1
HIGH_BITS = ~((1 << 32) - 1)
"""The window of a generic address."""

declare(
    "barrier.cluster.arrive{.sem}{.aligned}",
    OpKind.CLUSTER_BARRIER,
    unit=Unit.BARRIER,
    doc="arrives at the cluster's barrier; does not wait   PTX ISA: barrier.cluster",
    sem=("release", "relaxed"),
)
declare(
    "barrier.cluster.wait{.acquire}{.aligned}",
    OpKind.CLUSTER_BARRIER,
    unit=Unit.BARRIER,
    doc="waits until all threads of the cluster have arrived   PTX ISA: barrier.cluster",
)


def _mapped(address: Term, rank: Term) -> Term:
    """Returns the address in the shared memory of a block, from one in any block's."""
    above = shift_left(extend(rank, U64) + 1, constant(BLOCK_BITS, U32))
    return (address & (HIGH_BITS | OFFSET_MASK)) | above


@op(
    "mapa{.space}.type",
    OpKind.MAP_ADDRESS,
    dst="d:type",
    src="a:type, rank:u32",
    unit=Unit.MOVE,
    space=("shared::cluster",),
    type=("u32", "u64"),
)
def mapa(m: Modifiers, address: Term, rank: Term) -> Term:
    """d = the address that a has in the block of this rank in the cluster   PTX ISA: mapa"""
    type = m.scalar()
    found = _mapped(extend(address, U64), rank)
    return found if type is U64 else truncate(found, type)


declare(
    "getctarank{.space}.type",
    OpKind.BLOCK_RANK,
    dst="d:u32",
    src="a:type",
    unit=Unit.MOVE,
    doc="d = the rank of the block that owns the shared memory at a   PTX ISA: getctarank",
    space=("shared::cluster",),
    type=("u32", "u64"),
)
