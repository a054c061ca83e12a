"""From a program to machine code in this process, by way of the cache on disk."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import llvmlite.binding as llvm

from warploom.analysis.courses import Size
from warploom.analysis.program import Program
from warploom.analysis.shapes import Formation
from warploom.codegen import cache
from warploom.codegen.environment import CountLayout
from warploom.codegen.helpers import load_helpers
from warploom.codegen.sizes import Effort, chosen_effort
from warploom.codegen.target import target_machine
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


def compile_kernel(
    program: Program,
    rules: AccessRules,
    *,
    formation: Formation,
    size: Size | None,
    independent: bool,
    mixes: bool,
    shuffles: bool,
    records: bool = False,
) -> CompiledKernel:
    """Compile a kernel for this computer's processor, with the access rules of a device, for
    launches whose warps are formed so, and for blocks of a size if one is given; for `independent`
    and `mixes` see `codegen.control`. `shuffles`: warps, blocks and the lanes of an atomic go in an
    order that the launch's policy chooses. `records`: the code writes a log of all that it does
    (`codegen.log`)."""
    layout = CountLayout(program, rules)
    effort = chosen_effort(program)
    options = _Options(formation, size, independent, mixes, shuffles, records, effort)
    key = _key(program, rules, options)
    found = cache.find("kernel", key)
    if found is None:
        found = _compile(layout, options)
        cache.keep("kernel", key, found)
    scheduled, context_bytes = _FACTS.unpack_from(found)
    with _LOCK:
        engine = _load(found[_FACTS.size :])
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(
        engine.get_function_address("run")
    )
    return CompiledKernel(program, layout, run, scheduled, context_bytes, engine)


class _Options(NamedTuple):
    """What is compiled beside the program."""

    formation: Formation
    size: Size | None
    independent: bool
    mixes: bool
    shuffles: bool
    records: bool
    effort: Effort


def _key(program: Program, rules: AccessRules, options: _Options) -> str:
    """Names everything on which the machine code depends."""
    return cache.key_of((program.digest, repr(rules), repr(options)))


def _compile(layout: CountLayout, options: _Options) -> bytes:
    """The object that a kernel becomes, behind what its host must know of it."""
    from warploom.codegen.emission import emit  # the compiler, which a cached kernel does without

    emitted = emit(layout, _LOCK, **options._asdict())
    return _FACTS.pack(emitted.scheduled, emitted.context_bytes) + emitted.made


def _load(made: bytes) -> llvm.ExecutionEngine:
    """Load an object beside the helpers that it calls."""
    load_helpers(made)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(made))
    engine.finalize_object()
    return engine
