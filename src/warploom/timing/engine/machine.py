"""Groups the arrays that all parts of the timing engine read, and defines pointer arithmetic on
them and calls of the user's functions for Numba.

The engine changes none of these arrays but the totals.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from warploom.simt.host_prefetch import register_prefetch
from warploom.timing.records import EngineParameters

Words = Any
"""An array of 64-bit integers: in compiled code a pointer, in Python a NumPy array."""


class EngineArrays(NamedTuple):
    """Holds the arrays of a launch by name, and its parameters (`timing.records` has their
    records).

    `totals` belong to one worker: for each operation the cycles of its warps by state, then for
    each operation how often it was issued.
    """

    params: EngineParameters
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
    """Returns a view of an array without its first `count` words. In compiled code this is pointer
    arithmetic (`register_intrinsics`)."""
    return words[count:]


def call_user_function(
    address: int, arg0: int, arg1: int, arg2: int, arg3: int, arg4: int, words: Words
) -> int:
    """Calls a user's function (`timing.policies`) at the address of its machine code, with five
    integers, `arg0` to `arg4`, and the address of the function's memory, the array `words`, and
    returns its result."""
    function_type = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 7)
    return function_type(address)(arg0, arg1, arg2, arg3, arg4, words.ctypes.data)


def register_intrinsics() -> None:
    """Registers with Numba how the host's prefetch, `offset_array` (pointer arithmetic) and
    `call_user_function` (an indirect call) are compiled where arrays are pointers."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic, overload

    register_prefetch()

    @intrinsic
    def offset_pointer(_context: Any, pointer: Any, count: Any) -> Any:
        """Returns, for Numba, the signature and the emitter of a function that returns a pointer
        plus `count` words."""

        def emit(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            """Emits the addition, a GEP, and returns its result."""
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
        """Returns, for Numba, the signature and the emitter of a function that calls the C function
        at an address with six 64-bit integers, the last the address of `words`, and returns its
        64-bit result."""

        def emit(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            """Emits the indirect call, with the pointer to the array passed as an integer, and
            returns its result."""
            int64 = ir.IntType(64)
            function_type = ir.FunctionType(int64, [int64] * 6)
            function = builder.inttoptr(arguments[0], ir.PointerType(function_type))
            return builder.call(function, [*arguments[1:6], builder.ptrtoint(arguments[6], int64)])

        return address(*[address] * 6, words), emit

    @overload(call_user_function)
    def call_user_function_overload(
        address: Any, arg0: Any, arg1: Any, arg2: Any, arg3: Any, arg4: Any, words: Any
    ) -> Any:
        """Returns the implementation of `call_user_function` if `words` has the type of a pointer,
        else None."""

        def by_address(
            address: Any, arg0: Any, arg1: Any, arg2: Any, arg3: Any, arg4: Any, words: Any
        ) -> Any:
            """Calls the function at `address` (`call_address`) and returns its result."""
            return call_address(address, arg0, arg1, arg2, arg3, arg4, words)

        return by_address if isinstance(words, types.CPointer) else None

    # Numba selects these bodies for pointers (CPointer), the type of every array in compiled code.
    @overload(offset_array)
    def offset_array_overload(words: Any, count: Any) -> Any:
        """Returns the implementation of `offset_array` if `words` has the type of a pointer, else
        None."""

        def by_address(words: Any, count: Any) -> Any:
            """Returns the pointer `words` plus `count` words (`offset_pointer`)."""
            return offset_pointer(words, count)

        return by_address if isinstance(words, types.CPointer) else None
