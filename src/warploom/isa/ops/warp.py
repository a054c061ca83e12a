"""Defines the instructions of a whole warp: PTX ISA, "shfl", "vote", "match", "redux", "elect",
"activemask", "bar.warp.sync".

They have no terms, for a lane's result depends on its neighbors: the machines know them by name.
"""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit, declare

SHUFFLES = ("up", "down", "bfly", "idx")
VOTES = ("all", "any", "uni")

SHUFFLE_DOC = (
    "d = a in the lane that b and c select; p is true if that lane is in range   PTX ISA: shfl"
)
VOTE_DOC = (
    "d = whether a is true in all lanes, is true in any lane, or is equal in all lanes"
    "   PTX ISA: vote"
)
BALLOT_DOC = "bit i of d = a in lane i   PTX ISA: vote"
REDUX_DOC = "d = the reduction of a over the lanes   PTX ISA: redux.sync"

declare(
    "shfl.sync.mode.b32",
    OpKind.SHUFFLE,
    dst="d:b32",
    src="a:b32, b:b32, c:b32, membermask:b32",
    unit=Unit.WARP,
    doc=SHUFFLE_DOC,
    mode=SHUFFLES,
)
declare(
    "shfl.mode.b32",
    OpKind.SHUFFLE,
    dst="d:b32",
    src="a:b32, b:b32, c:b32",
    unit=Unit.WARP,
    doc=SHUFFLE_DOC,
    mode=SHUFFLES,
)
declare(
    "vote.sync.mode.pred",
    OpKind.VOTE,
    dst="d:pred",
    src="a:pred, membermask:b32",
    unit=Unit.WARP,
    doc=VOTE_DOC,
    mode=VOTES,
)
declare(
    "vote.sync.mode.b32",
    OpKind.VOTE,
    dst="d:b32",
    src="a:pred, membermask:b32",
    unit=Unit.WARP,
    doc=BALLOT_DOC,
    mode=("ballot",),
)
declare(
    "vote.mode.pred",
    OpKind.VOTE,
    dst="d:pred",
    src="a:pred",
    unit=Unit.WARP,
    doc=VOTE_DOC,
    mode=VOTES,
)
declare(
    "vote.mode.b32",
    OpKind.VOTE,
    dst="d:b32",
    src="a:pred",
    unit=Unit.WARP,
    doc=BALLOT_DOC,
    mode=("ballot",),
)
declare(
    "match.any.sync.type",
    OpKind.MATCH,
    dst="d:b32",
    src="a:type, membermask:b32",
    unit=Unit.WARP,
    doc="d = the mask of the lanes that have the same value of a     PTX ISA: match.sync",
    type=("b32", "b64"),
)
declare(
    "match.all.sync.type",
    OpKind.MATCH,
    dst="d:b32",
    src="a:type, membermask:b32",
    unit=Unit.WARP,
    doc="p is true if all lanes have the same value of a; d = their mask if p, else 0"
    "   PTX ISA: match.sync",
    type=("b32", "b64"),
)
for operations, types in (
    (("add", "min", "max"), ("u32", "s32")),
    (("and", "or", "xor"), ("b32",)),
):
    declare(
        "redux.sync.op.type",
        OpKind.WARP_REDUCTION,
        dst="d:type",
        src="a:type, membermask:b32",
        unit=Unit.WARP,
        doc=REDUX_DOC,
        op=operations,
        type=types,
    )
declare(
    "redux.sync.op{.abs}{.NaN}.type",
    OpKind.WARP_REDUCTION,
    dst="d:type",
    src="a:type, membermask:b32",
    unit=Unit.WARP,
    doc=REDUX_DOC,
    op=("min", "max"),
    type=("f32",),
)
declare(
    "elect.sync",
    OpKind.ELECT,
    dst="d:b32",
    src="membermask:b32",
    unit=Unit.WARP,
    doc="d = the lowest lane in the mask; p is true in that lane    PTX ISA: elect.sync",
)
declare(
    "activemask.b32",
    OpKind.ACTIVE_MASK,
    dst="d:b32",
    unit=Unit.WARP,
    doc="d = the mask of active lanes   PTX ISA: activemask",
)
declare(
    "bar.warp.sync",
    OpKind.WARP_BARRIER,
    src="membermask:b32",
    unit=Unit.WARP,
    doc="waits for the lanes in membermask             PTX ISA: bar.warp.sync",
)
