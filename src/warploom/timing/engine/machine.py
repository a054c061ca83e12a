"""The arrays of a launch that every part of the engine sees. It changes none but the totals."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from warploom.simt.host_prefetch import register_prefetch

Words = Any
"""An array of 64-bit integers: to compiled code its address, in Python a NumPy array."""


class Machine(NamedTuple):
    """The arrays by name (`timing.layout` has what stands where in them); `p` are the parameters.

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
    """Return an array without its first words. Compiled code moves the address
    (`register_behind`)."""
    return words[count:]


def called(
    address: int, first: int, second: int, third: int, fourth: int, fifth: int, words: Words
) -> int:
    """Call one of the user's functions (`timing.policies`). Compiled code calls its address."""
    kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 7)
    return kind(address)(first, second, third, fourth, fifth, words.ctypes.data)


def register_pointers() -> None:
    """Tell Numba how addresses move, and how what is behind them is fetched and called."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic, overload

    register_prefetch()

    @intrinsic
    def moved(_context: Any, pointer: Any, count: Any) -> Any:
        def emit(_target: Any, builder: Any, _signature: Any, given: Any) -> Any:
            return builder.gep(given[0], [given[1]])

        return pointer(pointer, count), emit

    @intrinsic
    def jumped(
        _context: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any, words: Any
    ) -> Any:
        def emit(_target: Any, builder: Any, _signature: Any, given: Any) -> Any:
            number = ir.IntType(64)
            kind = ir.FunctionType(number, [number] * 6)
            function = builder.inttoptr(given[0], ir.PointerType(kind))
            return builder.call(function, [*given[1:6], builder.ptrtoint(given[6], number)])

        return address(*[address] * 6, words), emit

    @overload(called)
    def of_functions(
        address: Any, first: Any, second: Any, third: Any, fourth: Any, fifth: Any, words: Any
    ) -> Any:
        def by_address(
            address: Any, first: Any, second: Any, third: Any, fourth: Any, fifth: Any, words: Any
        ) -> Any:
            return jumped(address, first, second, third, fourth, fifth, words)

        return by_address if isinstance(words, types.CPointer) else None

    @overload(behind)
    def of_pointers(words: Any, count: Any) -> Any:
        def by_address(words: Any, count: Any) -> Any:
            return moved(words, count)

        return by_address if isinstance(words, types.CPointer) else None
