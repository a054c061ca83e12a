"""The part of Numba that this project uses; the library ships few types."""

from collections.abc import Callable
from typing import Any

class CFunc:
    native_name: str
    def inspect_llvm(self) -> str: ...

def carray(ptr: Any, shape: tuple[int, ...]) -> Any: ...
def cfunc(
    sig: str, *, nopython: bool = ..., error_model: str = ...
) -> Callable[[Callable[..., object]], CFunc]: ...
def njit(
    sig: Any = ...,
    *,
    fastmath: bool | set[str] = ...,
    error_model: str = ...,
    cache: bool = ...,
) -> Any: ...
