"""Fetches words of an array before they are needed, so that the host waits for many at a time."""

from __future__ import annotations

from typing import Any


def fetch(words: Any, place: int) -> None:
    """Fetch a word of an array that is wanted soon. Compiled code asks the host's memory for it
    (`register_fetch`)."""


def register_fetch() -> None:
    """Tell Numba how a word behind an address is fetched."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic, overload

    @intrinsic
    def asked(_context: Any, pointer: Any, place: Any) -> Any:
        def emit(_target: Any, builder: Any, _signature: Any, given: Any) -> Any:
            address, number = ir.PointerType(ir.IntType(8)), ir.IntType(32)
            kinds = [address, number, number, number]
            wanted = ir.FunctionType(ir.VoidType(), kinds)
            function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), wanted)
            at = builder.bitcast(builder.gep(given[0], [given[1]]), address)
            builder.call(function, [at, number(1), number(3), number(1)])
            return given[0]

        return pointer(pointer, place), emit

    @overload(fetch)
    def of_addresses(words: Any, place: Any) -> Any:
        def by_address(words: Any, place: Any) -> None:
            asked(words, place)

        return by_address if isinstance(words, types.CPointer) else None
