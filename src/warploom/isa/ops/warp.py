"""What the lanes of a warp do together: PTX ISA, "shfl", "vote", "activemask", "bar.warp.sync".

They have no terms, for a lane's result depends on its neighbours: the machines know them by name.
"""

from __future__ import annotations

from warploom.isa.spec import Unit, declare

SHUFFLES = ("up", "down", "bfly", "idx")
VOTES = ("all", "any", "uni")

SHUFFLE_DOC = "d = a of the lane that b and c choose; p = it was in range   PTX ISA: shfl"
VOTE_DOC = "d = whether all, any, or equally many of the lanes hold a       PTX ISA: vote"
BALLOT_DOC = "d = bit i says whether lane i holds a                         PTX ISA: vote"

declare(
    "shfl.sync.mode.b32",
    dst="d:b32",
    src="a:b32, b:b32, c:b32, membermask:b32",
    unit=Unit.WARP,
    doc=SHUFFLE_DOC,
    mode=SHUFFLES,
)
declare(
    "shfl.mode.b32",
    dst="d:b32",
    src="a:b32, b:b32, c:b32",
    unit=Unit.WARP,
    doc=SHUFFLE_DOC,
    mode=SHUFFLES,
)
declare(
    "vote.sync.mode.pred",
    dst="d:pred",
    src="a:pred, membermask:b32",
    unit=Unit.WARP,
    doc=VOTE_DOC,
    mode=VOTES,
)
declare(
    "vote.sync.mode.b32",
    dst="d:b32",
    src="a:pred, membermask:b32",
    unit=Unit.WARP,
    doc=BALLOT_DOC,
    mode=("ballot",),
)
declare("vote.mode.pred", dst="d:pred", src="a:pred", unit=Unit.WARP, doc=VOTE_DOC, mode=VOTES)
declare(
    "vote.mode.b32", dst="d:b32", src="a:pred", unit=Unit.WARP, doc=BALLOT_DOC, mode=("ballot",)
)
declare(
    "activemask.b32", dst="d:b32", unit=Unit.WARP, doc="d = the active lanes   PTX ISA: activemask"
)
declare(
    "bar.warp.sync",
    src="membermask:b32",
    unit=Unit.WARP,
    doc="waits for the lanes of membermask             PTX ISA: bar.warp.sync",
)
