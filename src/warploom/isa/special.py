"""The special registers of PTX: their names, types and over what their value varies.

Source: PTX ISA, "Special Registers". What value each one has is for the machines to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache

from warploom.core.types import PRED, U32, U64, ScalarType
from warploom.isa.since import OLDEST, Release


class Varies(Enum):
    """Over what a special register differs."""

    LANE = "lane"
    WARP = "warp"
    BLOCK = "block"
    LAUNCH = "launch"


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """One special register; a vector such as `%tid` stands as its parts `%tid.x`, `.y`, `.z`.

    `fixed` is a value that never changes, `clock_bit` the first bit that it shows of the warp's
    clock.
    """

    name: str
    type: ScalarType
    varies: Varies
    fixed: int | None = None
    clock_bit: int | None = None


def _parts(name: str, varies: Varies) -> list[SpecialRegister]:
    """Returns the registers of the three dimensions, such as `%tid.x`."""
    return [SpecialRegister(f"{name}.{part}", U32, varies) for part in "xyz"]


def _fixed(value: int, *names: str, type: ScalarType = U32) -> list[SpecialRegister]:
    """Returns registers that have the same value in every launch."""
    return [SpecialRegister(name, type, Varies.LAUNCH, fixed=value) for name in names]


CLUSTERS = (
    *_parts("%clusterid", Varies.BLOCK),
    *_parts("%nclusterid", Varies.LAUNCH),
    *_parts("%cluster_ctaid", Varies.BLOCK),
    SpecialRegister("%cluster_ctarank", U32, Varies.BLOCK),
    *_parts("%cluster_nctaid", Varies.LAUNCH),
    SpecialRegister("%cluster_nctarank", U32, Varies.LAUNCH),
    SpecialRegister("%is_explicit_cluster", PRED, Varies.LAUNCH),
)
GRID_WORKSPACE = (1, 2)
"""The environment registers that hold, high half first, the address of the memory in which the
blocks of a cooperative launch wait for each other, as NVIDIA's cooperative_groups headers have
it."""

ND_RANGE = (3, 4, 5, 6)
"""The environment registers that describe an OpenCL launch: the global offset along x, y and z, as
in the PTX of NVIDIA's OpenCL compiler, and the number of dimensions (0: not stated). Nobody sets
the others."""

ENVIRONMENT = (*GRID_WORKSPACE, *ND_RANGE)

RESERVED = ("begin", "end", "cap", "0", "1")
"""Suffixes of the registers of the shared memory that the system reserves: its bounds, its size and
two offsets in it."""

SURROUNDINGS = (
    SpecialRegister("%smid", U32, Varies.BLOCK),
    SpecialRegister("%nsmid", U32, Varies.LAUNCH),
    *(SpecialRegister(f"%envreg{i}", U32, Varies.LAUNCH) for i in ENVIRONMENT),
    *_fixed(0, *(f"%envreg{i}" for i in range(32) if i not in ENVIRONMENT)),
    *_fixed(0, *(f"%pm{i}" for i in range(8))),
    *_fixed(0, *(f"%pm{i}_64" for i in range(8)), "%current_graph_exec", type=U64),
    *(SpecialRegister(f"%reserved_smem_offset_{n}", U32, Varies.LAUNCH) for n in RESERVED),
    SpecialRegister("%aggr_smem_size", U32, Varies.LAUNCH),
)


# Time is modelled: a warp's clock counts its own instructions, each one cycle and one nanosecond.
CLOCKS = tuple(
    SpecialRegister(name, type, Varies.WARP, clock_bit=bit)
    for name, type, bit in (
        ("%clock", U32, 0),
        ("%clock_hi", U32, 32),
        ("%clock64", U64, 0),
        ("%globaltimer", U64, 0),
        ("%globaltimer_lo", U32, 0),
        ("%globaltimer_hi", U32, 32),
    )
)


LAUNCH_WIDE = (
    *("%is_explicit_cluster", "%cluster_nctarank"),
    *(f"%{name}.{part}" for name in ("cluster_nctaid", "nclusterid") for part in "xyz"),
    *("%nsmid", "%nwarpid", "%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size"),
    *(f"%reserved_smem_offset_{n}" for n in RESERVED),
    *(f"%envreg{i}" for i in ENVIRONMENT),
)
"""Those that are the same in the whole launch, beside its shape."""


SPECIAL_REGISTERS: dict[str, SpecialRegister] = {
    r.name: r
    for r in (
        *_parts("%tid", Varies.LANE),
        *_parts("%ntid", Varies.LAUNCH),
        *_parts("%ctaid", Varies.BLOCK),
        *_parts("%nctaid", Varies.LAUNCH),
        SpecialRegister("%laneid", U32, Varies.LANE),
        SpecialRegister("%warpid", U32, Varies.WARP),
        SpecialRegister("%nwarpid", U32, Varies.LAUNCH),
        SpecialRegister("%lanemask_eq", U32, Varies.LANE),
        SpecialRegister("%lanemask_lt", U32, Varies.LANE),
        SpecialRegister("%lanemask_le", U32, Varies.LANE),
        SpecialRegister("%lanemask_gt", U32, Varies.LANE),
        SpecialRegister("%lanemask_ge", U32, Varies.LANE),
        SpecialRegister("%dynamic_smem_size", U32, Varies.LAUNCH),
        SpecialRegister("%total_smem_size", U32, Varies.LAUNCH),
        SpecialRegister("%gridid", U64, Varies.LAUNCH),
        *CLUSTERS,
        *SURROUNDINGS,
        *CLOCKS,
    )
}
"""The special registers that the machines provide, by name."""

WERE_NARROW = {"%tid": 16, "%ntid": 16, "%ctaid": 16, "%nctaid": 16, "%gridid": 16}
"""Special registers that had fewer bits before PTX 2.0, which `mov` still reads as these."""

_BROUGHT: dict[str, tuple[Release, Release]] = {
    "%laneid": ((1, 3), OLDEST),
    "%warpid": ((1, 3), OLDEST),
    "%nwarpid": ((2, 0), (2, 0)),
    "%smid": ((1, 3), OLDEST),
    "%nsmid": ((2, 0), (2, 0)),
    "%lanemask_": ((2, 0), (2, 0)),
    "%clock_hi": ((5, 0), (2, 0)),
    "%clock64": ((2, 0), (2, 0)),
    "%pm": ((1, 3), OLDEST),
    "%globaltimer": ((3, 1), (3, 0)),
    "%total_smem_size": ((4, 1), (2, 0)),
    "%dynamic_smem_size": ((4, 1), (2, 0)),
    "%reserved_smem_offset_": ((7, 6), (8, 0)),
    "%clusterid": ((7, 8), (9, 0)),
    "%nclusterid": ((7, 8), (9, 0)),
    "%cluster_": ((7, 8), (9, 0)),
    "%is_explicit_cluster": ((7, 8), (9, 0)),
    "%current_graph_exec": ((8, 0), (5, 0)),
    "%aggr_smem_size": ((8, 1), (9, 0)),
}
"""By how a name begins: which version of PTX and which compute capability brought it."""


@cache
def brought(name: str) -> tuple[Release, Release]:
    """Returns the version of PTX and the compute capability that brought a special register."""
    known = (since for begin, since in _BROUGHT.items() if name.startswith(begin))
    return next(known, (OLDEST, OLDEST))
