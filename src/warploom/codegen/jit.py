"""From a program to machine code in this process, by way of the cache on disk."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm

from warploom.analysis.program import Program
from warploom.codegen import cache
from warploom.codegen.environment import CountLayout
from warploom.codegen.helpers import load_helpers
from warploom.codegen.sizes import Effort, chosen_effort
from warploom.codegen.target import target_machine
from warploom.codegen.variant import KernelVariant
from warploom.rules.choice import AccessRules

_LOCK = threading.Lock()

_FACTS = struct.Struct("<?q")
"""What stands before a kernel's object: whether it is scheduled, and the bytes of a context."""

Run = Callable[..., int]
"""The compiled `run` (see `codegen.grid`): environment, counts, rows, first and last block."""


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A kernel's machine code and what its host must provide."""

    program: Program
    layout: CountLayout
    run: Run
    suspends: bool
    context_bytes: int
    engine: llvm.ExecutionEngine


def compile_kernel(program: Program, rules: AccessRules, variant: KernelVariant) -> CompiledKernel:
    """Returns a kernel compiled for this computer's processor, with the access rules of a
    device."""
    layout = CountLayout(program, rules)
    effort = chosen_effort(program)
    key = cache.key_of((program.digest, repr(rules), repr(variant), effort.name))
    found = cache.find("kernel", key)
    if found is None:
        found = _compile(layout, variant, effort)
        cache.keep("kernel", key, found)
    scheduled, context_bytes = _FACTS.unpack_from(found)
    with _LOCK:
        engine = _load(found[_FACTS.size :])
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(
        engine.get_function_address("run")
    )
    return CompiledKernel(program, layout, run, scheduled, context_bytes, engine)


def _compile(layout: CountLayout, variant: KernelVariant, effort: Effort) -> bytes:
    """Return the object that a kernel becomes, behind what its host must know of it."""
    from warploom.codegen.emission import emit  # the compiler, which a cached kernel does without

    emitted = emit(layout, variant, effort, _LOCK)
    return _FACTS.pack(emitted.scheduled, emitted.context_bytes) + emitted.made


def _load(made: bytes) -> llvm.ExecutionEngine:
    """Load an object beside the helpers that it calls."""
    load_helpers(made)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(made))
    engine.finalize_object()
    return engine
