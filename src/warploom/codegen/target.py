"""The processor that code is made for, as LLVM's target: this computer's.

The environment variable WARPLOOM_PROCESSOR names a level of x86-64 instead, as `x86-64-v3`: then
the code is the same on every computer that has the level, and they can share one cache.
"""

from __future__ import annotations

import os
from functools import lru_cache

import llvmlite.binding as llvm

from warploom.core.errors import WarploomError

VARIABLE = "WARPLOOM_PROCESSOR"

_LEVELS = {
    "x86-64-v2": "cx16 sahf popcnt sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""What each level adds to the one before it (System V ABI for AMD64, table 3.1)."""


def processor() -> tuple[str, str]:
    """LLVM's name of the processor that code is made for, and the features beside the name's own.

    Raises WarploomError where WARPLOOM_PROCESSOR names no level, or one beyond this computer.
    """
    return _chosen(os.environ.get(VARIABLE, ""))


@lru_cache
def _chosen(level: str) -> tuple[str, str]:
    """A level; where none is named, the processor of this computer."""
    features = llvm.get_host_cpu_features()
    if not level:
        return llvm.get_host_cpu_name(), features.flatten()
    if level not in _LEVELS:
        raise WarploomError(
            f"{VARIABLE}={level} is none of {', '.join(_LEVELS)}. Take one or none."
        )
    names = list(_LEVELS)
    needed = " ".join(_LEVELS[name] for name in names[: names.index(level) + 1]).split()
    missing = [name for name in needed if not features.get(name, False)]
    if missing:
        raise WarploomError(
            f"{VARIABLE}={level} asks for {', '.join(missing)}, which this computer's"
            f" {llvm.get_host_cpu_name()} does not have. Take a lower level or none."
        )
    return level, ""


def target_machine(effort: int = 3) -> llvm.TargetMachine:
    """A target for the chosen processor; an engine takes the one that it is given for its own.

    `effort`, 0 to 3, is what code generation may take.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=effort)


def simplify(module: llvm.ModuleRef) -> None:
    """Merge basic blocks, and nothing that takes longer than the module is long."""
    passes = llvm.create_new_function_pass_manager()
    passes.add_simplify_cfg_pass()
    _run(passes, module)


def tidy(module: llvm.ModuleRef) -> None:
    """What gains most of the standard pipeline: values in place of memory, and simpler ones."""
    passes = llvm.create_new_function_pass_manager()
    passes.add_simplify_cfg_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    _run(passes, module)


def _run(passes: llvm.FunctionPassManager, module: llvm.ModuleRef) -> None:
    """Run passes over every function of a module."""
    builder = llvm.create_pass_builder(target_machine(0), llvm.create_pipeline_tuning_options(0))
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def optimise(module: llvm.ModuleRef) -> None:
    """Run LLVM's standard pipeline over a module."""
    builder = llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options(3))
    builder.getModulePassManager().run(module, builder)
