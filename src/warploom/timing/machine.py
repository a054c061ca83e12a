"""What every part of the engine sees: the arrays of a launch. It changes none but the totals."""

from __future__ import annotations

from typing import Any, NamedTuple

Words = Any
"""An array of 64-bit integers: to compiled code its address, in Python a NumPy array."""


class Machine(NamedTuple):
    """The arrays by name (`timing.words` has what stands where in them); `p` are the parameters.

    `totals` are one worker's: for each operation the cycles of its warps by state, then how often
    it was issued.
    """

    p: Words
    ops: Words
    registers: Words
    blocks: Words
    streams: Words
    entries: Words
    accesses: Words
    patterns: Words
    lines: Words
    warps: Words
    totals: Words


def behind(words: Words, count: int) -> Words:
    """An array without its first words. Compiled code moves the address (`register_behind`)."""
    return words[count:]


def register_behind() -> None:
    """Tell Numba how addresses move."""
    from numba.core import types
    from numba.extending import intrinsic, overload

    @intrinsic
    def moved(_context: Any, pointer: Any, count: Any) -> Any:
        def emit(_target: Any, builder: Any, _signature: Any, given: Any) -> Any:
            return builder.gep(given[0], [given[1]])

        return pointer(pointer, count), emit

    @overload(behind)
    def of_pointers(words: Any, count: Any) -> Any:
        def by_address(words: Any, count: Any) -> Any:
            return moved(words, count)

        return by_address if isinstance(words, types.CPointer) else None
