"""Compiles the text of an LLVM module to an object file."""

from __future__ import annotations

import llvmlite.binding as llvm

from warploom.llvm.opt_level import Effort
from warploom.llvm.rounding import PREFIX, definition
from warploom.llvm.target import Processor, optimise, simplify, target_machine, tidy


def object_of(
    text: str, effort: Effort, exported: str, processor: Processor | None = None
) -> bytes:
    """Compiles a module to an object file for a processor (default: `llvm.target.processor`), with
    the LLVM passes of `effort`: FULL -O3, LESS `tidy`, LEAST `simplify`, NONE no pass; with code
    generation of level 3 for the first two, 0 for the last two. Raises RuntimeError for text that
    is no valid module.

    All its functions but `exported` become internal, so that LLVM may inline and drop them. Calls
    of `llvm.rounding` functions are linked with their definitions."""
    module = llvm.parse_assembly(text)
    # A list, for linking adds functions to the module while the loop runs.
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
