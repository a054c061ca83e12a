"""Blocks that take over the work of others that have not begun: PTX ISA, "clusterlaunchcontrol".

A response, which the manual leaves open, holds the index of the first block of the cluster in three
words and 1 in its highest word; of a request that failed, zeros.
"""

from __future__ import annotations

from warploom.core.types import U32, U128
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Modifiers, Unit, declare, op
from warploom.isa.terms import Term, constant, ne, reinterpret, shift_right, truncate

WORD_BITS = 32
CANCELED = 3
"""The word of a response that is 1 where a cluster was cancelled; before it, the block's index."""

RESPONSE_BYTES = 16

declare(
    "clusterlaunchcontrol.try_cancel.async{.space}.mbarrier::complete_tx::bytes"
    "{.multicast::cluster::all}.b128",
    OpKind.LAUNCH_CANCEL,
    src="d:address, barrier:address",
    unit=Unit.MEMORY,
    doc="cancels a cluster that has not started; [d] = the index of its first block; then reports"
    " 16 bytes to an mbarrier   PTX ISA: clusterlaunchcontrol.try_cancel",
    space=("shared::cta",),
)


def _word(response: Term, word: int) -> Term:
    """Returns a word of a response."""
    whole = reinterpret(response, U128)
    return truncate(shift_right(whole, constant(WORD_BITS * word, U32)), U32)


@op(
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128",
    dst="d:pred",
    src="a:b128",
    unit=Unit.MOVE,
)
def is_canceled(m: Modifiers, response: Term) -> Term:
    """d is true if a cluster was canceled   PTX ISA: clusterlaunchcontrol.query_cancel"""
    return ne(_word(response, CANCELED), 0)


@op(
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128",
    dst="d:b32*4",
    src="a:b128",
    unit=Unit.MOVE,
)
def first_block(m: Modifiers, response: Term) -> tuple[Term, ...]:
    """d = the index of the cluster's first block; the fourth word is unspecified
    PTX ISA: clusterlaunchcontrol.query_cancel"""
    return tuple(_word(response, word) for word in range(4))


@op(
    "clusterlaunchcontrol.query_cancel.axis.b32.b128",
    dst="d:b32",
    src="a:b128",
    unit=Unit.MOVE,
    axis=tuple(f"get_first_ctaid::{axis}" for axis in "xyz"),
)
def first_index(m: Modifiers, response: Term) -> Term:
    """d = the index of the cluster's first block along an axis
    PTX ISA: clusterlaunchcontrol.query_cancel"""
    return _word(response, "xyz".index(m.text("axis", "")[-1]))
