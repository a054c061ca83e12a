"""Groups the arrays that all parts of the timing engine read, and defines pointer arithmetic on
them and calls of the user's functions for Numba.

The engine changes none of these arrays but the totals.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any, NamedTuple

from warploom.simt.host_prefetch import register_prefetch
from warploom.timing.records import EngineParameters

Words = Any
"""An array of 64-bit integers: in compiled code a pointer, in Python a NumPy array."""

UserArguments = tuple[int, int, int, int, int]
"""The arguments of a user's function (`timing.policies`), beside its memory."""


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


def call_user_function(address: int, arguments: UserArguments, words: Words) -> int:
    """Calls a user's function (`timing.policies`) at the address of its machine code, with five
    integers and the address of the function's memory, the array `words`, and returns its
    result."""
    function_type = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 7)
    return function_type(address)(*arguments, words.ctypes.data)


def register_intrinsics() -> None:
    """Registers with Numba how the host's prefetch, `offset_array` (pointer arithmetic) and
    `call_user_function` (an indirect call) are compiled where arrays are pointers."""
    register_prefetch()
    _register_offset()
    _register_user_call()


def _register_offset() -> None:
    """Registers `offset_array` of a pointer (CPointer, the type of every array in compiled code)
    with Numba, as a GEP."""
    from numba.core import types
    from numba.extending import intrinsic, overload

    @intrinsic
    def offset_pointer(_context: Any, pointer: Any, count: Any) -> Any:
        """Returns, for Numba, the signature and the emitter of a function that returns a pointer
        plus `count` words."""

        def emit(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            """Emits the addition, a GEP, and returns its result."""
            return builder.gep(arguments[0], [arguments[1]])

        return pointer(pointer, count), emit

    @overload(offset_array)
    def offset_array_overload(words: Any, count: Any) -> Any:
        """Returns the implementation of `offset_array` if `words` has the type of a pointer, else
        None."""

        def by_address(words: Any, count: Any) -> Any:
            """Returns the pointer `words` plus `count` words (`offset_pointer`)."""
            return offset_pointer(words, count)

        return by_address if isinstance(words, types.CPointer) else None


def _register_user_call() -> None:
    """Registers `call_user_function` with the memory at a pointer (CPointer) with Numba, as an
    indirect call of six 64-bit integers, the last the address of the memory."""
    from llvmlite import ir
    from numba.extending import intrinsic, overload

    types: Any = import_module("numba.core.types")

    @intrinsic
    def call_address(_context: Any, address: Any, arguments: Any, words: Any) -> Any:
        """Returns, for Numba, the signature and the emitter of the call."""

        def emit(_target: Any, builder: Any, _signature: Any, values: Any) -> Any:
            """Emits the call, with the pointer to the array passed as an integer, and returns its
            result."""
            int64, (target, numbers, memory) = ir.IntType(64), values
            function_type = ir.FunctionType(int64, [int64] * 6)
            function = builder.inttoptr(target, ir.PointerType(function_type))
            integers = [builder.extract_value(numbers, index) for index in range(5)]
            return builder.call(function, [*integers, builder.ptrtoint(memory, int64)])

        return types.int64(types.int64, types.UniTuple(types.int64, 5), words), emit

    @overload(call_user_function)
    def call_user_function_overload(address: Any, arguments: Any, words: Any) -> Any:
        """Returns the implementation of `call_user_function` if `words` has the type of a pointer,
        else None."""

        def by_address(address: Any, arguments: Any, words: Any) -> Any:
            """Calls the function at `address` (`call_address`) and returns its result."""
            return call_address(address, arguments, words)

        return by_address if isinstance(words, types.CPointer) else None
