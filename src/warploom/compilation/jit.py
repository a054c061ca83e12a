"""Returns the machine code of a kernel, loaded into this process: from the cache on disk, or
compiled and then cached.

An entry of the cache is a header, the names of the shared functions that the kernel calls, and the
object. Shared functions (`lower.access.shared_functions`) are objects of their own, linked here.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from warploom.abi.environment import CountLayout
from warploom.core.forked_task import ForkedTask
from warploom.core.imports import forks_at_once, is_importing
from warploom.core.interrupts import interrupts_held
from warploom.core.mutex import Mutex, hold_in_forks
from warploom.cost.device_rules import AccessRules
from warploom.helpers.table import load_helpers
from warploom.ir.variant import KernelVariant
from warploom.llvm import disk_cache
from warploom.llvm.opt_level import Effort
from warploom.llvm.target import target_machine
from warploom.lower.access.shared_functions import Define, cache_functions, load_functions
from warploom.program.digest import digest
from warploom.program.program import Program

_LOCK = Mutex("compile a kernel")
"""Held by the one thread that is in LLVM."""

_HEADER = struct.Struct("<?qi")
"""The header of an entry: whether the kernel is scheduled, the bytes of a warp's context, and the
bytes of the names of shared functions, one in each line, which follow the header."""

RunFunction = Callable[..., int]
"""The compiled function `run` (`lower.kernel.grid`): of the addresses of environment, counts and
rows, the first block and one past the last."""


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """Holds a kernel's machine code and what its host has to provide.

    `variant`: that of the code (`Compilation.code_variant`). `suspends`: the scheduler runs its
    warps. `context_bytes`: the size of a warp's context. `engine` owns the code. `effort`: the
    level at which LLVM compiled it.
    """

    program: Program
    variant: KernelVariant
    layout: CountLayout
    run: RunFunction
    suspends: bool
    context_bytes: int
    engine: llvm.ExecutionEngine
    effort: Effort

    @property
    def baseline(self) -> bool:
        """Returns whether this is baseline code."""
        return self.effort is Effort.NONE

    @property
    def tier(self) -> str:
        """Returns the name of the code tier: "baseline", or "level 0", "level 1" or "level 3" by
        the effort of LLVM (`WARPLOOM_OPT_LEVEL`)."""
        return "baseline" if self.baseline else f"level {self.effort.value}"


@dataclass(frozen=True, slots=True)
class Compilation:
    """Identifies compiled code: a program, with the access rules of a device, for launches of one
    variant, by LLVM at the level `effort`; at level NONE its baseline code."""

    program: Program
    rules: AccessRules
    variant: KernelVariant
    effort: Effort

    @property
    def code_variant(self) -> KernelVariant:
        """Returns `variant`, made that of baseline code (`for_baseline`) if the effort is NONE, and
        of code for any order (`for_any_order`) in sanitized code if a policy chooses the order, or
        the effort is LEAST."""
        if self.effort is Effort.NONE:
            return self.variant.for_baseline()
        if self.variant.sanitizes is None:
            return self.variant
        any_order = self.variant.shuffles or self.effort is Effort.LEAST
        return self.variant.for_any_order() if any_order else self.variant

    @property
    def layout(self) -> CountLayout:
        """Returns the indices of the counters that the code adds to, in the array of counts."""
        return CountLayout(self.program, self.rules, self.code_variant.warp_layout)

    @property
    def key(self) -> str:
        """Returns the key in the cache on disk, the same in every process: a digest of program,
        rules and variant, and the level."""
        digests = self.program.digest, digest(self.rules, self.code_variant)
        return disk_cache.key_of((*digests, self.effort.name))


def compile_kernel(wanted: Compilation) -> CompiledKernel:
    """Returns a kernel compiled for this computer's processor: from the cache on disk if it is
    there, else compiled now and stored there."""
    cached = find_kernel(wanted)
    if cached is not None:
        return cached
    entry, functions = _compile(wanted, _LOCK)
    disk_cache.store("kernel", wanted.key, entry)
    kernel = _link(wanted, entry, functions)
    assert kernel is not None
    return kernel


def find_kernel(wanted: Compilation) -> CompiledKernel | None:
    """Loads a kernel from the cache on disk; returns None if the cache does not have it, or not a
    shared function that it calls.
    """
    entry = disk_cache.find("kernel", wanted.key)
    return None if entry is None else _link(wanted, entry, {})


def is_cached(wanted: Compilation) -> bool:
    """Returns whether the cache on disk has a kernel."""
    return disk_cache.find("kernel", wanted.key) is not None


def start_compiling(wanted: Compilation) -> ForkedTask | None:
    """Compiles a kernel in a forked process while this one goes on; the result of the task is for
    `load_compiled`. Returns None if no process could be started (`ForkedTask.start`), or if
    llvmlite has no lock by the expected name. None as well while another thread of this process is
    in LLVM, whose state would be inconsistent in the fork, or imports a module, whose lock the
    compiler may need."""
    lock = _llvm_lock()
    if lock is None or not _LOCK.acquire(blocking=False):
        return None
    try:
        if not lock.acquire(blocking=False):
            return None
        try:
            if is_importing():
                return None
            # An interrupt must not come between the fork and the object that ends the process.
            with interrupts_held(), forks_at_once():
                return ForkedTask.start(lambda: _compile_and_store(wanted))
        finally:
            lock.release()
    finally:
        _LOCK.release()


def load_compiled(wanted: Compilation, entry: bytes) -> CompiledKernel | None:
    """Loads a kernel that another process has compiled; returns None if a shared function that it
    calls could not be stored in the cache."""
    return _link(wanted, entry, {})


def _compile_and_store(wanted: Compilation) -> bytes:
    """Compiles a kernel and the shared functions that it calls, and stores all of them in the cache
    on disk; returns the kernel's entry. Called in a forked process, so it does not acquire `_LOCK`,
    which the parent's thread held when it forked."""
    entry, functions = _compile(wanted, nullcontext())
    cache_functions(functions)
    disk_cache.store("kernel", wanted.key, entry)
    return entry


def _llvm_lock() -> Any:
    """Returns the lock that llvmlite holds during each call of LLVM, None if this version of it has
    none by that name."""
    binding: Any = llvm
    return getattr(getattr(binding.ffi.lib, "_lock", None), "_lock", None)


if (_lock_of_llvm := _llvm_lock()) is not None:
    hold_in_forks(_lock_of_llvm)  # finalizers of llvmlite's objects acquire it alone


def _link(
    wanted: Compilation, entry: bytes, functions: Mapping[str, Define]
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
        wanted.program,
        wanted.code_variant,
        wanted.layout,
        run,
        scheduled,
        context_bytes,
        engine,
        wanted.effort,
    )


def _compile(
    wanted: Compilation, lock: AbstractContextManager[None]
) -> tuple[bytes, Mapping[str, Define]]:
    """Compiles a kernel, LLVM under `lock`; returns its cache entry (header, names of shared
    functions, object), and the definitions, by name, of the shared functions that it calls."""
    from warploom.compilation.emission import (
        emit,  # the compiler, which a cached kernel does without
    )

    emitted = emit(wanted.layout, wanted.code_variant, wanted.effort, lock)
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
