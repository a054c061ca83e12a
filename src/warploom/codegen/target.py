"""This computer's processor as LLVM's target."""

from __future__ import annotations

import llvmlite.binding as llvm


def target_machine() -> llvm.TargetMachine:
    """A target for this processor; an engine takes the one that it is given for its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )


def optimise(module: llvm.ModuleRef) -> None:
    """Run LLVM's standard pipeline over a module."""
    builder = llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options(3))
    builder.getModulePassManager().run(module, builder)
