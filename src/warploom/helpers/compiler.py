"""Compiles helpers: Python functions become LLVM IR by Numba, and one object by LLVM."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm

from warploom.core.errors import WarploomError
from warploom.cost.device_rules import RULES
from warploom.llvm.target import Processor, optimise, target_machine
from warploom.simt.lane_counts import register_jitables

PREFIX = "warploom."
"""Begins the helpers' names among the symbols of a process."""

SHARED = f"{PREFIX}lanes."
"""Begins the names of functions that several helpers of an object call."""

Typed = tuple[Callable[..., object], str]
"""A function, and the types of its answer and its arguments, as Numba spells C types."""

_NAMES = {"i": "int", "u": "uint"}
"""Numba's names of integer types, by their first letters."""


_COUNTS = ("NRT_incref", "NRT_decref")
_NO_COUNTS = "".join(f"define void @{name}(ptr) alwaysinline {{ ret void }}\n" for name in _COUNTS)
"""Numba's counts of references to arrays, without effect: these arrays are memory of the engine."""

_OUTSIDE = {"memset", "memcpy", "memmove"}
"""What an object may leave to the C library."""


def linked(functions: Mapping[str, Typed]) -> llvm.ModuleRef:
    """Returns the functions, each under its name behind `PREFIX`, in one module that is not
    optimised."""
    from warploom.helpers import lanewise  # which needs what most runs do not

    whole = llvm.parse_assembly(_NO_COUNTS)
    register_jitables()
    lanewise.register()
    with _not_optimised():
        for name, (function, types) in functions.items():
            whole.link_in(_compiled(name, function, types))
    for function in whole.functions:
        if function.name in _COUNTS or function.name.startswith(SHARED):
            function.linkage = "internal"
    return whole


def object_for(module: llvm.ModuleRef, processor: Processor) -> bytes:
    """Returns the object of a module for a processor; the module stays as it is.

    Raises WarploomError where the object would need anything of Numba's when it runs.
    """
    copy = module.clone()
    optimise(copy, processor)
    undefined = {item.name for item in copy.functions if item.is_declaration}
    missing = sorted(name for name in undefined - _OUTSIDE if not name.startswith("llvm."))
    if missing:
        raise WarploomError(f"Numba left calls of {', '.join(missing)} in the helpers.")
    return target_machine(processor=processor).emit_object(copy)


@contextmanager
def _not_optimised() -> Generator[None]:
    """Has Numba optimise nothing, for the linked module is optimised as a whole."""
    config: Any = import_module("numba.core.config")
    before = config.OPT
    config.OPT = type(before)(0)
    try:
        yield
    finally:
        config.OPT = before


def _compiled(name: str, function: Callable[..., object], types: str) -> llvm.ModuleRef:
    """Return one helper as a module: Numba's function, and a shim of the C signature around it.

    Numba's own C wrapper would report Python exceptions; the helpers raise none.
    """
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
