"""From a program to machine code in this process."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm
from llvmlite import ir

from warploom.analysis.program import Program
from warploom.codegen.environment import CountLayout
from warploom.codegen.grid import GridFunction
from warploom.codegen.helpers import load_helpers
from warploom.codegen.rounding import PREFIX, definition
from warploom.codegen.target import optimise, target_machine
from warploom.codegen.warp import WarpFunction
from warploom.rules.choice import AccessRules

_LOCK = threading.Lock()

Run = Callable[..., int]
"""The compiled `run` (see `codegen.grid`): environment, counts, rows, first and last block."""


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel's machine code and what its host must provide."""

    program: Program
    layout: CountLayout
    run: Run
    suspends: bool
    context_bytes: int
    engine: llvm.ExecutionEngine


def compile_kernel(
    program: Program, rules: AccessRules, *, independent: bool, mixes: bool, shuffles: bool
) -> CompiledKernel:
    """Compile a kernel for this computer's processor, with the access rules of a device; for
    `independent` and `mixes` see `codegen.control`. `shuffles`: warps, blocks and the lanes of an
    atomic go in an order that the launch's policy chooses."""
    layout = CountLayout(program, rules)
    module = ir.Module(program.name)
    warp = WarpFunction(module, program, layout, independent=independent, mixes=mixes, shuffles=shuffles)
    warp.emit()
    scheduled = warp.suspends or shuffles
    GridFunction(module, suspends=scheduled, local_bytes=program.local_bytes).emit()
    with _LOCK:
        engine = _engine(str(module))
    address = engine.get_function_address("run")
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(address)
    return CompiledKernel(program, layout, run, scheduled, warp.frame.context_bytes, engine)


def _engine(text: str) -> llvm.ExecutionEngine:
    """Optimise and load a module."""
    load_helpers()
    module = llvm.parse_assembly(text)
    for function in list(module.functions):
        if function.is_declaration and function.name.startswith(PREFIX):
            module.link_in(llvm.parse_assembly(definition(function.name)))
    for function in module.functions:
        if not function.is_declaration and function.name != "run":
            function.linkage = "internal"
    module.verify()
    optimise(module)
    engine = llvm.create_mcjit_compiler(module, target_machine())
    engine.finalize_object()
    return engine
