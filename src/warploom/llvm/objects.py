"""LLVM IR as text to an object for this computer's processor."""

from __future__ import annotations

import llvmlite.binding as llvm

from warploom.llvm.opt_level import Effort
from warploom.llvm.rounding import PREFIX, definition
from warploom.llvm.target import Processor, optimise, simplify, target_machine, tidy


def object_of(
    text: str, effort: Effort, exported: str, processor: Processor | None = None
) -> bytes:
    """Returns a module as an object for a processor, the chosen one where none is given; only one
    of its functions can be called from elsewhere."""
    module = llvm.parse_assembly(text)
    for function in list(module.functions):
        if function.is_declaration and function.name.startswith(PREFIX):
            module.link_in(llvm.parse_assembly(definition(function.name)))
    for function in module.functions:
        if not function.is_declaration and function.name != exported:
            function.linkage = "internal"
    module.verify()
    if effort in (Effort.LEAST, Effort.NONE):
        if effort is Effort.LEAST:
            simplify(module)
        return target_machine(0, processor).emit_object(module)
    if effort is Effort.FULL:
        optimise(module, processor)
    else:
        tidy(module)
    return target_machine(processor=processor).emit_object(module)
