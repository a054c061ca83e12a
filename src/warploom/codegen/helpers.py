"""The helpers that compiled code calls: Python compiled by Numba to machine code.

The rules of the hardware and the checks are stated once, in Python. Numba turns them into LLVM IR;
here that becomes one object, loaded once in a process, and kernels call it by name. It is kept in
the user's cache, for it depends only on the sources, the versions and the processor; with it, Numba
is not even imported.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import llvmlite.binding as llvm

from warploom.codegen import cache
from warploom.codegen.target import optimise, target_machine
from warploom.rules.choice import RULES
from warploom.rules.distinct import Addresses, Row, register_jitables

PREFIX = "warploom."
"""Begins the helpers' names among the symbols of a process."""

CHECKS = {
    "check_global": "int64(u64*, int64, int64, int64, i64*, u64*, u64*, i64*, u64*)",
    "check_span": "int64(u64*, int64, int64, int64, i64*)",
    "lasting": "int64(u64*, int64, i64*, int64)",
    "lane_order": "int64(u64*, int64, i64*, int64)",
    "count_cached": "int64(u64*, int64, int64, i64*, i64*, int64, int64, int64)",
    "serve_texels": "int64(i64*, u8*, u64*, i64*, i64*, i64*, i64*, int64, int64, int64, int64)",
    "begin_launch": "int64(i64*, i64*)",
    "take_ways": "int64(i64*, i64*, int64, i64*, int64, int64, int64, int64, int64)",
    "branch_first": "int64(i64*, i64*, int64)",
    "choose_warp": "int64(i64*, i64*, i64*, i64*, int64)",
    "end_turn": "int64(i64*, i64*, i64*, int64, int64)",
    "relay_start": "int64(i64*, i64*, int64)",
    "end_relay": "int64(i64*, i64*, i64*, i64*, i64*, int64)",
    "learn_row": "int64(int64, int64, int64, int64, int64, i64*)",
    "knows_row": "int64(int64, int64, int64, i64*)",
    "next_in_relay": "int64(i64*, i64*, i64*)",
    "record_block": "int64(i64*, i64*, i64*, int64, int64, int64, int64, int64)",
    "record_guard": "int64(i64*, int64, int64)",
    "record_access": "int64(i64*, i64*, int64, int64, int64)",
    "record_texels": "int64(i64*, i64*, int64, int64)",
}

_RULE = "int64(u64*, int64, int64, i64*)"
"""The signature of every rule."""

_RARE = ("serve_texels", "record_block", "record_guard", "record_access", "record_texels")
"""Helpers that have an object of their own, made when a kernel first calls them."""

_COMMON = (*RULES, *(name for name in CHECKS if name not in _RARE))
"""The helpers of the one object that every kernel has beside it."""

_PLACES = {
    "check": "codegen.checks",
    "count": "rules.caches",
    "lasting": "rules.writes",
    "lane": "rules.atomics",
    "serve": "rules.texture_requests",
    "take": "rules.ways",
    "branch": "rules.scheduling",
    "learn": "codegen.row_kinds",
    "knows": "codegen.row_kinds",
    "record": "codegen.log",
}
"""The modules of these functions, by the first word of their names; others are in codegen.turns."""

_NAMES = {"i": "int", "u": "uint"}
"""Numba's names of integer types, by their first letters."""


def load_helpers(kernel: bytes) -> None:
    """Load the helpers that a kernel's object names into the process."""
    _load("helpers", _COMMON)
    for name in _RARE:
        if (PREFIX + name).encode() in kernel:
            _load(name, (name,))


@lru_cache
def _load(file: str, names: tuple[str, ...]) -> llvm.ExecutionEngine:
    """Load the helpers of one object, so that kernels find them; the engine keeps them there."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(_object(file, names)))
    engine.finalize_object()
    for name in names:
        llvm.add_symbol(PREFIX + name, engine.get_function_address(PREFIX + name))
    return engine


@lru_cache
def _rule(name: str) -> Callable[..., int]:
    """A rule's machine code, as a function of two addresses in memory around two numbers."""
    engine = _load("helpers", _COMMON)
    address = engine.get_function_address(PREFIX + name)
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)(address)


def count_compiled(rule: str, addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Apply a rule by its machine code: as `RULES` does, and faster."""
    _rule(rule)(addresses.ctypes.data, mask, size, row.ctypes.data)


def _object(file: str, names: tuple[str, ...]) -> bytes:
    key = cache.key_of(names, ("rules", "codegen"))
    found = cache.find(file, key)
    if found is None:
        _tell_of_compiling()
        found = _compile(names)
        cache.keep(file, key, found)
    return found


def _tell_of_compiling() -> None:
    """Writes to a terminal why the first launch on a computer takes long."""
    if sys.stderr.isatty():
        sys.stderr.write(
            "warploom: compiling its own machine code for this processor, once; this takes about"
            f" half a minute (kept in {cache.cache_directory()})\n"
        )


def _compile(names: tuple[str, ...]) -> bytes:
    """Compile helpers with Numba, and link them into one object."""
    functions = {name: RULES.get(name) or _found(name) for name in names}
    return _linked({name: (functions[name], CHECKS.get(name, _RULE)) for name in names})


Typed = tuple[Callable[..., object], str]
"""A function, and the types of its answer and its arguments."""


def _linked(functions: Mapping[str, Typed]) -> bytes:
    """Functions compiled into one object."""
    from warploom.codegen import lanewise  # which needs what most runs do not

    whole = llvm.parse_assembly("")
    register_jitables()
    lanewise.register()
    for name, (function, types) in functions.items():
        whole.link_in(_compiled(name, function, types))
    optimise(whole)
    return target_machine().emit_object(whole)


def load_apart(
    file: str, functions: Mapping[str, Typed], sources: Sequence[str], prepare: Callable[[], None]
) -> Mapping[str, Callable[..., int]]:
    """Functions that no kernel calls, as machine code: their arguments are addresses and numbers.

    They let other threads of Python run meanwhile. The object is kept as `file` in the user's
    cache; `sources` are the parts of the package that it depends on; `prepare` is called before
    they are compiled.
    """
    key = cache.key_of(functions, sources)
    made = cache.find(file, key)
    if made is None:
        _tell_of_compiling()
        prepare()
        made = _linked(functions)
        cache.keep(file, key, made)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(made))
    engine.finalize_object()
    _APART.append(engine)

    def called(name: str, types: str) -> Callable[..., int]:
        kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (types.count(",") + 2))
        return kind(engine.get_function_address(PREFIX + name))

    return {name: called(name, types) for name, (_, types) in functions.items()}


_APART: list[llvm.ExecutionEngine] = []
"""The engines of `load_apart`, which keep its code where it is."""


def _found(name: str) -> Callable[..., object]:
    """A function of CHECKS."""
    place = _PLACES.get(name.partition("_")[0], "codegen.turns")
    return getattr(importlib.import_module(f"warploom.{place}"), name)


def _compiled(name: str, function: Callable[..., object], types: str) -> llvm.ModuleRef:
    """One helper as a module: Numba's function, and a shim of the C signature around it.

    Numba's own C wrapper would report Python exceptions; the helpers raise none.
    """
    from numba import cfunc

    spelled = re.sub(r"([ui])(\d+)\*", lambda m: f"CPointer({_NAMES[m[1]]}{m[2]})", types)
    returns_value = name not in RULES
    if not returns_value:
        spelled = spelled.replace("int64(", "void(", 1)
    made = cfunc(spelled, nopython=True, error_model="numpy")(function)
    inner = made.native_name.removeprefix("cfunc.")
    kinds = ["ptr" if "*" in a else "i64" for a in types.split("(")[1].split(",")]
    given = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    shim = f"""
define i64 @"{PREFIX}{name}"({given}) {{
  %result = alloca i64
  %exception = alloca ptr
  %status = call i32 @{inner}(ptr %result, ptr %exception, {given})
  %value = load i64, ptr %result
  ret i64 {"%value" if returns_value else "0"}
}}
"""
    part = llvm.parse_assembly(made.inspect_llvm() + shim)
    for item in (*part.functions, *part.global_variables):
        if not item.is_declaration and item.name != PREFIX + name:
            item.linkage = "internal"
    return part
