"""Chooses the processor that code is compiled for, and runs LLVM's passes and code generation.

The processor is this computer's. The environment variable WARPLOOM_PROCESSOR may name a level of
x86-64 instead, as `x86-64-v3`: then the code is the same on every computer that has the level, and
these can share one cache.
"""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from typing import NamedTuple

import llvmlite.binding as llvm

from warploom.core.errors import WarploomError

VARIABLE = "WARPLOOM_PROCESSOR"

_LEVELS = {
    "x86-64-v2": "cx16 sahf popcnt sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""The features that each level adds to the one before it (System V ABI for AMD64, table 3.1)."""


class Processor(NamedTuple):
    """Holds LLVM's name of a processor, and features to add to those that the name implies."""

    name: str
    features: str = ""


LEVELS = {
    "x86_64": (Processor("x86-64-v4"), Processor("x86-64-v3")),
    "AMD64": (Processor("x86-64-v4"), Processor("x86-64-v3")),
    "aarch64": (Processor("generic"),),
    "arm64": (Processor("generic"),),
}
"""The processors that the package ships code for, best first, by `platform.machine()`."""


def processor() -> Processor:
    """Returns the processor that code is compiled for: the level that WARPLOOM_PROCESSOR names, or
    this computer's without it.

    Raises WarploomError if the variable names no level, or a level that this computer lacks."""
    return _processor_of(os.environ.get(VARIABLE, ""))


def levels() -> list[Processor]:
    """Returns the processors whose shipped code this computer can run, best first; if
    WARPLOOM_PROCESSOR is set, only its level, or nothing if no code is shipped for that. Raises
    WarploomError as `processor` does, where code is shipped for this architecture."""
    level = os.environ.get(VARIABLE, "")
    shipped = LEVELS.get(platform.machine(), ())
    if level:
        return [processor for processor in shipped if processor == _processor_of(level)]
    return [processor for processor in shipped if not _missing_features(processor.name)]


@lru_cache
def _processor_of(level: str) -> Processor:
    """Returns the processor of a level, or this computer's if the level is empty. Raises
    WarploomError for an unknown level, or one that this computer lacks."""
    if not level:
        return Processor(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    if level not in _LEVELS:
        raise WarploomError(
            f"{VARIABLE}={level} is not one of {', '.join(_LEVELS)}. Use one of these, or unset "
            f"{VARIABLE}."
        )
    missing = _missing_features(level)
    if missing:
        raise WarploomError(
            f"{VARIABLE}={level} requires {', '.join(missing)}, which this computer's "
            f"{llvm.get_host_cpu_name()} does not support. Use a lower level, or unset "
            f"{VARIABLE}."
        )
    return Processor(level)


def _missing_features(level: str) -> list[str]:
    """Returns the features, by LLVM's names, that a level of x86-64 and the levels below it require
    and this computer lacks; an empty list for any other name."""
    features = llvm.get_host_cpu_features()
    names = list(_LEVELS)
    below = names[: names.index(level) + 1] if level in names else []
    needed = " ".join(_LEVELS[name] for name in below).split()
    return [name for name in needed if not features.get(name, False)]


def has_feature(name: str) -> bool:
    """Returns whether the processor that code is compiled for has a feature, by LLVM's name: one
    that the chosen level or a level below it requires; of this computer, if no level is chosen."""
    level = processor().name
    if level not in _LEVELS:
        return bool(llvm.get_host_cpu_features().get(name, False))
    below = list(_LEVELS)[: list(_LEVELS).index(level) + 1]
    return name in " ".join(_LEVELS[lower_level] for lower_level in below).split()


def target_machine(effort: int = 3, processor: Processor | None = None) -> llvm.TargetMachine:
    """Returns a new LLVM target machine for a processor (default: the chosen one).

    `effort`, 0 to 3, is the optimization level of code generation. Each call makes a new object,
    since an execution engine owns the target machine that it is created with.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = processor or _processor_of(os.environ.get(VARIABLE, ""))
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=effort)


def simplify(module: llvm.ModuleRef) -> None:
    """Runs LLVM's simplifycfg pass over all functions that a module defines, in place: the only
    pass for modules so large that only linear time is acceptable."""
    passes = llvm.create_new_function_pass_manager()
    passes.add_simplify_cfg_pass()
    _run(passes, module)


def tidy(module: llvm.ModuleRef) -> None:
    """Runs over a module, in place, the few passes that gain most: simplifycfg, SROA, instruction
    combining, and simplifycfg again."""
    passes = llvm.create_new_function_pass_manager()
    passes.add_simplify_cfg_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    _run(passes, module)


def _run(passes: llvm.FunctionPassManager, module: llvm.ModuleRef) -> None:
    """Runs passes over every function that a module defines, in place."""
    builder = llvm.create_pass_builder(target_machine(0), llvm.create_pipeline_tuning_options(0))
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def optimise(module: llvm.ModuleRef, processor: Processor | None = None) -> None:
    """Runs LLVM's -O3 pipeline over a module, in place, for a processor (default: the chosen
    one)."""
    target = target_machine(processor=processor)
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(3))
    builder.getModulePassManager().run(module, builder)
