"""Makes compilers of Python kernels keep the lines of the source, which change no code."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def keep_numba_lines(decorators: Any) -> None:
    """Makes `lineinfo` the default of Numba's `cuda.jit`, in its module `decorators`, but for
    kernels with `debug`, which have lines of their own and exclude it."""
    jit: Callable[..., Any] = decorators.jit

    @wraps(jit)
    def jit_with_lines(*args: Any, **options: Any) -> Any:
        debug = options.get("debug")
        if not (decorators.config.CUDA_DEBUGINFO_DEFAULT if debug is None else debug):
            options.setdefault("lineinfo", True)
        return jit(*args, **options)

    decorators.jit = jit_with_lines
