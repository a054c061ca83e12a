"""The part of Numba that this project uses; the library ships few types."""

from collections.abc import Callable

class CFunc:
    native_name: str
    def inspect_llvm(self) -> str: ...

def cfunc(
    sig: str, *, nopython: bool = ..., error_model: str = ...
) -> Callable[[Callable[..., object]], CFunc]: ...
