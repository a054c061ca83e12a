"""Returns the machine code of a kernel, loaded into this process: from the cache on disk, or
compiled and then cached.

An entry of the cache is a header, the names of the shared functions that the kernel calls, and the
object. Shared functions (`lower.access.shared_functions`) are objects of their own, linked here.
"""

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
from warploom.program.digest import digest
from warploom.program.program import Program

_LOCK = threading.Lock()

_HEADER = struct.Struct("<?qi")
"""The header of an entry: whether the kernel is scheduled, the bytes of a warp's context, and the
bytes of the names of shared functions, one in each line, which follow the header."""

RunFunction = Callable[..., int]
"""The compiled function `run` (`lower.kernel.grid`): of the addresses of environment, counts and
rows, the first block and one past the last."""


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """Holds a kernel's machine code and what its host has to provide.

    `suspends`: the scheduler runs its warps. `context_bytes`: the size of a warp's context.
    `engine` owns the code. `baseline`: it is baseline code.
    """

    program: Program
    layout: CountLayout
    run: RunFunction
    suspends: bool
    context_bytes: int
    engine: llvm.ExecutionEngine
    baseline: bool


def compile_kernel(program: Program, rules: AccessRules, variant: KernelVariant) -> CompiledKernel:
    """Returns a kernel compiled for this computer's processor, with the access rules of a device:
    from the cache on disk if it is there, else compiled now and stored there.
    """
    cached = find_kernel(program, rules, variant)
    if cached is not None:
        return cached
    layout, effort = CountLayout(program, rules, variant.warp_layout), _effort(program, variant)
    entry, functions = _compile(layout, variant, effort)
    disk_cache.store("kernel", _key(program, rules, variant), entry)
    kernel = _link(layout, variant, entry, functions)
    assert kernel is not None
    return kernel


def find_kernel(
    program: Program, rules: AccessRules, variant: KernelVariant
) -> CompiledKernel | None:
    """Loads a kernel from the cache on disk; returns None if the cache does not have it, or not a
    shared function that it calls.
    """
    entry = disk_cache.find("kernel", _key(program, rules, variant))
    if entry is None:
        return None
    return _link(CountLayout(program, rules, variant.warp_layout), variant, entry, {})


def _effort(program: Program, variant: KernelVariant) -> Effort:
    """Returns the level at which LLVM optimises a variant of a kernel: none for baseline code, else
    by the program's size, at most that of WARPLOOM_OPT_LEVEL."""
    return Effort.NONE if variant.baseline else chosen_effort(program)


def _key(program: Program, rules: AccessRules, variant: KernelVariant) -> str:
    """Returns the key of a kernel in the cache: a digest of the program, the rules, the variant and
    the level of optimisation, the same in every process."""
    effort = _effort(program, variant)
    return disk_cache.key_of((program.digest, digest(rules, variant), effort.name))


def _link(
    layout: CountLayout, variant: KernelVariant, entry: bytes, functions: Mapping[str, Define]
) -> CompiledKernel | None:
    """Loads a kernel from its cache entry into the process; returns None if a shared function that
    it calls is neither cached nor defined in `functions`.
    """
    engine = _load(entry, functions)
    if engine is None:
        return None
    scheduled, context_bytes, _ = _HEADER.unpack_from(entry)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(
        engine.get_function_address("run")
    )
    return CompiledKernel(
        layout.program, layout, run, scheduled, context_bytes, engine, variant.baseline
    )


def _compile(
    layout: CountLayout, variant: KernelVariant, effort: Effort
) -> tuple[bytes, Mapping[str, Define]]:
    """Compiles a kernel, LLVM at the level `effort`; returns its cache entry (header, names of
    shared functions, object), and the definitions, by name, of the shared functions that it
    calls."""
    from warploom.compilation.emission import (
        emit,  # the compiler, which a cached kernel does without
    )

    emitted = emit(layout, variant, effort, _LOCK)
    names = "\n".join(emitted.functions).encode()
    facts = _HEADER.pack(emitted.scheduled, emitted.context_bytes, len(names))
    return facts + names + emitted.object_code, emitted.functions


def _load(entry: bytes, functions: Mapping[str, Define]) -> llvm.ExecutionEngine | None:
    """Loads the object of an entry into the process, with the helpers and shared functions that it
    calls; `functions` has definitions of shared functions that may not be cached. Returns the
    engine that owns the code, or None if a shared function is missing."""
    begin = _HEADER.size
    size: int = _HEADER.unpack_from(entry)[2]
    names, object_code = entry[begin : begin + size].decode(), entry[begin + size :]
    with _LOCK:
        if not load_functions(names.splitlines(), functions):
            return None
        load_helpers(object_code)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        engine.finalize_object()
        return engine
