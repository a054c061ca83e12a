"""Lists the helpers (runtime functions in Python, compiled by Numba) that compiled kernels call,
with their types and modules, and loads their machine code.

Cost rules, checks and the scheduler are written once, in Python; both machines use them. Compiled,
they are objects (`helpers.objects`) that a process loads once; kernels call them by name."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Mapping
from functools import lru_cache

import llvmlite.binding as llvm

from warploom.cost.device_rules import RULES
from warploom.helpers.objects import HelperObject
from warploom.helpers.symbols import PREFIX
from warploom.llvm.target import target_machine
from warploom.simt.lane_counts import Addresses, Ints

CHECKS = {
    "check_global": "int64(u64*, int64, int64, int64, i64*, u64*, u64*)",
    "find_bounds": "int64(int64, int64, i64*, u64*, u64*)",
    "check_span": "int64(u64*, int64, int64, int64, i64*)",
    "lasting": "int64(u64*, int64, i64*, int64)",
    "lane_order": "int64(u64*, int64, i64*, int64)",
    "count_cached": "int64(u64*, int64, int64, i64*, i64*, int64, int64, int64)",
    "serve_texels": "int64(i64*, u8*, u64*, i64*, i64*, i64*, i64*)",
    "issue_copies": "int64(u8*, i64*, u64*, i64*, i64*, i64*, i64*)",
    "issue_tensor_memory": "int64(u8*, i64*, u32*, i64*, i64*, i64*, int64)",
    "find_unfreed": "int64(u8*, int64, int64, int64, i64*)",
    "wait_copies": "int64(u8*, i64*, i64*, i64*, i64*, int64)",
    "group_copies": "int64(u8*, i64*, i64*, i64*, i64*, int64, int64, int64)",
    "wait_stores": "int64(u8*, i64*, i64*, i64*)",
    "retire_copies": "int64(u8*, i64*, i64*, i64*, int64, int64)",
    "hold_copies": "int64(u8*, i64*, u64*, i64*, i64*, int64, int64)",
    "defer_copies": "int64(u8*, i64*, i64*)",
    "check_cluster": "int64(i64*, int64, int64, int64, int64, i64*, int64, int64)",
    "cluster_wait": "int64(i64*, i64*, i64*, i64*, int64, int64, int64)",
    "live_ranks": "int64(i64*, i64*)",
    "set_registers": "int64(i64*, i64*, int64, int64, int64)",
    "begin_launch": "int64(i64*, i64*)",
    "diverge_by_index": "int64(i64*, i64*, int64, i64*, int64, int64, int64, int64, int64)",
    "branch_first": "int64(i64*, i64*, int64)",
    "choose_warp": "int64(i64*, i64*, i64*, i64*)",
    "end_turn": "int64(i64*, i64*, i64*, int64, int64)",
    "warp_order_start": "int64(i64*, i64*, int64)",
    "end_warp_order": "int64(i64*, i64*, i64*, i64*, i64*)",
    "fill_range_cache": "int64(i64*, i64*, i64*, int64, int64, i64*)",
    "count_strided": "int64(i64*, int64, int64, int64, int64, int64)",
    "reshape_registers": "int64(i64*, i64*, int64, int64)",
    "next_in_warp_order": "int64(i64*, i64*, i64*)",
    "record_block": "int64(i64*, i64*, i64*, int64, int64, int64, int64, int64)",
    "record_guard": "int64(i64*, int64, int64)",
    "record_access": "int64(i64*, i64*, int64, int64, int64)",
    "record_texels": "int64(i64*, i64*, int64, int64)",
    "record_barriers": "int64(i64*, i64*, u8*, i64*, int64, int64, int64)",
    "record_copies": "int64(i64*, i64*, u8*, i64*, u64*, int64)",
    "record_bytes": "int64(i64*, i64*, u8*, i64*, int64, int64)",
    "record_commits": "int64(i64*, i64*, u8*, i64*, int64, int64)",
    "watch_access": "int64(i64*, i64*, int64, int64, int64)",
    "has_block_ended": "int64(i64*, int64)",
    "detect_event": "int64(i64*, i64*, i64*, u8*, i64*, u8*)",
    "detect_lane_runs": "int64(i64*, i64*, i64*, i64*, int64, int64)",
    "detect_tensor_memory": "int64(i64*, i64*, i64*, u8*, u8*, i64*, u8*)",
    "detect_texels": "int64(i64*, i64*, i64*, u8*, i64*, u8*, u64*, i64*, u8*)",
    "detect_copies": "int64(i64*, i64*, i64*, u8*, u8*, i64*, u64*, u8*)",
}

_RULE = "int64(u64*, int64, int64, i64*)"
"""The type of a cost rule: addresses, mask, size, access record."""

_RARE = (
    *("serve_texels", "record_block", "record_guard", "record_access", "record_texels"),
    *("record_barriers", "record_copies", "record_bytes", "record_commits"),
    *(
        "detect_event",
        "detect_lane_runs",
        "detect_copies",
        "detect_tensor_memory",
        "detect_texels",
    ),
    *("watch_access", "has_block_ended"),
    *(
        "issue_tensor_memory",
        "find_unfreed",
        "issue_copies",
        "wait_copies",
        "wait_stores",
        "group_copies",
        "retire_copies",
    ),
    *("hold_copies", "defer_copies"),
    *("check_cluster", "cluster_wait", "live_ranks", "set_registers"),
)
"""The helpers that have an object each, which is loaded when a kernel first calls them."""

_MODULES = {
    "check": "helpers.checks",
    "find": "helpers.checks",
    "count": "cost.caches",
    "count_strided": "helpers.strided_counts",
    "lasting": "cost.writes",
    "lane": "cost.atomics",
    "serve": "texture.requests",
    "fill": "helpers.range_cache_filling",
    "record": "abi.log",
    "record_barriers": "abi.log_copies",
    "record_copies": "abi.log_copies",
    "record_bytes": "abi.log_copies",
    "record_commits": "abi.log_copies",
    "reshape": "helpers.layout_recovery",
    "watch": "lower.instrument.watchpoints",
    "has": "lower.instrument.observing",
    "detect": "detector.detect",
    "detect_copies": "detector.tensor.tensor_copies",
    "detect_lane_runs": "detector.quick_events",
    "detect_texels": "detector.tensor.texels",
    "detect_tensor_memory": "detector.tensor.tensor_memory",
    "issue": "asynchronous.issue.tensor_copies",
    "find_unfreed": "asynchronous.issue.allocation",
    "issue_tensor_memory": "asynchronous.issue.tensor_memory",
    "wait": "asynchronous.issue.waits",
    "wait_stores": "asynchronous.issue.late_stores",
    "group": "asynchronous.issue.waits",
    "hold": "asynchronous.late_copies.hold",
    "defer": "asynchronous.late_copies.hold",
    "retire": "asynchronous.issue.waits",
}
"""The modules of helpers, by name or by the first word of the name; all others are in
`helpers.turns`."""


def _import_helper(name: str) -> Callable[..., object]:
    """Imports the Python function of a helper in CHECKS from its module, found in `_MODULES` by its
    name or the part before the first `_`; else `helpers.turns`."""
    module = _MODULES.get(name) or _MODULES.get(name.partition("_")[0], "helpers.turns")
    return getattr(importlib.import_module(f"warploom.{module}"), name)


def _helpers(file: str, names: tuple[str, ...]) -> HelperObject:
    """Returns the description of an object whose files' names begin with `file`, with the helpers
    `names` of CHECKS and RULES.
    """

    def functions() -> Mapping[str, Callable[..., object]]:
        """Returns the Python functions of the helpers by name: cost rules from RULES, others
        imported."""
        return {name: RULES.get(name) or _import_helper(name) for name in names}

    return HelperObject(file, tuple((name, CHECKS.get(name, _RULE)) for name in names), functions)


COMMON = _helpers("helpers", (*RULES, *(name for name in CHECKS if name not in _RARE)))
"""The helpers of the one object that is loaded with every kernel."""

RARE = {name: _helpers(name, (name,)) for name in _RARE}
"""The objects of all other helpers, by name."""


def load_helpers(kernel: bytes) -> None:
    """Loads the helpers that a kernel's object calls into the process: the common ones, and those
    of RARE whose symbols occur in the object."""
    _load(COMMON)
    for name, rare in RARE.items():
        if (PREFIX + name).encode() in kernel:
            _load(rare)


@lru_cache
def _load(helpers: HelperObject) -> llvm.ExecutionEngine:
    """Loads an object, once in a process, and defines its helpers as symbols, by which kernels call
    them. The cache of this function holds the engine alive, which owns the code.
    """
    engine = _load_engine(helpers)
    for name, _ in helpers.signatures:
        llvm.add_symbol(PREFIX + name, engine.get_function_address(PREFIX + name))
    return engine


def _load_engine(helpers: HelperObject) -> llvm.ExecutionEngine:
    """Loads one object into the process; returns the engine that owns its code."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(helpers.code()))
    engine.finalize_object()
    return engine


@lru_cache
def _load_rule(name: str) -> Callable[..., int]:
    """Loads the common helpers and returns the machine code of a cost rule as a function of i64:
    the host addresses of lanes' addresses and of the record are its first and last argument, mask
    and size the others."""
    engine = _load(COMMON)
    address = engine.get_function_address(PREFIX + name)
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)(address)


def count_compiled(rule: str, addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Counts an access in its record `record` by the machine code of a cost rule, with the same
    result as `RULES[rule]` in Python, but faster."""
    _load_rule(rule)(addresses.ctypes.data, mask, size, record.ctypes.data)


def load_separately(helpers: HelperObject) -> Mapping[str, Callable[..., int]]:
    """Loads an object of functions that no kernel calls (Python calls them), and returns them by
    name; their arguments are addresses and integers. A call releases the GIL (ctypes).
    """
    engine = _load_engine(helpers)
    _SEPARATE.append(engine)

    def as_function(name: str, types: str) -> Callable[..., int]:
        """Returns a ctypes function of i64 arguments, as many as the signature `types` has, and an
        i64 result, which calls the helper `name`."""
        kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (types.count(",") + 2))
        return kind(engine.get_function_address(PREFIX + name))

    return {name: as_function(name, types) for name, types in helpers.signatures}


_SEPARATE: list[llvm.ExecutionEngine] = []
"""The engines of `load_separately`: code is freed with its engine."""
