"""The arrays of a launch that every part of the engine sees. It changes none but the totals."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from warploom.simt.host_prefetch import register_fetch

Words = Any
"""An array of 64-bit integers: to compiled code its address, in Python a NumPy array."""


class EngineArrays(NamedTuple):
    """The arrays by name (`timing.layout` has what stands where in them); `params` are the parameters.

    `totals` are one worker's: for each operation the cycles of its warps by state, then how often
    it was issued.
    """

    params: Words
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


def offset_array(words: Words, count: int) -> Words:
    """Return an array without its first words. Compiled code moves the address
    (`register_behind`)."""
    return words[count:]


def call_user_function(
    address: int, arg0: int, arg1: int, arg2: int, arg3: int, arg4: int, words: Words
) -> int:
    """Call one of the user's functions (`timing.policies`). Compiled code calls its address."""
    function_type = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 7)
    return function_type(address)(arg0, arg1, arg2, arg3, arg4, words.ctypes.data)


def register_intrinsics() -> None:
    """Tell Numba how addresses move, and how what is behind them is fetched and called."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic, overload

    register_fetch()

    @intrinsic
    def offset_pointer(_context: Any, pointer: Any, count: Any) -> Any:
        def emit(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.gep(arguments[0], [arguments[1]])

        return pointer(pointer, count), emit

    @intrinsic
    def call_address(
        _context: Any,
        address: Any,
        arg0: Any,
        arg1: Any,
        arg2: Any,
        arg3: Any,
        arg4: Any,
        words: Any,
    ) -> Any:
        def emit(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            int64 = ir.IntType(64)
            function_type = ir.FunctionType(int64, [int64] * 6)
            function = builder.inttoptr(arguments[0], ir.PointerType(function_type))
            return builder.call(function, [*arguments[1:6], builder.ptrtoint(arguments[6], int64)])

        return address(*[address] * 6, words), emit

    @overload(call_user_function)
    def call_user_function_overload(
        address: Any, arg0: Any, arg1: Any, arg2: Any, arg3: Any, arg4: Any, words: Any
    ) -> Any:
        def by_address(
            address: Any, arg0: Any, arg1: Any, arg2: Any, arg3: Any, arg4: Any, words: Any
        ) -> Any:
            return call_address(address, arg0, arg1, arg2, arg3, arg4, words)

        return by_address if isinstance(words, types.CPointer) else None

    @overload(offset_array)
    def offset_array_overload(words: Any, count: Any) -> Any:
        def by_address(words: Any, count: Any) -> Any:
            return offset_pointer(words, count)

        return by_address if isinstance(words, types.CPointer) else None
