"""Loads the timing engine as machine code: from the package's helper objects, or compiled by
Numba."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from warploom.helpers.objects import SOURCES, HelperObject
from warploom.helpers.table import load_separately
from warploom.timing.engine.machine import register_intrinsics
from warploom.timing.engine.quantum import run_quanta, run_sms, serve_all

_OF_SMS = f"int64({', '.join(['i64*'] * 13)}, int64, int64, int64)"
_OF_QUANTA = f"int64({', '.join(['i64*'] * 14)}, int64, int64, int64, int64)"
_OF_ALL = "int64(i64*, i64*, i64*, int64, int64)"


def _functions() -> Mapping[str, Callable[..., object]]:
    """Returns the functions of the engine that Numba compiles where no helper object on disk has
    them, by name, after registering the engine's intrinsics with Numba. Called by
    `HelperObject`."""
    register_intrinsics()
    return {"run_sms": run_sms, "run_quanta": run_quanta, "serve_all": serve_all}


ENGINE = HelperObject(
    "timing",
    (("run_sms", _OF_SMS), ("run_quanta", _OF_QUANTA), ("serve_all", _OF_ALL)),
    _functions,
    (*SOURCES, "timing"),
)


@lru_cache
def functions() -> Mapping[str, Callable[..., int]]:
    """Returns `run_sms`, `run_quanta` and `serve_all` of `timing.engine.quantum` as machine code,
    by name: loaded from the package or compiled, once a process. Each array is passed by its
    address."""
    return load_separately(ENGINE)
