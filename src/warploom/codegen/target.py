"""This computer's processor as LLVM's target."""

from __future__ import annotations

import llvmlite.binding as llvm


def target_machine(effort: int = 3) -> llvm.TargetMachine:
    """A target for this processor; an engine takes the one that it is given for its own.

    `effort`, 0 to 3, is what code generation may take.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=effort
    )


def simplify(module: llvm.ModuleRef) -> None:
    """Merge basic blocks, and nothing that takes longer than the module is long."""
    builder = llvm.create_pass_builder(target_machine(0), llvm.create_pipeline_tuning_options(0))
    for function in module.functions:
        if not function.is_declaration:
            passes = llvm.create_new_function_pass_manager()
            passes.add_simplify_cfg_pass()
            passes.run(function, builder)


def optimise(module: llvm.ModuleRef) -> None:
    """Run LLVM's standard pipeline over a module."""
    builder = llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options(3))
    builder.getModulePassManager().run(module, builder)
