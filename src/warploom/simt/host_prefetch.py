"""Prefetches words of an array into the host's caches, so that several cache misses overlap."""

from __future__ import annotations

from typing import Any


def prefetch(words: Any, index: int) -> None:
    """Prefetches the word at index `index`. Does nothing in Python; compiled code executes a
    prefetch instruction (`register_prefetch`)."""


def register_prefetch() -> None:
    """Registers with Numba that compiled functions execute `prefetch` of pointers as
    `llvm.prefetch`, for writing, into all levels of the data cache; has to run before they are
    compiled."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic, overload

    @intrinsic
    def prefetch_word(_context: Any, pointer: Any, index: Any) -> Any:
        """Describes to Numba a function that prefetches the word at an index of a pointer and
        returns the pointer."""

        def emit(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            """Emits the call of `llvm.prefetch` on the word's address: for writing, with the
            highest locality, into the data cache. Returns the pointer, unchanged."""
            address, number = ir.PointerType(ir.IntType(8)), ir.IntType(32)
            parameter_types = [address, number, number, number]
            function_type = ir.FunctionType(ir.VoidType(), parameter_types)
            function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), function_type)
            at = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), address)
            builder.call(function, [at, number(1), number(3), number(1)])
            return arguments[0]

        return pointer(pointer, index), emit

    @overload(prefetch)
    def compile_prefetch(words: Any, index: Any) -> Any:
        """Returns the implementation of `prefetch` for pointers; None for other arguments."""

        def prefetch_address(words: Any, index: Any) -> None:
            """Prefetches the word at index `index` of pointer `words`."""
            prefetch_word(words, index)

        return prefetch_address if isinstance(words, types.CPointer) else None
