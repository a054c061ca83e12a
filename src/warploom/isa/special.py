"""The special registers of PTX: their names, types and over what their value varies.

Source: PTX ISA, "Special Registers". What value each one has is for the machines to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from warploom.core.types import U32, U64, ScalarType


class Varies(Enum):
    """Over what a special register differs."""

    LANE = "lane"
    WARP = "warp"
    BLOCK = "block"
    LAUNCH = "launch"


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """One special register; a vector such as `%tid` stands as its parts `%tid.x`, `.y`, `.z`."""

    name: str
    type: ScalarType
    varies: Varies


def _parts(name: str, varies: Varies) -> list[SpecialRegister]:
    return [SpecialRegister(f"{name}.{part}", U32, varies) for part in "xyz"]


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
    )
}
"""The special registers that the machines provide, by name."""
