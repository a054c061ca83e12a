"""Compiles helpers: Numba turns Python functions into LLVM IR, LLVM the linked IR into one object.

A helper is exported as `warploom.NAME` with C's calling convention; nothing of Numba's runtime is
needed when it is called, so that kernels run without importing Numba.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm

from warploom.core.errors import WarploomError
from warploom.cost.device_rules import RULES
from warploom.helpers.symbols import PREFIX, SHARED
from warploom.llvm.target import Processor, optimise, target_machine
from warploom.simt.lane_counts import register_jitables

Typed = tuple[Callable[..., object], str]
"""A function, and the C types of its result and arguments: `int64(u64*, int64)`."""

_NAMES = {"i": "int", "u": "uint"}
"""Numba's names of integer types by their letters in pointer types (`u64*`)."""


_COUNTS = ("NRT_incref", "NRT_decref")
_NO_COUNTS = "".join(f"define void @{name}(ptr) alwaysinline {{ ret void }}\n" for name in _COUNTS)
"""Empty definitions of Numba's reference counting: the arrays are memory of the engine."""

_OUTSIDE = {"memset", "memcpy", "memmove"}
"""The functions of the C library that an object may call."""


def link_helpers(functions: Mapping[str, Typed]) -> llvm.ModuleRef:
    """Compiles the functions, by name, with Numba and returns them as one module, which is not
    optimized yet. Each is exported as `PREFIX` and its name; all other functions are internal."""
    from warploom.helpers import lanewise  # only compilation needs it

    whole = llvm.parse_assembly(_NO_COUNTS)
    register_jitables()
    lanewise.register_vector_versions()
    with _without_optimisation():
        for name, (function, types) in functions.items():
            whole.link_in(_compile_helper(name, function, types))
    for function in whole.functions:
        if function.name in _COUNTS or function.name.startswith(SHARED):
            function.linkage = "internal"
    return whole


def compile_object(module: llvm.ModuleRef, processor: Processor) -> bytes:
    """Optimizes a copy of a module and compiles it to an object for a processor.

    Raises WarploomError if the object would call functions of Numba's runtime.
    """
    copy = module.clone()
    optimise(copy, processor)
    undefined = {item.name for item in copy.functions if item.is_declaration}
    missing = sorted(name for name in undefined - _OUTSIDE if not name.startswith("llvm."))
    if missing:
        raise WarploomError(
            "Numba's code for the helper functions calls undefined functions: "
            f"{', '.join(missing)}."
        )
    return target_machine(processor=processor).emit_object(copy)


@contextmanager
def _without_optimisation() -> Generator[None]:
    """Disables Numba's optimization while it is open: the linked module is optimized as a whole,
    once for each processor."""
    config: Any = import_module("numba.core.config")
    before = config.OPT
    config.OPT = type(before)(0)
    try:
        yield
    finally:
        config.OPT = before


def _compile_helper(name: str, function: Callable[..., object], types: str) -> llvm.ModuleRef:
    """Returns the module of one helper: the function as Numba compiles it, and a wrapper
    `warploom.NAME` with the C signature `types`, which returns its result.

    Numba's own C wrapper reports Python exceptions, which needs the interpreter; helpers raise
    none. A cost rule returns nothing in Python, and 0 here."""
    from numba import cfunc

    spelled = re.sub(r"([ui])(\d+)\*", lambda m: f"CPointer({_NAMES[m[1]]}{m[2]})", types)
    returns_value = name not in RULES
    if not returns_value:
        spelled = spelled.replace("int64(", "void(", 1)
    compiled = cfunc(spelled, nopython=True, error_model="numpy")(function)
    inner = compiled.native_name.removeprefix("cfunc.")
    kinds = ["ptr" if "*" in a else "i64" for a in types.split("(")[1].split(",")]
    arguments = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    shim = f"""
define i64 @"{PREFIX}{name}"({arguments}) {{
  %result = alloca i64
  %exception = alloca ptr
  %status = call i32 @{inner}(ptr %result, ptr %exception, {arguments})
  %value = load i64, ptr %result
  ret i64 {"%value" if returns_value else "0"}
}}
"""
    part = llvm.parse_assembly(compiled.inspect_llvm() + shim)
    for item in (*part.functions, *part.global_variables):
        exported = item.name in (PREFIX + name, *_COUNTS) or item.name.startswith(SHARED)
        if not item.is_declaration and not exported:
            item.linkage = "internal"
    return part
