"""The engine as machine code: compiled by Numba once, kept in the user's cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from warploom.codegen.helpers import load_apart
from warploom.timing.engine import run_sms, serve_all
from warploom.timing.machine import register_pointers

_OF_SMS = f"int64({', '.join(['i64*'] * 13)}, int64, int64, int64)"
_OF_ALL = "int64(i64*, i64*, i64*, int64, int64)"
SOURCES = ("rules", "codegen", "timing")


@lru_cache
def functions() -> Mapping[str, Callable[..., int]]:
    """`run_sms` and `serve_all` of `timing.engine`; arrays are given by address."""
    typed = {
        "run_sms": (run_sms, _OF_SMS),
        "serve_all": (serve_all, _OF_ALL),
    }
    return load_apart("timing", typed, SOURCES, register_pointers)
