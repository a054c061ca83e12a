"""From a program to machine code in this process, by way of the cache on disk."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import llvmlite.binding as llvm

from warploom.abi.environment import CountLayout
from warploom.cost.device_rules import AccessRules
from warploom.helpers.table import load_helpers
from warploom.ir.variant import KernelVariant
from warploom.llvm import disk_cache
from warploom.llvm.opt_level import Effort, chosen_effort
from warploom.llvm.target import target_machine
from warploom.lower.access.shared_functions import Define, load_functions
from warploom.program.program import Program

_LOCK = threading.Lock()

_FACTS = struct.Struct("<?qi")
"""What stands before a kernel's object: whether it is scheduled, the bytes of a context, and the
bytes of the names, one a line, of the shared functions that it calls, which follow."""

Run = Callable[..., int]
"""The compiled `run` (see `lower.kernel.grid`): environment, counts, rows, first and last block."""


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A kernel's machine code and what its host must provide. `baseline`: it is code that is
    compiled fast."""

    program: Program
    layout: CountLayout
    run: Run
    suspends: bool
    context_bytes: int
    engine: llvm.ExecutionEngine
    baseline: bool


def compile_kernel(program: Program, rules: AccessRules, variant: KernelVariant) -> CompiledKernel:
    """Returns a kernel compiled for this computer's processor, with the access rules of a
    device."""
    found = find_kernel(program, rules, variant)
    if found is not None:
        return found
    layout, effort = CountLayout(program, rules, variant.warp_layout), _effort(program, variant)
    made, functions = _compile(layout, variant, effort)
    disk_cache.keep("kernel", _key(program, rules, variant), made)
    kernel = _loaded(layout, variant, made, functions)
    assert kernel is not None
    return kernel


def find_kernel(
    program: Program, rules: AccessRules, variant: KernelVariant
) -> CompiledKernel | None:
    """Returns what `compile_kernel` does, if the cache has it; else None."""
    made = disk_cache.find("kernel", _key(program, rules, variant))
    if made is None:
        return None
    return _loaded(CountLayout(program, rules, variant.warp_layout), variant, made, {})


def _effort(program: Program, variant: KernelVariant) -> Effort:
    return Effort.NONE if variant.baseline else chosen_effort(program)


def _key(program: Program, rules: AccessRules, variant: KernelVariant) -> str:
    effort = _effort(program, variant)
    return disk_cache.key_of((program.digest, repr(rules), repr(variant), effort.name))


def _loaded(
    layout: CountLayout, variant: KernelVariant, made: bytes, functions: Mapping[str, Define]
) -> CompiledKernel | None:
    """Returns a kernel from what is kept of it; None where a function that it calls is not to be
    had."""
    engine = _load(made, functions)
    if engine is None:
        return None
    scheduled, context_bytes, _ = _FACTS.unpack_from(made)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(
        engine.get_function_address("run")
    )
    return CompiledKernel(
        layout.program, layout, run, scheduled, context_bytes, engine, variant.baseline
    )


def _compile(
    layout: CountLayout, variant: KernelVariant, effort: Effort
) -> tuple[bytes, Mapping[str, Define]]:
    """Returns the object that a kernel becomes, behind what its host must know of it; and the
    definitions of the shared functions that it calls."""
    from warploom.compilation.emission import (
        emit,  # the compiler, which a cached kernel does without
    )

    emitted = emit(layout, variant, effort, _LOCK)
    names = "\n".join(emitted.functions).encode()
    facts = _FACTS.pack(emitted.scheduled, emitted.context_bytes, len(names))
    return facts + names + emitted.made, emitted.functions


def _load(kept: bytes, functions: Mapping[str, Define]) -> llvm.ExecutionEngine | None:
    """Loads a kernel's object beside the functions that it calls; `functions` are the definitions
    that are known of these. Returns None where one of them cannot be had."""
    begin = _FACTS.size
    size: int = _FACTS.unpack_from(kept)[2]
    names, made = kept[begin : begin + size].decode(), kept[begin + size :]
    with _LOCK:
        if not load_functions(names.splitlines(), functions):
            return None
        load_helpers(made)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(made))
        engine.finalize_object()
        return engine
