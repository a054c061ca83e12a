"""Determines how the variables of linear forms differ between the lanes of a warp, whose threads
have consecutive threadIdx.x."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.analysis.linear.forms import Form, IndexVariable, form, quotient, remainder
from warploom.analysis.linear.register_values import thread_indices
from warploom.core.errors import Dim3

WARP = 32


@dataclass(frozen=True, slots=True)
class LaneVariables:
    """The variables of a block that differ by 1 between neighboring lanes (`along`), those that all
    lanes with one threadIdx.y and .z share (`across`), and those whose values are the same in all
    warps (`repeated`)."""

    along: frozenset[IndexVariable]
    across: frozenset[IndexVariable]
    repeated: frozenset[IndexVariable]

    @classmethod
    def of(cls, block: Dim3) -> LaneVariables:
        """Finds them: threadIdx.x and its remainders by whole warps; threadIdx.y and .z, and the
        quotients of threadIdx.x by whole warps; the remainders of threadIdx.x by 32 and less."""
        x, y, z = (
            form(0, {v: 1 for v in thread_indices(block) if v.name == f"%tid.{axis}"})
            for axis in "xyz"
        )
        warps = range(WARP, block[0], WARP)
        along = (x, *(remainder(x, size) for size in warps))
        across = (y, z, *(quotient(x, size) for size in warps))
        repeated = (remainder(x, 1 << bits) for bits in range(WARP.bit_length()))
        return cls(_variables(*along), _variables(*across), _variables(*repeated))

    def stride(self, address: Form) -> int | None:
        """Returns the difference of a form between neighboring lanes; None if it has variables of
        which that is not known."""
        total = 0
        for variable, stride in address.strides:
            if variable in self.along:
                total += stride
            elif not (variable.of_block or variable.at or variable in self.across):
                return None
        return total

    def is_repeated(self, address: Form) -> bool:
        """Returns whether a form is known to have the same values in all warps of a block."""
        return all(v in self.repeated or v.of_block or v.at for v, _ in address.strides)


def _variables(*forms: Form | None) -> frozenset[IndexVariable]:
    return frozenset(v for each in forms if each is not None for v, _ in each.strides)
