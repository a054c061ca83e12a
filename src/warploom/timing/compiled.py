"""The engine as machine code: compiled by Numba once, kept in the user's cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from warploom.codegen.helpers import load_apart
from warploom.timing.engine import finish_sm, run_sm, serve_all

_OF_SM = f"int64({', '.join(['i64*'] * 12)}, int64)"
_OF_ALL = "int64(i64*, i64*, i64*, int64, int64)"
SOURCES = ("rules", "codegen", "timing")


@lru_cache
def functions() -> Mapping[str, Callable[..., int]]:
    """`run_sm`, `finish_sm` and `serve_all` of `timing.engine`; arrays are given by address."""
    typed = {
        "run_sm": (run_sm, _OF_SM),
        "finish_sm": (finish_sm, _OF_SM),
        "serve_all": (serve_all, _OF_ALL),
    }
    return load_apart("timing", typed, SOURCES)
