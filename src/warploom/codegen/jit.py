"""From a program to machine code in this process, by way of the cache on disk."""

from __future__ import annotations

import ctypes
import logging
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir

from warploom.analysis.program import Program
from warploom.analysis.shapes import Formation
from warploom.analysis.uses import reads_clock
from warploom.codegen import cache
from warploom.codegen.environment import CountLayout
from warploom.codegen.grid import GridFunction
from warploom.codegen.helpers import load_helpers
from warploom.codegen.rounding import PREFIX, definition
from warploom.codegen.sizes import Effort, effort
from warploom.codegen.target import optimise, simplify, target_machine, tidy
from warploom.codegen.warp import WarpFunction
from warploom.core.collector import collector_paused
from warploom.ptx.printer import print_module
from warploom.rules.choice import AccessRules

_LOCK = threading.Lock()
_LOG = logging.getLogger(__name__)

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
    independent: bool,
    mixes: bool,
    shuffles: bool,
    records: bool = False,
) -> CompiledKernel:
    """Compile a kernel for this computer's processor, with the access rules of a device, for
    launches whose warps are formed so; for `independent` and `mixes` see `codegen.control`.
    `shuffles`: warps, blocks and the lanes of an atomic go in an order that the launch's policy
    chooses. `records`: the code writes a log of all that it does (`codegen.log`)."""
    layout = CountLayout(program, rules)
    options = _Options(formation, independent, mixes, shuffles, records)
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
    independent: bool
    mixes: bool
    shuffles: bool
    records: bool


def _key(program: Program, rules: AccessRules, options: _Options) -> str:
    """Names everything on which the machine code depends."""
    module = program.module
    text = module.text or print_module(module)
    sizes = f"{program.local_bytes}"
    return cache.key_of((text, program.name, sizes, repr(rules), repr(options)))


def _compile(layout: CountLayout, options: _Options) -> bytes:
    """The object that a kernel becomes, behind what its host must know of it."""
    program = layout.program
    _LOG.debug("compiling %s of %s", program.name, program.module.name)
    with collector_paused():
        module = ir.Module(program.name)
        warp = WarpFunction(module, program, layout, **options._asdict())
        warp.emit()
        scheduled = warp.suspends or options.shuffles
        alone = options.shuffles or options.records or reads_clock(program.instructions)
        relays = None if alone else warp.control.relay.sites()
        grid = GridFunction(
            module, suspends=scheduled, sites=relays, local_bytes=program.local_bytes
        )
        grid.emit()
        text = str(module)
    with _LOCK:
        made = _object(text, effort(program))
    return _FACTS.pack(scheduled, warp.saved.context_bytes) + made


def _object(text: str, effort: Effort) -> bytes:
    """A module as an object."""
    module = llvm.parse_assembly(text)
    for function in list(module.functions):
        if function.is_declaration and function.name.startswith(PREFIX):
            module.link_in(llvm.parse_assembly(definition(function.name)))
    for function in module.functions:
        if not function.is_declaration and function.name != "run":
            function.linkage = "internal"
    module.verify()
    if effort is Effort.LEAST:
        simplify(module)
        return target_machine(0).emit_object(module)
    improve = optimise if effort is Effort.FULL else tidy
    improve(module)
    return target_machine().emit_object(module)


def _load(made: bytes) -> llvm.ExecutionEngine:
    """Load an object beside the helpers that it calls."""
    load_helpers(made)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(made))
    engine.finalize_object()
    return engine
